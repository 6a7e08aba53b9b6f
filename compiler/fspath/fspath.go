// Package fspath is the only place that reads, compares and matches file paths of a policy. It never looks at a disk: a policy is compiled for other
// machines.
package fspath

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Kind says what a path is relative to.
type Kind uint8

// Absolute begins with /, Home with ~/, Relative is below the workspace.
const (
	Absolute Kind = iota + 1
	Home
	Relative
)

// Path is a path in normal form. The zero Path is no path.
type Path struct {
	kind Kind
	glob bool
	// text is the normal form, body the part after / or ~/.
	text, body string
}

// Problem says why a text is not a usable path. Reason completes a sentence that begins with the quoted text; Hint says what to write instead.
type Problem struct {
	Reason, Hint string
}

// String returns the normal form: cleaned, without a trailing slash.
func (p Path) String() string { return p.text }

// Kind returns what the path is relative to.
func (p Path) Kind() Kind { return p.kind }

// Glob reports whether the path has any of * ? [ ] { }.
func (p Path) Glob() bool { return p.glob }

// Segments returns the parts of the path below /, ~ or the workspace; none for / and ~ themselves.
func (p Path) Segments() []string { return segments(p.body) }

func segments(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "/")
}

const globChars = "*?[]{}"

// clean checks the spelling rules that all paths share and returns the normal form.
func clean(s string) (Path, *Problem) {
	switch {
	case s == "":
		return Path{}, &Problem{"is empty", "write a path or remove the entry"}
	case strings.TrimSpace(s) != s:
		return Path{}, &Problem{"begins or ends with a blank", "write it without the blank"}
	case strings.Contains(s, "://"):
		return Path{}, &Problem{"is a URL, not a path", ""}
	case strings.Contains(s, `\`):
		return Path{}, &Problem{"has a backslash: paths are written with /, also for Windows", strings.ReplaceAll(s, `\`, "/")}
	case drive(s):
		return Path{}, &Problem{"has a drive letter: write an absolute path with / or one in the home (~/)", ""}
	case strings.ContainsAny(s, "$%`"):
		return Path{}, &Problem{"has a variable or a command: no harness expands it, so it would match nothing", "write an absolute path or one in the home (~/)"}
	case s[0] == '~' && len(s) > 1 && s[1] != '/':
		return Path{}, &Problem{"names another user's home; write an absolute path or one in the home (~/)", ""}
	}
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return Path{}, &Problem{"has control or invisible characters", ""}
		}
	}
	p := Path{kind: Relative}
	body := s
	switch {
	case s[0] == '/':
		p.kind = Absolute
	case s[0] == '~':
		p.kind, body = Home, s[1:]
	}
	var out []string
	for seg := range strings.SplitSeq(body, "/") {
		switch seg {
		case "", ".":
		case "..":
			if len(out) == 0 {
				if p.kind == Absolute {
					continue
				}
				return Path{}, &Problem{"climbs out of its start with ..", "write an absolute path"}
			}
			out = out[:len(out)-1]
		default:
			if strings.TrimSpace(seg) != seg {
				return Path{}, &Problem{"has a name that begins or ends with a blank, which some systems drop", "write it without the blank"}
			}
			out = append(out, seg)
		}
	}
	p.body = strings.Join(out, "/")
	p.glob = strings.ContainsAny(p.body, globChars)
	switch p.kind {
	case Absolute:
		p.text = "/" + p.body
	case Home:
		p.text = strings.TrimSuffix("~/"+p.body, "/")
	default:
		if strings.HasPrefix(p.body, "~") || drive(p.body) {
			return Path{}, &Problem{"begins with ./ before what reads as a home directory or a drive", "write an absolute path"}
		}
		p.text = p.body
	}
	return p, nil
}

// drive reports whether a path begins with a Windows drive letter.
func drive(s string) bool {
	return len(s) >= 2 && s[1] == ':' && s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z'
}

// ParseRoot reads a writable root and refuses every place that must not be writable whatever else the policy says.
func ParseRoot(s string) (Path, *Problem) {
	p, problem := clean(s)
	if problem != nil {
		return Path{}, problem
	}
	const elsewhere = "name a directory of its own, such as /opt/build-cache or ~/.cache/acme"
	switch {
	case p.kind == Relative:
		return Path{}, &Problem{"is relative: a writable root is an absolute path or begins with ~/ (the workspace is writable already)", elsewhere}
	case p.glob:
		return Path{}, &Problem{"has a glob character (" + firstGlob(p.text) + "): a writable root is one directory, a wildcard grants nothing or too much", elsewhere}
	}
	why := refusedRoot(fold(p))
	if why != "" {
		return Path{}, &Problem{why, elsewhere}
	}
	return p, nil
}

func firstGlob(s string) string { return s[strings.IndexAny(s, globChars):][:1] }

// ParseQuery reads one path that is asked about.
func ParseQuery(s string) (Path, *Problem) {
	p, problem := clean(s)
	if problem == nil && p.glob {
		return Path{}, &Problem{"has a glob character (" + firstGlob(p.text) + "): ask about one path", ""}
	}
	return p, problem
}

// HomeOf returns the home directory that an absolute path is in, as the path spells it.
func HomeOf(p Path) (home string, ok bool) {
	f := fold(p)
	if p.kind != Absolute || f.kind != Home {
		return "", false
	}
	segs := p.Segments()
	return "/" + strings.Join(segs[:len(segs)-len(f.segs)], "/"), true
}

// ParseProtected reads a protected path: absolute, below ~/, or a glob relative to the workspace.
func ParseProtected(s string) (Path, *Problem) {
	if strings.Contains("/"+s+"/", "/../") && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~") {
		return Path{}, &Problem{"leaves the workspace with ..", "write an absolute path or one in the home (~/)"}
	}
	p, problem := clean(s)
	switch {
	case problem != nil:
		return Path{}, problem
	case p.text == "/":
		return Path{}, &Problem{"is the root of the file system: nothing could run", "name what is to be protected"}
	case p.text == "~":
		return Path{}, &Problem{"is the whole home directory: no workspace in it could be read", "name what is to be protected, such as ~/.ssh"}
	case p.text == "":
		return Path{}, &Problem{"is the workspace itself", "name what is to be protected, such as .env*"}
	}
	for _, seg := range p.Segments() {
		if !balanced(seg) {
			return Path{}, &Problem{"has a bracket or brace that is not closed before the next /", "write one entry for each path"}
		}
	}
	return p, nil
}

// balanced reports whether every [ and { of a path segment is closed in it.
func balanced(seg string) bool {
	depth := 0
	for i := 0; i < len(seg); i++ {
		switch seg[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth < 0 {
				return false
			}
		case '[':
			end := class(seg[i:])
			if end < 0 {
				return false
			}
			i += end
		case ']':
			return false
		}
	}
	return depth == 0
}

// class returns the index of the ] that closes the [ at the start of s, or -1. A ] right behind the [ or its negation is a member.
func class(s string) int {
	from := 1
	if len(s) > from && (s[from] == '!' || s[from] == '^') {
		from++
	}
	if len(s) > from && s[from] == ']' {
		from++
	}
	if end := strings.IndexByte(s[min(from, len(s)):], ']'); end >= 0 {
		return from + end
	}
	return -1
}

// folded is a path as places are compared when the doubtful case must count as the same place: aliases resolved, NFC, case folded, without the dots and
// blanks that Windows drops at the end of a name.
type folded struct {
	kind Kind
	segs []string
}

// fold resolves the aliases under which one directory is known: /private and the data volume of macOS, and the homes of users, which are all ~.
func fold(p Path) folded {
	// Lower after upper case also folds letters that have two lower-case forms, such as the long s.
	body := strings.ToLower(strings.ToUpper(norm.NFC.String(p.body)))
	segs := segments(body)
	for i, s := range segs {
		if t := strings.TrimRight(s, ". "); t != "" {
			segs[i] = t
		}
	}
	if p.kind != Absolute {
		return folded{p.kind, segs}
	}
	switch {
	case has(segs, "system", "volumes", "data"):
		segs = segs[3:]
	case len(segs) >= 2 && segs[0] == "volumes":
		// macOS keeps a link to the root of the start volume there, under the name that its owner gave it.
		segs = segs[2:]
	}
	if len(segs) >= 2 && segs[0] == "private" && (segs[1] == "etc" || segs[1] == "var" || segs[1] == "tmp") {
		segs = segs[1:]
	}
	switch {
	case len(segs) >= 2 && (segs[0] == "users" || segs[0] == "home"):
		return folded{Home, segs[2:]}
	case len(segs) >= 1 && segs[0] == "root":
		return folded{Home, segs[1:]}
	case has(segs, "var", "root"):
		return folded{Home, segs[2:]}
	}
	return folded{Absolute, segs}
}

func has(segs []string, prefix ...string) bool {
	if len(segs) < len(prefix) {
		return false
	}
	for i, s := range prefix {
		if segs[i] != s {
			return false
		}
	}
	return true
}

// systemDirs must not be writable roots themselves; those in systemTrees not below either.
var systemDirs = [][]string{
	{"etc"}, {"usr"}, {"var"}, {"users"}, {"home"}, {"system"}, {"library"}, {"private"}, {"bin"}, {"sbin"}, {"lib"}, {"lib64"}, {"boot"}, {"dev"}, {"proc"}, {"sys"},
	{"run"}, {"applications"}, {"volumes"}, {"var", "run"}, {"system", "volumes"},
}

var systemTrees = [][]string{{"etc"}, {"usr"}, {"bin"}, {"sbin"}, {"lib"}, {"lib64"}, {"boot"}, {"dev"}, {"proc"}, {"sys"}, {"run"}, {"var", "run"}, {"system"}}

// managedDirs hold managed settings or start programs: an agent that can write there rewrites its own policy. Folded spelling.
var managedDirs = [][]string{
	{"library", "application support", "claudecode"}, {"library", "application support", "geminicli"}, {"library", "application support", "githubcopilot"},
	{"library", "application support", "opencode"}, {"library", "application support", "cursor"}, {"library", "managed preferences"}, {"library", "launchdaemons"},
	{"library", "launchagents"}, {"var", "lib", "halo"},
}

// refusedRoot says why a place cannot be a writable root, or "".
func refusedRoot(f folded) string {
	if f.kind == Home {
		if len(f.segs) == 0 {
			return "is a home directory: everything a user owns would be writable"
		}
		return ""
	}
	if len(f.segs) == 0 {
		return "is the root of the file system (/)"
	}
	for _, d := range managedDirs {
		if has(f.segs, d...) || has(d, f.segs...) && len(f.segs) > 1 {
			return "reaches " + "/" + strings.Join(d, "/") + ", a place of managed settings: an agent that can write there rewrites its own policy"
		}
	}
	for _, d := range systemTrees {
		if has(f.segs, d...) {
			return "is in the system directory /" + strings.Join(d, "/")
		}
	}
	for _, d := range systemDirs {
		if len(f.segs) <= len(d) && has(d, f.segs...) {
			return "is the system directory /" + strings.Join(f.segs, "/") + " or an ancestor of one"
		}
	}
	return ""
}

// Conflicts reports whether a writable root is over, at or under a protected path, and how. It errs on the side of a conflict: case does not count, and every
// user's home is ~. Paths relative to the workspace are not compared.
func Conflicts(root, protected Path) (how string, bad bool) {
	if protected.kind == Relative || root.kind == Relative {
		return "", false
	}
	r, p := fold(root), fold(protected)
	if r.kind == p.kind {
		return overlap(r.segs, p.segs)
	}
	if r.kind == Home && protected.glob {
		// What ~ can stand for has left only globs in the parent directories of the homes to compare.
		for _, home := range [][]string{{"users", anyUser}, {"home", anyUser}, {"root"}} {
			if how, bad := overlap(slices.Concat(home, r.segs), p.segs); bad {
				return how, bad
			}
		}
	}
	return "", false
}

// Guarded is a set of protected paths, made once to compare many writable roots with. What Conflicts says about a pair, Guarded says about the set, at a cost that
// does not grow with it.
type Guarded struct {
	absolute, home guard
}

// guard is a directory of a Guarded: the paths that have it as their literal beginning.
type guard struct {
	below map[string]*guard
	// first is the first path at or below here, exact the first that is here; both count from 1.
	first, exact int
	// tails are the paths whose next segment is a pattern.
	tails []tail
}

type tail struct {
	segs  []string
	index int
}

// Guard makes the set. Paths relative to the workspace are left out, as they are not compared.
func Guard(protected iter.Seq[Path]) *Guarded {
	g := &Guarded{}
	n := 0
	for p := range protected {
		n++
		if p.kind == Relative {
			continue
		}
		f := fold(p)
		at := &g.absolute
		if f.kind == Home {
			at = &g.home
		}
		segs := f.segs
		for len(segs) > 0 && !strings.ContainsAny(segs[0], globChars) {
			at.first = first(at.first, n)
			next := at.below[segs[0]]
			if next == nil {
				if at.below == nil {
					at.below = map[string]*guard{}
				}
				next = &guard{}
				at.below[segs[0]] = next
			}
			at, segs = next, segs[1:]
		}
		at.first = first(at.first, n)
		if len(segs) == 0 {
			at.exact = first(at.exact, n)
			continue
		}
		at.tails = append(at.tails, tail{segs, n})
	}
	return g
}

// first is the smaller of two numbers from 1, where 0 is none.
func first(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// Conflict returns the number, from 0 and in the order they were given, of the first protected path that a writable root is over, at or under.
func (g *Guarded) Conflict(root Path) (index int, ok bool) {
	if root.kind == Relative {
		return 0, false
	}
	f := fold(root)
	if f.kind == Absolute {
		n := g.absolute.conflict(f.segs, true)
		return n - 1, n > 0
	}
	n := g.home.conflict(f.segs, true)
	for _, home := range [][]string{{"users", anyUser}, {"home", anyUser}, {"root"}} {
		n = first(n, g.absolute.conflict(slices.Concat(home, f.segs), false))
	}
	return n - 1, n > 0
}

// conflict returns the first path that conflicts, from 1. Without literals only paths with a pattern count.
func (g *guard) conflict(segs []string, literals bool) int {
	found := 0
	for {
		for _, t := range g.tails {
			if _, bad := overlap(segs, t.segs); bad {
				found = first(found, t.index)
				break
			}
		}
		if literals {
			if len(segs) == 0 {
				return first(found, g.first)
			}
			found = first(found, g.exact)
		}
		if len(segs) == 0 || g.below[segs[0]] == nil {
			return found
		}
		g, segs = g.below[segs[0]], segs[1:]
	}
}

// anyUser stands for the name of a user. No path has it: a blank at the end is refused or folded away.
const anyUser = " "

// overlap reports whether one path can be at or below the other; protected may have globs.
func overlap(root, protected []string) (how string, bad bool) {
	for i := range min(len(root), len(protected)) {
		if protected[i] == "**" {
			return "can hold files of", true
		}
		if root[i] != anyUser && !segmentMatch(protected[i], root[i]) {
			return "", false
		}
	}
	switch {
	case len(root) == len(protected):
		return "is", true
	case len(root) < len(protected):
		return "contains", true
	}
	return "is inside", true
}

// segmentMatch matches one path segment against a pattern of * ? [...] {a,b}; no character of it matches a slash.
func segmentMatch(pattern, s string) bool {
	if !strings.ContainsAny(pattern, globChars) {
		return pattern == s
	}
	if open, end := braces(pattern); end > 0 {
		// Alternatives multiply the work; patterns with many of them match more than they should rather than hang.
		if strings.Count(pattern, "{") > 4 {
			return true
		}
		for _, alt := range alternatives(pattern[open+1 : end]) {
			if segmentMatch(pattern[:open]+alt+pattern[end+1:], s) {
				return true
			}
		}
		return false
	}
	return wildcard([]rune(pattern), []rune(s))
}

// braces returns the indexes of the first { of a pattern and of the } that closes it; end is 0 when there are none.
func braces(pattern string) (open, end int) {
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '[':
			i += max(class(pattern[i:]), 0)
		case '{':
			if depth++; depth == 1 {
				open = i
			}
		case '}':
			if depth--; depth == 0 {
				return open, i
			}
		}
	}
	return 0, 0
}

// alternatives splits the content of braces at the commas that are in no braces of their own.
func alternatives(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, s[from:i]), i+1
			}
		}
	}
	return append(out, s[from:])
}

// maxExpansions bounds what one path with braces may become.
const maxExpansions = 64

// Expand returns the paths that the {a,b} alternatives of one stand for, sorted. A path with more than 64 of them, or with braces that do not pair, nest, reach
// over a slash or leave a segment empty, has no expansion.
func Expand(s string) []string {
	if !strings.ContainsAny(s, "{}") {
		return []string{s}
	}
	work, done := []string{s}, []string(nil)
	for len(work) > 0 {
		t := work[len(work)-1]
		work = work[:len(work)-1]
		open := strings.IndexByte(t, '{')
		if open < 0 {
			if strings.IndexByte(t, '}') >= 0 || strings.Contains(t, "//") || strings.HasSuffix(t, "/") {
				return nil
			}
			done = append(done, t)
			continue
		}
		end := strings.IndexByte(t[open:], '}')
		if end < 0 || strings.ContainsAny(t[open+1:open+end], "{/") {
			return nil
		}
		for alt := range strings.SplitSeq(t[open+1:open+end], ",") {
			work = append(work, t[:open]+alt+t[open+end+1:])
		}
		if len(work)+len(done) > maxExpansions {
			return nil
		}
	}
	slices.Sort(done)
	return done
}

// wildcard matches with backtracking to the last star only, so the work is at most the product of the lengths.
func wildcard(p, s []rune) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si < len(s) {
		if pi < len(p) {
			if p[pi] == '*' {
				star, mark = pi, si
				pi++
				continue
			}
			if n, ok := one(p[pi:], s[si]); ok {
				pi += n
				si++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		pi, si = star+1, mark
	}
	for pi < len(p) && p[pi] == '*' {
		pi++
	}
	return pi == len(p)
}

// one matches one character and returns how much of the pattern it took.
func one(p []rune, c rune) (int, bool) {
	switch p[0] {
	case '?':
		return 1, true
	case '[':
		i, negate, hit := 1, false, false
		if i < len(p) && (p[i] == '!' || p[i] == '^') {
			negate = true
			i++
		}
		for first := true; i < len(p) && (p[i] != ']' || first); first = false {
			lo, hi := p[i], p[i]
			if i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']' {
				hi = p[i+2]
				i += 2
			}
			hit = hit || lo <= c && c <= hi
			i++
		}
		if i < len(p) {
			return i + 1, hit != negate
		}
	}
	return 1, p[0] == c
}

// Covers reports whether p is dir itself or below it. Case counts and ~ is not any user's home by another name: folding is safe for refusing and unsafe
// for excusing. A glob covers only its own text and what is below that.
func Covers(dir, p Path) bool {
	if dir.kind != p.kind {
		return false
	}
	if dir.body == p.body || dir.body == "" {
		return true
	}
	return strings.HasPrefix(p.body, dir.body) && p.body[len(dir.body)] == '/'
}

// Parents yields the normal forms of the directories above a path, nearest first.
func Parents(p Path) iter.Seq[string] {
	return func(yield func(string) bool) {
		text := p.text
		for {
			i := strings.LastIndexByte(text, '/')
			if i < 0 || text == "/" {
				return
			}
			// The directory above /a is / itself.
			text = text[:max(i, 1)]
			if !yield(text) {
				return
			}
		}
	}
}

// Matches reports whether a protected path covers a file, given as an absolute path. home is the user's home directory, workspace the directory that
// relative globs are below; a relative glob without a slash matches at every depth.
func Matches(protected Path, file, workspace, home string) bool {
	f, problem := clean(file)
	if problem != nil || f.kind == Relative {
		return false
	}
	if f.kind == Home {
		f = Path{kind: Absolute, body: strings.Trim(home+"/"+f.body, "/")}
	}
	within := func(base string) ([]string, bool) {
		base = strings.Trim(base, "/")
		if base == "" {
			return segments(f.body), true
		}
		rest, ok := strings.CutPrefix(f.body, base)
		if !ok || rest != "" && rest[0] != '/' {
			return nil, false
		}
		return segments(strings.TrimPrefix(rest, "/")), true
	}
	pattern := protected.Segments()
	switch protected.kind {
	case Absolute:
		return prefixMatch(pattern, segments(f.body))
	case Home:
		segs, ok := within(home)
		return ok && prefixMatch(pattern, segs)
	case Relative:
		segs, ok := within(workspace)
		if !ok {
			return false
		}
		if len(pattern) > 1 {
			return prefixMatch(pattern, segs)
		}
		for i := range segs {
			if prefixMatch(pattern, segs[i:]) {
				return true
			}
		}
	}
	return false
}

// prefixMatch reports whether the pattern matches a path or one of its parents. It keeps, per pattern segment, which prefixes of the path are matched so far,
// so that several ** cost no more than their product with the path.
func prefixMatch(pattern, segs []string) bool {
	at := make([]bool, len(segs)+1)
	at[0] = true
	for _, p := range pattern {
		next := make([]bool, len(segs)+1)
		for i, ok := range at {
			switch {
			case !ok:
			case p == "**":
				for j := i; j <= len(segs); j++ {
					next[j] = true
				}
			case i < len(segs) && segmentMatch(p, segs[i]):
				next[i+1] = true
			}
		}
		at = next
	}
	return slices.Contains(at, true)
}

// Spellings returns the forms under which a path must be rendered on an operating system. The kernel of macOS checks resolved paths, and /tmp, /etc and
// /var are links into /private there.
func Spellings(p Path, os string) []string {
	if os == "darwin" && p.kind == Absolute {
		segs := p.Segments()
		if len(segs) > 0 && (segs[0] == "tmp" || segs[0] == "etc" || segs[0] == "var") {
			return []string{p.text, "/private" + p.text}
		}
		if len(segs) > 1 && segs[0] == "private" && (segs[1] == "tmp" || segs[1] == "etc" || segs[1] == "var") {
			return []string{"/" + strings.Join(segs[1:], "/"), p.text}
		}
	}
	return []string{p.text}
}

// configDirs are directories in the home from which agents, shells or the session start programs or read their settings. Folded spelling.
var configDirs = []struct {
	segs []string
	what string
}{
	{[]string{".claude"}, "Claude Code's settings"}, {[]string{".codex"}, "Codex's settings"}, {[]string{".gemini"}, "Gemini CLI's settings"},
	{[]string{".cursor"}, "Cursor's settings"}, {[]string{".copilot"}, "Copilot CLI's settings"}, {[]string{".config", "opencode"}, "OpenCode's settings"},
	{[]string{".bashrc"}, "a shell start-up file"}, {[]string{".bash_profile"}, "a shell start-up file"}, {[]string{".profile"}, "a shell start-up file"},
	{[]string{".zshrc"}, "a shell start-up file"}, {[]string{".zshenv"}, "a shell start-up file"}, {[]string{".zprofile"}, "a shell start-up file"},
	{[]string{".config", "fish"}, "shell start-up files"}, {[]string{".ssh"}, "SSH keys and configuration"},
	{[]string{"library", "launchagents"}, "programs started at login"}, {[]string{".config", "systemd"}, "user services"}, {[]string{".config", "autostart"}, "programs started at login"},
	{[]string{".gitconfig"}, "Git's configuration"}, {[]string{".config", "git"}, "Git's configuration"},
}

// ConfigDir reports whether a writable root is at, below or above a place in the home from which agents, shells or the session take settings or programs.
func ConfigDir(p Path) (what string, ok bool) {
	f := fold(p)
	if f.kind != Home {
		return "", false
	}
	for _, d := range configDirs {
		if has(f.segs, d.segs...) || has(d.segs, f.segs...) {
			return d.what, true
		}
	}
	return "", false
}
