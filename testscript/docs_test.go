package testscript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The documentation is run: every command block of it, in order, by bash, as a reader would. A block is indented or fenced without a language or with sh or
// console. In a block whose first line begins with "$ ", lines that do not are the output of the command above; "..." as a line stands for any lines and … for
// any text in a line. HALO_UPDATE=1 writes what differs.
//
// What readers need not see is in a comment before the block:
//
//	<!-- test: dir=examples/acme exit=1     begin in a fresh copy of that directory (dir=empty: an empty one); the block exits with 1
//	commands that run before the block, unseen
//	-->
//
// exit=0,1 gives each command its status; a command before "echo $?" may have any. file=NAME makes the block a file that the reader writes, skip REASON does
// not run it, and text says that it holds no command. Blocks of one page share a directory and a shell until the next dir.

// TestDocs runs every command block of the documentation.
func TestDocs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: the commands of the documentation are run by bash with GNU tools, on Linux")
	}
	open, _, _ := serveRegistry(t, inProcess())
	for _, name := range pages(t) {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("..", filepath.FromSlash(name))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePage(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			problems := p.run(t, open)
			if os.Getenv("HALO_UPDATE") != "" {
				if fixed := p.updated(string(text)); fixed != string(text) {
					if err := os.WriteFile(file, []byte(fixed), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, p := range problems {
				t.Errorf("%s:%s", name, p)
			}
			t.Logf("%d blocks run, %d skipped, %d files, %d without commands", p.count("sh"), p.count("skip"), p.count("file"), p.count("text"))
		})
	}
}

// pages are the pages with commands, relative to the root.
func pages(t *testing.T) []string {
	var names []string
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guides/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			rel, err := filepath.Rel("..", f)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names
}

// page is a page of documentation as its blocks.
type page struct{ blocks []*block }

type block struct {
	line  int    // 1-based, of the first line of the text
	kind  string // sh, skip, file, text, or the language of a fence
	lines []string
	// indent is what each line of the block has before its text.
	indent string

	dir, file, setup string
	exit             []int
	commands         []command
}

type command struct {
	line   int
	text   string
	output []string // what the page shows, without indentation
	shown  bool     // the page shows output, perhaps none
	from   int      // index in block.lines of the first line of output
	// what a run made of it
	got    string
	differ bool
}

func (p *page) count(kind string) int {
	n := 0
	for _, b := range p.blocks {
		if b.kind == kind {
			n++
		}
	}
	return n
}

// parsePage finds the blocks of a page.
func parsePage(text string) (*page, error) {
	p := &page{}
	lines := strings.Split(text, "\n")
	var mark *block
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		blank := i == 0 || strings.TrimSpace(lines[i-1]) == "" || mark != nil
		switch {
		case strings.HasPrefix(line, "<!-- test:"):
			if mark != nil {
				return nil, fmt.Errorf("%d: two marks for one block", i+1)
			}
			from := i
			for !strings.Contains(lines[i], "-->") {
				if i++; i == len(lines) {
					return nil, fmt.Errorf("%d: the comment has no end", from+1)
				}
			}
			comment := strings.TrimPrefix(strings.Join(lines[from:i+1], "\n"), "<!-- test:")
			comment, rest, _ := strings.Cut(comment, "-->")
			if strings.TrimSpace(rest) != "" {
				return nil, fmt.Errorf("%d: text after a comment", i+1)
			}
			var err error
			if mark, err = parseMark(comment); err != nil {
				return nil, fmt.Errorf("%d: %w", from+1, err)
			}
		case strings.HasPrefix(line, "```"):
			b := &block{line: i + 2, kind: strings.TrimPrefix(line, "```")}
			for i++; i < len(lines) && lines[i] != "```"; i++ {
				b.lines = append(b.lines, lines[i])
			}
			if i == len(lines) {
				return nil, fmt.Errorf("%d: the block has no end", b.line-1)
			}
			if err := p.add(b, mark); err != nil {
				return nil, err
			}
			mark = nil
		case strings.HasPrefix(line, "    ") && blank:
			b := &block{line: i + 1, indent: "    "}
			for ; i < len(lines) && (strings.HasPrefix(lines[i], "    ") || lines[i] == ""); i++ {
				b.lines = append(b.lines, strings.TrimPrefix(lines[i], "    "))
			}
			i--
			for b.lines[len(b.lines)-1] == "" {
				b.lines = b.lines[:len(b.lines)-1]
			}
			if err := p.add(b, mark); err != nil {
				return nil, err
			}
			mark = nil
		case line != "" && mark != nil:
			return nil, fmt.Errorf("%d: a mark without a block after it", i+1)
		}
	}
	if mark != nil {
		return nil, errors.New("a mark without a block after it")
	}
	return p, nil
}

// parseMark reads what a comment says about the block after it.
func parseMark(comment string) (*block, error) {
	b := &block{}
	head, setup, _ := strings.Cut(comment, "\n")
	b.setup = strings.TrimSpace(setup)
	words := strings.Fields(head)
	for i, w := range words {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case w == "skip":
			if i+1 == len(words) {
				return nil, errors.New("skip needs a reason")
			}
			b.kind = "skip"
			return b, nil
		case w == "text":
			b.kind = "text"
		case key == "dir" && value != "":
			b.dir = value
		case key == "file" && value != "":
			b.kind, b.file = "file", value
		case key == "exit":
			for v := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(v)
				if err != nil {
					return nil, fmt.Errorf("%q is not a list of exit statuses", value)
				}
				b.exit = append(b.exit, n)
			}
		default:
			return nil, fmt.Errorf("%q is no mark", w)
		}
	}
	return b, nil
}

// add puts a block into a page and reads its commands.
func (p *page) add(b, mark *block) error {
	if mark != nil {
		b.dir, b.file, b.setup, b.exit = mark.dir, mark.file, mark.setup, mark.exit
	}
	switch {
	case mark != nil && mark.kind != "":
		b.kind = mark.kind
	case b.kind == "" || b.kind == "console":
		b.kind = "sh"
	}
	p.blocks = append(p.blocks, b)
	switch b.kind {
	case "sh":
	case "text":
		for i, l := range b.lines {
			if w := strings.Fields(strings.TrimPrefix(l, "$ ")); len(w) > 0 && slices.Contains([]string{"halo", "go", "sudo", "cosign"}, w[0]) {
				return fmt.Errorf("%d: a block marked as text has the command %q", b.line+i, l)
			}
		}
		return nil
	default:
		if b.exit != nil {
			return fmt.Errorf("%d: an exit status of a block that is not run", b.line)
		}
		return nil
	}
	console := strings.HasPrefix(b.lines[0], "$ ")
	for i := 0; i < len(b.lines); i++ {
		l := b.lines[i]
		if console {
			if l = strings.TrimPrefix(l, "$ "); l == b.lines[i] {
				return fmt.Errorf("%d: %q is neither a command nor output", b.line+i, l)
			}
		} else if l == "" {
			continue
		}
		c := command{line: b.line + i, text: l, shown: console}
		for strings.HasSuffix(c.text, "\\") && i+1 < len(b.lines) {
			i++
			c.text += "\n" + b.lines[i]
		}
		c.from = i + 1
		for console && i+1 < len(b.lines) && !strings.HasPrefix(b.lines[i+1], "$ ") {
			i++
			c.output = append(c.output, b.lines[i])
		}
		// A line between two commands sets them apart and is no output.
		if n := len(c.output); n > 0 && c.output[n-1] == "" && i+1 < len(b.lines) {
			c.output = c.output[:n-1]
		}
		b.commands = append(b.commands, c)
	}
	if len(b.exit) > 1 && len(b.exit) != len(b.commands) {
		return fmt.Errorf("%d: %d exit statuses for %d commands", b.line, len(b.exit), len(b.commands))
	}
	return nil
}

// prelude makes the shell of a reader safe to run anywhere: a device is a directory, a registry is on loopback, go runs what was built, nobody becomes root.
const prelude = `
sudo() { "$@"; }
halo() {
	local args=("${@//oci:\/\/registry.acme.example/oci:\/\/$REGISTRY}")
	case "$1 $*" in
	*--root*) ;;
	install\ * | doctor\ * | agent\ *) args+=(--root "$DEVICE") ;;
	esac
	command halo "${args[@]}"
}
go() {
	if [ "$1" = run ]; then
		(cd "$REPO" && HOME=$GO_HOME command go list "$2" >/dev/null) && halo "${@:3}"
	else
		(cd "$REPO" && HOME=$GO_HOME command go list "${@:2}" >/dev/null)
	fi
}
`

// run runs the blocks of a page and says what is not as the page says.
func (p *page) run(t *testing.T, registry string) []string {
	var problems []string
	for rest := p.blocks; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].dir == "" {
			n++
		}
		problems = append(problems, runBlocks(t, rest[:n], registry)...)
		rest = rest[n:]
	}
	return problems
}

// runBlocks runs the blocks of one directory in one shell.
func runBlocks(t *testing.T, blocks []*block, registry string) []string {
	if !slices.ContainsFunc(blocks, func(b *block) bool { return b.kind == "sh" }) {
		return nil
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	work, home := filepath.Join(temp, "work"), filepath.Join(temp, "home")
	for _, dir := range []string{work, home, filepath.Join(temp, "device")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if dir := blocks[0].dir; dir != "" && dir != "empty" {
		if err := os.CopyFS(work, os.DirFS(filepath.Join(root, filepath.FromSlash(dir)))); err != nil {
			t.Fatal(err)
		}
	}

	// What is run and what comes back are joined by order: each piece ends with its exit status between separators.
	type piece struct {
		block   *block
		command *command // nil: a setup
		free    bool     // any status is right
	}
	var pieces []piece
	script := prelude
	emit := func(text string, p piece) {
		script += text + "\n_status=$?; printf '\\036%d\\036' $_status; (exit $_status)\n"
		pieces = append(pieces, p)
	}
	for _, b := range blocks {
		if b.setup != "" {
			emit("set -e\n"+b.setup+"\nset +e", piece{block: b})
		}
		switch b.kind {
		case "file":
			emit("mkdir -p "+filepath.Dir(b.file)+" && cat >"+b.file+" <<'END_OF_BLOCK'\n"+strings.Join(b.lines, "\n")+"\nEND_OF_BLOCK", piece{block: b})
		case "sh":
			for i := range b.commands {
				free := i+1 < len(b.commands) && b.commands[i+1].text == "echo $?"
				emit(b.commands[i].text, piece{b, &b.commands[i], free})
			}
		}
	}

	// Releases of some examples expire, so what is committed here is new.
	now := time.Now().UTC().Format(time.RFC3339)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var out bytes.Buffer
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir, shell.Stdout, shell.Stderr, shell.WaitDelay = work, &out, &out, time.Second
	shell.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+home, "GO_HOME="+os.Getenv("HOME"), "REPO="+root, "DEVICE="+filepath.Join(temp, "device"),
		"REGISTRY="+registry, "DOCKER_CONFIG="+home, "HALO_KEY_PASSWORD=", "HALO_TRUST=", "NO_COLOR=1", "LC_ALL=C.UTF-8", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@acme.example", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@acme.example",
		"GIT_AUTHOR_DATE="+now, "GIT_COMMITTER_DATE="+now)
	// The pieces say more than the status of the shell.
	_ = shell.Run()

	fields := strings.Split(strings.ReplaceAll(out.String(), registry, "registry.acme.example"), "\x1e")
	var problems []string
	for i, p := range pieces {
		got := strings.TrimSuffix(fields[min(2*i, len(fields)-1)], "\n")
		said := got
		if lines := strings.Split(got, "\n"); len(lines) > 30 {
			said = strings.Join(lines[:30], "\n") + "\n..."
		}
		line, text := p.block.line, "what comes before the block"
		if p.command != nil {
			line, text = p.command.line, p.command.text
		}
		if 2*i+1 >= len(fields) {
			return append(problems, fmt.Sprintf("%d: %s\nended the shell:\n%s", line, text, said))
		}
		want := 0
		if p.command != nil && len(p.block.exit) > 0 {
			want = p.block.exit[min(slices.IndexFunc(p.block.commands, func(c command) bool { return c.line == line }), len(p.block.exit)-1)]
		}
		if status := fields[2*i+1]; status != strconv.Itoa(want) && !p.free {
			problems = append(problems, fmt.Sprintf("%d: %s\nexit status %s, want %d:\n%s", line, text, status, want, said))
		}
		if p.command != nil && p.command.shown {
			p.command.got = got
			if p.command.differ = !sameOutput(p.command.output, got); p.command.differ {
				problems = append(problems, fmt.Sprintf("%d: %s\nprints\n%s\nand the page shows\n%s", line, text, said, strings.Join(p.command.output, "\n")))
			}
		}
	}
	return problems
}

// sameOutput is whether a command printed what a page shows: trailing space is nothing, "..." any lines, … any text of a line.
func sameOutput(shown []string, got string) bool {
	pattern := "(?s)^"
	for _, line := range shown {
		if strings.TrimSpace(line) == "..." {
			pattern += "(?:[^\n]*\n)*?"
			continue
		}
		for i, part := range strings.Split(strings.TrimRight(line, " "), "…") {
			if i > 0 {
				pattern += "[^\n]*"
			}
			pattern += regexp.QuoteMeta(part)
		}
		pattern += " *\n"
	}
	if got != "" {
		got += "\n"
	}
	return regexp.MustCompile(pattern + "$").MatchString(got)
}

// updated is the text of a page with the output that its commands printed, where that differs.
func (p *page) updated(text string) string {
	lines := strings.Split(text, "\n")
	for _, b := range slices.Backward(p.blocks) {
		for _, c := range slices.Backward(b.commands) {
			if !c.differ {
				continue
			}
			var out []string
			if c.got != "" {
				for l := range strings.SplitSeq(c.got, "\n") {
					out = append(out, strings.TrimRight(b.indent+l, " "))
				}
			}
			at := b.line - 1 + c.from
			lines = slices.Replace(lines, at, at+len(c.output), out...)
		}
	}
	return strings.Join(lines, "\n")
}

// TestDocsNames checks what the pages name: files and directories of the repository, exported names of its packages, and the targets of links.
func TestDocsNames(t *testing.T) {
	declared := map[string]bool{}
	packages := map[string]bool{}
	for _, top := range []string{"compiler", "artifacts", "lint"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			packages[file.Name.Name] = true
			for _, decl := range file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					name := file.Name.Name
					if d.Recv != nil {
						of := d.Recv.List[0].Type
						if star, ok := of.(*ast.StarExpr); ok {
							of = star.X
						}
						if id, ok := of.(*ast.Ident); ok {
							name = id.Name
						}
					}
					declared[name+"."+d.Name.Name] = true
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						switch s := spec.(type) {
						case *ast.TypeSpec:
							declared[file.Name.Name+"."+s.Name.Name] = true
							packages[s.Name.Name] = true
						case *ast.ValueSpec:
							for _, n := range s.Names {
								declared[file.Name.Name+"."+n.Name] = true
							}
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	span := regexp.MustCompile("`([^`\n]+)`")
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	goName := regexp.MustCompile(`^(\w+)\.[A-Z]\w+$`)
	repoPath := regexp.MustCompile(`^(cmd|compiler|lint|artifacts|testscript|examples|testdata|docs|\.ci)/[\w./-]+$`)
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range span.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if of := goName.FindStringSubmatch(name); of != nil && packages[of[1]] {
				checked++
				if !declared[name] {
					t.Errorf("%s names %s, which is not there", page, name)
				}
			}
			if repoPath.MatchString(name) {
				checked++
				if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(name))); err != nil {
					t.Errorf("%s names %s, which is not there", page, name)
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(path.Join(path.Dir(page), m[1])))); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d names and links were found", checked)
	}
	index, err := os.ReadFile(filepath.Join("..", "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		if guide, ok := strings.CutPrefix(page, "docs/guides/"); ok && !strings.Contains(string(index), "(guides/"+guide+")") {
			t.Errorf("docs/README.md has no link to %s", guide)
		}
	}
}

// TestDocsTest shows that the test of the documentation can fail.
func TestDocsTest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: the commands of the documentation are run by bash with GNU tools, on Linux")
	}
	for _, c := range []struct {
		name, page, want string // want: part of the problem, empty when there is none
	}{
		{"right", "    halo version\n", ""},
		{"fence", "```sh\nhalo version\n```\n", ""},
		{"typo in a command", "    halo biuld\n", `unknown command "biuld"`},
		{"typo in a flag", "```\nhalo lint --fail-no error\n```\n", "unknown flag --fail-no"},
		{"no such program", "    hallo lint\n", "exit status 127, want 0"},
		{"second command", "    halo version\n    halo lint\n", "exit status 2, want 0"},
		{"status shown", "    $ halo lint nowhere\n    ...\n    $ echo $?\n    2\n", ""},
		{"status shown wrongly", "    $ halo lint nowhere\n    ...\n    $ echo $?\n    1\n", "prints\n2"},
		{"status named", "<!-- test: exit=2 -->\n    halo lint\n", ""},
		{"status named wrongly", "<!-- test: exit=1 -->\n    halo lint\n", "exit status 2, want 1"},
		{"statuses", "<!-- test: exit=0,2 -->\n\n    halo version\n    halo lint\n", ""},
		{"output", "    $ echo a b c; echo d; echo e\n    a … c\n    ...\n    e\n\n    $ true\n", ""},
		{"other output", "    $ echo a\n    b\n", "and the page shows\nb"},
		{"output not shown", "    $ echo a\n", "prints\na"},
		{"output that is not there", "    $ true\n    a\n", "and the page shows\na"},
		{"continued", "    $ echo a \\\n        b\n    a b\n", ""},
		{"directory", "<!-- test: dir=examples/minimal -->\n    halo test\n", ""},
		{"next directory", "<!-- test: dir=examples/minimal -->\n    halo test\n\n<!-- test: dir=empty -->\n    halo test\n", "exit status 2"},
		{"setup", "<!-- test:\necho a >f\n-->\n    $ cat f\n    a\n", ""},
		{"setup that fails", "<!-- test:\nfalse\ntrue\n-->\n    true\n", "ended the shell"},
		{"file", "<!-- test: file=d/f -->\n```yaml\na: $b\n```\n\n    $ cat d/f\n    a: $b\n", ""},
		{"other language", "```yaml\nhalo: biuld\n```\n", ""},
		{"exit", "    exit 3\n", "ended the shell"},
		{"syntax", "    halo version | | cat\n", "ended the shell"},
		{"skipped", "<!-- test: skip needs a network -->\n    halo biuld\n", ""},
		{"skipped without a reason", "<!-- test: skip -->\n    halo build\n", "needs a reason"},
		{"text", "<!-- test: text -->\n    a directory\n", ""},
		{"command as text", "<!-- test: text -->\n    halo build\n", "marked as text"},
		{"unmarked text", "    Some text.\n", "exit status 127"},
		{"unknown mark", "<!-- test: dri=a -->\n    true\n", `"dri=a" is no mark`},
		{"mark without a block", "<!-- test: exit=1 -->\nText.\n\n    true\n", "without a block"},
		{"mark at the end", "<!-- test: exit=1 -->\n", "without a block"},
		{"open comment", "<!-- test: exit=1\n\n    true\n", "has no end"},
		{"open fence", "```\ntrue\n", "has no end"},
		{"too many statuses", "<!-- test: exit=1,2 -->\n    true\n", "2 exit statuses for 1 commands"},
		{"status of what is not run", "<!-- test: exit=1 -->\n```yaml\na: b\n```\n", "not run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var problems []string
			p, err := parsePage(c.page)
			if err != nil {
				problems = append(problems, err.Error())
			} else {
				problems = p.run(t, "registry.invalid")
			}
			got := strings.Join(problems, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
	p, err := parsePage("    $ echo a\n    b\n    c\n    $ true\n    d\n\n    $ echo e\n")
	if err != nil {
		t.Fatal(err)
	}
	p.run(t, "registry.invalid")
	if got, want := p.updated("    $ echo a\n    b\n    c\n    $ true\n    d\n\n    $ echo e\n"), "    $ echo a\n    a\n    $ true\n\n    $ echo e\n    e\n"; got != want {
		t.Errorf("updated to %q, want %q", got, want)
	}
}
