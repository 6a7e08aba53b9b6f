package fspath

import (
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func root(t *testing.T, s string) Path {
	t.Helper()
	p, problem := ParseRoot(s)
	if problem != nil {
		t.Fatalf("%s %s", s, problem.Reason)
	}
	return p
}

func protected(t *testing.T, s string) Path {
	t.Helper()
	p, problem := ParseProtected(s)
	if problem != nil {
		t.Fatalf("%s %s", s, problem.Reason)
	}
	return p
}

func TestParseRoot(t *testing.T) {
	for in, want := range map[string]string{
		"/opt/build-cache":           "/opt/build-cache",
		"/opt/build-cache/":          "/opt/build-cache",
		"//opt///build-cache/.":      "/opt/build-cache",
		"/opt/x/../build-cache":      "/opt/build-cache",
		"/var/cache/acme":            "/var/cache/acme",
		"/srv/ccache":                "/srv/ccache",
		"/opt":                       "/opt",
		"/tmp/acme":                  "/tmp/acme",
		"/private/tmp/acme":          "/private/tmp/acme",
		"~/.cache/acme":              "~/.cache/acme",
		"~//.cache/./acme/":          "~/.cache/acme",
		"/Users/alice/.cache/acme":   "/Users/alice/.cache/acme",
		"/etcetera":                  "/etcetera",
		"/usrlocal":                  "/usrlocal",
		"/Library/Caches/acme":       "/Library/Caches/acme",
		"/System/Volumes/Data/opt/x": "/System/Volumes/Data/opt/x",
		"/opt/My Cache":              "/opt/My Cache",
		"/opt/é":                     "/opt/é",
		"/Library/Application Support/ClaudeCodeX": "/Library/Application Support/ClaudeCodeX",
	} {
		p, problem := ParseRoot(in)
		if problem != nil || p.String() != want {
			t.Errorf("%q: %q, %v; want %q", in, p, problem, want)
		}
	}
	for in, says := range map[string]string{
		"":          "empty",
		" /opt/x":   "blank",
		"/opt/x ":   "blank",
		"/opt/x /y": "blank", "/ /": "blank", "/opt/a\nb": "control",
		"/opt/a\u200bb":                    "invisible",
		"/opt/a\u202eb":                    "invisible",
		"/opt/\xff":                        "control",
		"/":                                "root of the file system",
		"/opt/..":                          "root of the file system",
		"/../..":                           "root of the file system",
		"~":                                "home directory",
		"~/":                               "home directory",
		"~/x/..":                           "home directory",
		"~/..":                             "climbs",
		"~/x/../..":                        "climbs",
		"~bob/cache":                       "another user's home",
		"/Users/alice":                     "home directory",
		"/USERS/alice":                     "home directory",
		"/home/bob/":                       "home directory",
		"/root":                            "home directory",
		"/var/root":                        "home directory",
		"/private/var/root":                "home directory",
		"/System/Volumes/Data/Users/alice": "home directory",
		"/opt/build-*":                     "glob",
		"/opt/{a,b}":                       "glob",
		"/opt/[ab]":                        "glob",
		"/opt/?":                           "glob",
		"build/cache":                      "relative",
		"./cache":                          "relative",
		"../x":                             "climbs",
		".":                                "relative",
		"$HOME/cache":                      "variable",
		"/opt/%TEMP%":                      "variable",
		"/opt/`x`":                         "variable",
		`C:\build`:                         "backslash",
		"C:/build":                         "drive letter",
		"c:x":                              "drive letter",
		"file:///opt/x":                    "URL",
		"/etc":                             "system",
		"/ETC/acme":                        "system",
		"/etc.":                            "system",
		"/etc/acme":                        "system",
		"/private/etc":                     "system",
		"/private":                         "system",
		"/opt/../etc":                      "system",
		"/usr":                             "system",
		"/usr/local/share/x":               "system",
		"/var":                             "system",
		"/private/var":                     "system",
		"/var/run":                         "system",
		"/var/run/x":                       "system",
		"/Users":                           "system",
		"/home":                            "system",
		"/System":                          "system",
		"/System/Library/x":                "system",
		"/System/Volumes":                  "system",
		"/System/Volumes/Data":             "root of the file system",
		"/Library":                         "system",
		"/bin":                             "system", "/sbin/x": "system", "/lib": "system", "/lib64/x": "system", "/boot": "system", "/dev/shm": "system", "/proc": "system", "/sys": "system", "/run/user": "system",
		"/Applications": "system", "/Volumes": "system",
		"/Library/Application Support":                "managed settings",
		"/Library/Application Support/ClaudeCode":     "managed settings",
		"/library/application support/claudecode/sub": "managed settings",
		"/Library/Application Support/GeminiCli":      "managed settings",
		"/Library/Application Support/GitHubCopilot":  "managed settings",
		"/Library/Application Support/opencode":       "managed settings",
		"/Library/Managed Preferences":                "managed settings",
		"/Library/LaunchDaemons":                      "managed settings",
		"/Library/LaunchAgents/x":                     "managed settings",
	} {
		if p, problem := ParseRoot(in); problem == nil || !strings.Contains(problem.Reason, says) || p != (Path{}) {
			t.Errorf("%q: %q, %v; want %q", in, p, problem, says)
		}
	}
}

func TestParseProtected(t *testing.T) {
	for _, c := range []struct {
		in, want string
		kind     Kind
		glob     bool
	}{
		{"~/.ssh", "~/.ssh", Home, false},
		{"~/.ssh/", "~/.ssh", Home, false},
		{"/opt/acme/signing", "/opt/acme/signing", Absolute, false},
		{"/etc/shadow", "/etc/shadow", Absolute, false},
		{".env*", ".env*", Relative, true},
		{"./.env", ".env", Relative, false},
		{"secrets/**", "secrets/**", Relative, true},
		{"~/.config/*/credentials", "~/.config/*/credentials", Home, true},
		{"*.{pem,key}", "*.{pem,key}", Relative, true},
		{"[!a]x", "[!a]x", Relative, true},
		{"[]x]y", "[]x]y", Relative, true},
		{"..x", "..x", Relative, false},
	} {
		p, problem := ParseProtected(c.in)
		if problem != nil || p.String() != c.want || p.Kind() != c.kind || p.Glob() != c.glob {
			t.Errorf("%q: %q, kind %d, glob %v, %v", c.in, p, p.Kind(), p.Glob(), problem)
		}
	}
	for in, says := range map[string]string{
		"": "empty", "/": "root", "~": "home", "~/": "home", ".": "workspace itself", "./": "workspace itself", "..": "leaves", "../x": "leaves", "a/../../b": "leaves", "a/../b": "leaves", "./~/x": "home directory", "./c:x": "drive", "a/ b": "blank", "./ b": "blank",
		"~/../x": "climbs", "~bob/.ssh": "another user", "$HOME/.ssh": "variable", `~\.ssh`: "backslash", "C:/x": "drive", "https://x.example": "URL", " .env": "blank",
		"a{b": "not closed", "a}b": "not closed", "{a/b,c}": "not closed", "[a": "not closed", "x[a/b]": "not closed", "a]": "not closed", "[]": "not closed", "[!]": "not closed",
	} {
		if p, problem := ParseProtected(in); problem == nil || !strings.Contains(problem.Reason, says) || p != (Path{}) {
			t.Errorf("%q: %q, %v; want %q", in, p, problem, says)
		}
	}
}

func TestConflicts(t *testing.T) {
	for _, c := range []struct{ root, protected, how string }{
		{"~/.ssh", "~/.ssh", "is"},
		{"~/.SSH", "~/.ssh", "is"},
		{"~/.ſsh", "~/.ssh", "is"},
		{"~/.ssh.", "~/.ssh", "is"},
		{"~/.cafe\u0301", "~/.caf\u00e9", "is"},
		{"~/.ssh/keys", "~/.ssh", "is inside"},
		{"~/work", "~/work/secrets", "contains"},
		{"/Users/alice/.ssh", "~/.ssh", "is"},
		{"/home/bob/.ssh/agent", "~/.ssh", "is inside"},
		{"/root/.ssh", "~/.ssh", "is"},
		{"/private/var/root/.ssh", "~/.ssh", "is"},
		{"~/.ssh", "/Users/alice/.ssh", "is"},
		{"/opt/acme", "/opt/acme/signing", "contains"},
		{"/private/tmp/x", "/tmp/x/keys", "contains"},
		{"/System/Volumes/Data/opt/x", "/opt/x", "is"},
		{"~/.config", "~/.config/*/credentials", "contains"},
		{"~/.config/gcloud", "~/.config/*/credentials", "contains"},
		{"~/.config/gcloud/credentials/x", "~/.config/*/credentials", "is inside"},
		{"~/.config/gcloud", "~/.config/{aws,{gcloud,gh}}", "is"},
		{"~/.ssh", "~/.ssh/**", "contains"},
		{"/opt/x", "/**/id_rsa", "can hold files of"},
		{"~/.ssh", "/**/id_rsa", "can hold files of"},
		{"~/.ssh", "/Users/*/.ssh", "is"},
		{"~/.ssh", "/*/*/.ssh", "is"},
		{"~/.ssh", "/*/alice/.ssh", "is"},
		{"~/.cache", "/*/*/.ssh", "contains"}, // the home of root has one segment less
		{"~/.ssh", "/{home,Users}/*/.s*", "is"},
		{"~/.ssh", "/r??t/.ssh", "is"},

		{"~/.sshfs-cache", "~/.ssh", ""},
		{"~/.cache", "~/*.pem", ""},
		{"~/.cache", "~/.config/*/credentials", ""},
		{"/opt/x", "~/.ssh", ""},
		{"~/.cache", "/opt/x", ""},
		{"~/.cache", "/Users/*/.ssh", ""},
		{"/opt/x", ".env*", ""},
		{"/opt/xy", "/opt/x", ""},
		{"/opt/x", "/opt/xy", ""},
	} {
		how, bad := Conflicts(root(t, c.root), protected(t, c.protected))
		if how != c.how || bad != (c.how != "") {
			t.Errorf("root %s, protected %s: %q, want %q", c.root, c.protected, how, c.how)
		}
	}
}

// below lists every path of up to depth segments over an alphabet, below a prefix.
func below(prefix string, alphabet []string, depth int) []string {
	level, out := []string{prefix}, []string(nil)
	for range depth {
		var next []string
		for _, p := range level {
			for _, s := range alphabet {
				next = append(next, p+"/"+s)
			}
		}
		out = append(out, next...)
		level = next
	}
	return out
}

// TestConflictsByFiles holds Conflicts to its meaning: some file lies below the root and is protected.
func TestConflictsByFiles(t *testing.T) {
	files := below("/opt", []string{"a", "ab", "b"}, 5)
	for _, r := range append(below("/opt", []string{"a", "ab", "b"}, 2), "/opt") {
		for _, p := range below("/opt", []string{"a", "b", "*", "a*", "**", "?"}, 3) {
			want := slices.ContainsFunc(files, func(f string) bool {
				return (f == r || strings.HasPrefix(f, r+"/")) && Matches(protected(t, p), f, "/ws", "/home/u")
			})
			if how, bad := Conflicts(root(t, r), protected(t, p)); bad != want {
				t.Errorf("root %s, protected %s: %v (%s), by files %v", r, p, bad, how, want)
			}
		}
	}
}

// TestCovers holds Covers to its meaning: what covers a path protects every file of it. Without globs it is also complete.
func TestCovers(t *testing.T) {
	files := append(below("/opt", []string{"a", "b", "x"}, 4), below("/ws", []string{"a", "b", "x"}, 4)...)
	var ps []Path
	for _, s := range []string{"a", "b", "*", "a*"} {
		ps = append(ps, protected(t, s))
		for _, s := range append(below(s, []string{"a", "b", "**"}, 2), below("/opt/"+s, []string{"a", "*"}, 2)...) {
			ps = append(ps, protected(t, s))
		}
	}
	for _, d := range ps {
		for _, p := range ps {
			all := true
			for _, f := range files {
				all = all && (!Matches(p, f, "/ws", "/home/u") || Matches(d, f, "/ws", "/home/u"))
			}
			got := Covers(d, p)
			if got && !all || !got && all && !d.Glob() && !p.Glob() && d.Kind() == p.Kind() && d.Kind() == Absolute {
				t.Errorf("%s covers %s: %v, by files %v", d, p, got, all)
			}
		}
	}
	for _, c := range []struct {
		dir, p string
		want   bool
	}{
		{"~/.config", "~/.config/gcloud", true},
		{"~/.config", "~/.config", true},
		{"~/.config/gcloud", "~/.config", false},
		{"~/.ssh", "~/.ssh-cache", false},
		{"~/.ssh", "~/.SSH", false},
		{"~/.ssh", "/Users/alice/.ssh", false},
		{"/Users/alice/.ssh", "~/.ssh", false},
		{".env*", ".env", false},
		{".env*", ".env*", true},
	} {
		if got := Covers(protected(t, c.dir), protected(t, c.p)); got != c.want {
			t.Errorf("%s covers %s: %v", c.dir, c.p, got)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		protected, file string
		want            bool
	}{
		{"~/.ssh", "/home/u/.ssh", true},
		{"~/.ssh", "/home/u/.ssh/id_ed25519", true},
		{"~/.ssh", "~/.ssh/id_ed25519", true},
		{"~/.ssh", "/home/u/.ssh/../x", false},
		{"~/.ssh", "/home/u/x/../.ssh/id", true},
		{"~/.ssh", "/home/ux/.ssh", false},
		{"~/.ssh", "/home/u/.sshx", false},
		{"~/.ssh", "relative/.ssh", false},
		{".env*", "/ws/.env", true},
		{".env*", "/ws/a/b/.env.local", true},
		{".env*", "/ws/.env.d/x", true},
		{".env*", "/elsewhere/.env", false},
		{"secrets/**", "/ws/secrets/a/b", true},
		{"secrets/**", "/ws/secrets", true},
		{"secrets/**", "/ws/a/secrets/b", false},
		{"**/secrets", "/ws/a/b/secrets/c", true},
		{"**/secrets", "/ws/secrets", true},
		{"/opt/*/keys", "/opt/a/keys/x", true},
		{"/opt/*/keys", "/opt/a/b/keys", false},
		{"*.{pem,key}", "/ws/x/tls.key", true},
		{"*.{pem,key}", "/ws/x/tls.crt", false},
		{"id_[a-z0-9]*", "/ws/id_rsa", true},
		{"id_[!a-z]*", "/ws/id_rsa", false},
		{"a?c", "/ws/aéc", true},
	} {
		if got := Matches(protected(t, c.protected), c.file, "/ws", "/home/u"); got != c.want {
			t.Errorf("%s matches %s: %v", c.protected, c.file, got)
		}
	}
}

// TestSegments holds the segment matcher to regular expressions made from the same random pieces.
func TestSegments(t *testing.T) {
	pieces := [][2]string{{"a", "a"}, {"b", "b"}, {".", `\.`}, {"*", ".*"}, {"**", ".*"}, {"?", "."}, {"[ab]", "[ab]"}, {"[!a]", "[^a]"}, {"[^b]", "[^b]"}, {"[a-b]", "[a-b]"}, {"[]a]", `[\]a]`},
		{"{a,bb}", "(?:a|bb)"}, {"{a*,}", "(?:a.*|)"}, {"{a,{b,ab}}", "(?:a|b|ab)"}, {"[{]", `\{`}}
	rnd := rand.New(rand.NewPCG(3, 4))
	matched := 0
	for range 20_000 {
		pattern, expr := "", ""
		for range 1 + rnd.IntN(4) {
			p := pieces[rnd.IntN(len(pieces))]
			pattern, expr = pattern+p[0], expr+p[1]
		}
		name := ""
		for range rnd.IntN(6) {
			name += string("ab.]{"[rnd.IntN(5)])
		}
		want := regexp.MustCompile("^(?:" + expr + ")$").MatchString(name)
		got := segmentMatch(pattern, name)
		if strings.Count(pattern, "{") > 4 {
			if want && !got {
				t.Fatalf("%s does not match %q", pattern, name)
			}
			continue
		}
		if got != want {
			t.Fatalf("%s matches %q: %v", pattern, name, got)
		}
		if want {
			matched++
		}
	}
	if matched < 2000 {
		t.Errorf("only %d of the names match: the test says little", matched)
	}
	// Work is bounded for patterns made to hang.
	long := strings.Repeat("a", 2000)
	segmentMatch(strings.Repeat("*a", 400)+"b", long)
	segmentMatch(strings.Repeat("{a,aa}", 400), long)
	prefixMatch(slices.Repeat([]string{"**", "a"}, 200), slices.Repeat([]string{"a"}, 400))
}

func TestSpellings(t *testing.T) {
	for _, c := range []struct {
		in, os string
		want   []string
	}{
		{"/tmp/acme", "darwin", []string{"/tmp/acme", "/private/tmp/acme"}},
		{"/private/tmp/acme", "darwin", []string{"/tmp/acme", "/private/tmp/acme"}},
		{"/var/cache/acme", "darwin", []string{"/var/cache/acme", "/private/var/cache/acme"}},
		{"/etc/shadow", "darwin", []string{"/etc/shadow", "/private/etc/shadow"}},
		{"/tmp/acme", "linux", []string{"/tmp/acme"}},
		{"/private/tmp/acme", "linux", []string{"/private/tmp/acme"}},
		{"/tmpx", "darwin", []string{"/tmpx"}},
		{"/private", "darwin", []string{"/private"}},
		{"~/tmp", "darwin", []string{"~/tmp"}},
		{"tmp/x", "darwin", []string{"tmp/x"}},
		{"/opt/x", "darwin", []string{"/opt/x"}},
	} {
		if got := Spellings(protected(t, c.in), c.os); !slices.Equal(got, c.want) {
			t.Errorf("%s on %s: %v, want %v", c.in, c.os, got, c.want)
		}
	}
}

func TestHomeOf(t *testing.T) {
	for in, want := range map[string]string{
		"/Users/alice/.ssh/id": "/Users/alice", "/users/Alice": "/users/Alice", "/home/bob/x": "/home/bob", "/root/.ssh": "/root", "/private/var/root/x": "/private/var/root",
		"/System/Volumes/Data/Users/a/b": "/System/Volumes/Data/Users/a", "/opt/x": "", "/home": "", "~/x": "", "x/y": "",
	} {
		p, problem := ParseQuery(in)
		if problem != nil {
			t.Fatal(in, problem)
		}
		if got, ok := HomeOf(p); got != want || ok != (want != "") {
			t.Errorf("%s is in the home %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"", "*.pem", "~bob/x", `C:\x`, "$HOME/x", "~/../x"} {
		if p, problem := ParseQuery(in); problem == nil {
			t.Errorf("%q can be asked about as %q", in, p)
		}
	}
}

func TestConfigDir(t *testing.T) {
	for in, want := range map[string]bool{
		"~/.claude": true, "~/.claude/x": true, "~/.CLAUDE": true, "~/.config": true, "~/.config/opencode/x": true, "~/Library": true, "~/Library/LaunchAgents": true, "/Users/alice/.zshrc": true,
		"~/.gitconfig": true, "~/.cache": false, "~/.config/acme": false, "~/.claude-cache": false, "/opt/x": false,
	} {
		if what, ok := ConfigDir(root(t, in)); ok != want || ok != (what != "") {
			t.Errorf("%s: %q, %v", in, what, ok)
		}
	}
}

// TestGuarded holds that a set of protected paths answers as its members do one by one: the first in order that conflicts.
func TestGuarded(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	words := []string{"a", "b", "A", "users", "home", "root", "private", "var", "*", "?", "**", "a*", "{a,b}", "[ab]", "bob"}
	path := func(globs bool) string {
		head := []string{"/", "~/", "/home/bob/", "/Users/bob/", "/root/", "/private/var/", "/home/*/"}[rng.IntN(7)]
		if !globs {
			head = strings.ReplaceAll(head, "*", "eve")
		}
		n := rng.IntN(4)
		segs := make([]string, 0, n)
		for len(segs) < n {
			if w := words[rng.IntN(len(words))]; globs || !strings.ContainsAny(w, globChars) {
				segs = append(segs, w)
			}
		}
		return head + strings.Join(segs, "/")
	}
	conflicts := 0
	for range 3000 {
		var protected []Path
		for range 1 + rng.IntN(6) {
			if p, problem := ParseProtected(path(true)); problem == nil {
				protected = append(protected, p)
			}
		}
		g := Guard(slices.Values(protected))
		for range 6 {
			root, problem := ParseQuery(path(false))
			if problem != nil {
				continue
			}
			want := slices.IndexFunc(protected, func(p Path) bool { _, bad := Conflicts(root, p); return bad })
			got, ok := g.Conflict(root)
			if ok != (want >= 0) || ok && got != want {
				t.Fatalf("%s in %v: %d %v, want %d", root, protected, got, ok, want)
			}
			if ok {
				conflicts++
			}
		}
	}
	if conflicts < 1000 {
		t.Errorf("only %d conflicts", conflicts)
	}
}

func TestParents(t *testing.T) {
	for in, want := range map[string]string{"/a/b/c": "/a/b /a /", "/a": "/", "/": "", "~/a/b": "~/a ~", "~": "", "a/*/c": "a/* a", "a": ""} {
		p, problem := ParseQuery(in)
		if strings.Contains(in, "*") {
			p, problem = ParseProtected(in)
		}
		if problem != nil {
			t.Fatal(in, problem)
		}
		if got := strings.Join(slices.Collect(Parents(p)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func FuzzParseRoot(f *testing.F) {
	for _, s := range []string{"/opt/x", "~/.cache/acme", "/opt/../etc", "//etc/.", "~/..", "/Users/alice/.", `C:\x`, "/System/Volumes/Data/Users/a", "/opt/\u200b", "/ETC", "~", "/*0/../", "/ /"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, problem := ParseRoot(s)
		if problem != nil {
			if p != (Path{}) {
				t.Errorf("%q: %q beside a problem", s, p)
			}
			return
		}
		again, problem := ParseRoot(p.String())
		if problem != nil || again != p {
			t.Errorf("%q: %q is read again as %q, %v", s, p, again, problem)
		}
		if p.Kind() == Relative || p.Glob() || len(p.Segments()) == 0 || !Covers(p, p) {
			t.Errorf("%q: %q is no root", s, p)
		}
		for _, seg := range p.Segments() {
			if seg == "" || seg == "." || seg == ".." {
				t.Errorf("%q: %q is not clean", s, p)
			}
		}
		if _, bad := Conflicts(p, p); !bad {
			t.Errorf("%q does not conflict with itself", s)
		}
	})
}

func FuzzParseProtected(f *testing.F) {
	for _, s := range []string{"~/.ssh", ".env*", "/opt/*/keys", "{a,{b,c}}", "[!a]", "[]]", "**/x", "a/../b", "~x", "{{{{{a}}}}}", "/**/id", "/*/../0", "./~/x"} {
		f.Add(s, "/opt/a")
	}
	f.Fuzz(func(t *testing.T, s, file string) {
		p, problem := ParseProtected(s)
		if problem != nil {
			return
		}
		again, problem := ParseProtected(p.String())
		if problem != nil || again != p {
			t.Errorf("%q: %q is read again as %q, %v", s, p, again, problem)
		}
		if !Covers(p, p) {
			t.Errorf("%q does not cover itself", s)
		}
		got := Matches(p, file, "/ws", "/home/u")
		if got && !Matches(p, file+"/below", "/ws", "/home/u") {
			t.Errorf("%q matches %q and not what is below it", s, file)
		}
		if r, problem := ParseRoot(file); got && problem == nil && p.Kind() != Relative {
			if _, bad := Conflicts(r, p); !bad && !strings.HasPrefix(r.String(), "/home/u") {
				t.Errorf("%q matches the root %q and does not conflict with it", s, file)
			}
		}
	})
}

func TestExpand(t *testing.T) {
	for in, want := range map[string][]string{
		"/srv/x":                              {"/srv/x"},
		"/srv/{b,a}/x":                        {"/srv/a/x", "/srv/b/x"},
		"{a,b}.{c,d}":                         {"a.c", "a.d", "b.c", "b.d"},
		"/srv/{a,}x":                          {"/srv/ax", "/srv/x"},
		"/srv/{a,}/x":                         nil,
		"/srv/{a,}":                           nil,
		"/srv/{a,b/c}":                        nil,
		"/srv/{a,{b,c}}":                      nil,
		"/srv/a}":                             nil,
		"/srv/{a":                             nil,
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}":      slices.Sorted(words("ab", 6)),
		"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}": nil,
	} {
		if got := Expand(in); !slices.Equal(got, want) {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// words yields all words of n letters.
func words(letters string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		if n == 0 {
			yield("")
			return
		}
		for w := range words(letters, n-1) {
			for _, c := range letters {
				if !yield(w + string(c)) {
					return
				}
			}
		}
	}
}
