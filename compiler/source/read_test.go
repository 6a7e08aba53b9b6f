package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"halos.dev/halo/compiler/diag"
)

// read reads a file system and returns its findings as "FILE:LINE:COL CODE", the visited documents as "FILE#INDEX" and the files.
func read(t testing.TB, fsys fs.FS, opts Options) (found, visited []string, files Files) {
	t.Helper()
	var diags diag.List
	var mu sync.Mutex
	files = Read(t.Context(), fsys, opts, &diags, func(d *Document, _ *diag.List) {
		mu.Lock()
		defer mu.Unlock()
		visited = append(visited, fmt.Sprintf("%s#%d", d.Name, d.Index))
	})
	slices.Sort(visited)
	for _, d := range diags.Sorted() {
		name := d.File
		if n := files.Name(d.Pos); n != "" {
			name = n
		}
		found = append(found, fmt.Sprintf("%s:%d:%d %s", name, d.Pos.Line(), d.Pos.Col(), d.Code.ID))
	}
	return found, visited, files
}

func mapFS(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range files {
		name, text, ok := strings.Cut(f, "=")
		if !ok {
			text = "a: b\n"
		}
		m[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return m
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name           string
		fs             fstest.MapFS
		opts           Options
		found, visited string
	}{
		{"every file with its ending, in any case", mapFS("b.yaml", "a.yml", "c.YAML", "d/e/f.yaml", "g.json", "h", "yaml"), Options{}, "", "a.yml#0 b.yaml#0 c.YAML#0 d/e/f.yaml#0"},
		{"hidden files and directories", mapFS(".a.yaml", ".git/b.yaml", "c/.d/e.yaml", "c/f.yaml"), Options{}, "", "c/f.yaml#0"},
		{"documents of a file in order", mapFS("a.yaml=a: 1\n---\nb: 2\n---\nc: 3\n"), Options{}, "", "a.yaml#0 a.yaml#1 a.yaml#2"},
		{"a bad file hides no other", mapFS("a.yaml=a: [\n", "b.yaml=b: ~\n", "c.yaml=c: d\n"), Options{}, "a.yaml:1:1 HALO1006 b.yaml:1:4 HALO1011", "b.yaml#0 c.yaml#0"},
		{"places in order of names", mapFS("z.yaml=a: ~\n", "a.yaml=a: ~\n", "m/b.yaml=a: ~\n"), Options{}, "a.yaml:1:4 HALO1011 m/b.yaml:1:4 HALO1011 z.yaml:1:4 HALO1011", "a.yaml#0 m/b.yaml#0 z.yaml#0"},
		{"a link", fstest.MapFS{"a.yaml": {Data: []byte("b.yaml"), Mode: fs.ModeSymlink}, "b.yaml": {Data: []byte("a: b\n")}}, Options{}, "a.yaml:0:0 HALO1003", "b.yaml#0"},
		{"a link of another name", fstest.MapFS{"a": {Data: []byte("b"), Mode: fs.ModeSymlink}, "c.yaml": {Data: []byte("a: b\n")}}, Options{}, "a:0:0 HALO1020", "c.yaml#0"},
		{"a hidden link", fstest.MapFS{".a": {Data: []byte("b"), Mode: fs.ModeSymlink}, "c.yaml": {Data: []byte("a: b\n")}}, Options{}, "", "c.yaml#0"},
		{"what is no file", fstest.MapFS{"a.yaml": {Mode: fs.ModeNamedPipe}, "b.yaml": {Mode: fs.ModeSocket}, "c.yaml": {Mode: fs.ModeDevice}, "d.yaml": {Mode: fs.ModeIrregular}}, Options{},
			"a.yaml:0:0 HALO1003 b.yaml:0:0 HALO1003 c.yaml:0:0 HALO1003 d.yaml:0:0 HALO1003", ""},
		{"a directory with the name of a file", mapFS("a.yaml/b.yaml"), Options{}, "a.yaml:0:0 HALO1003", "a.yaml/b.yaml#0"},
		{"a name that is not UTF-8", mapFS("a\xff.yaml", "b.yaml"), Options{}, `"a\xff.yaml":0:0 HALO1004`, "b.yaml#0"},
		{"skipped directories", mapFS("packs/a/pack.yaml", "packs/b.yaml", "x/packs/c.yaml"), Options{SkipDir: func(_ fs.FS, d string) bool { return d == "packs" }}, "", "x/packs/c.yaml#0"},
		{"extra files", mapFS("packs/a/pack.yaml", "c.yaml"), Options{SkipDir: func(_ fs.FS, d string) bool { return d == "packs" },
			Extra: func(fs.FS) []string { return []string{"packs/a/pack.yaml", "packs/none/pack.yaml", "c.yaml"} }}, "", "c.yaml#0 packs/a/pack.yaml#0"},
		{"needless files", mapFS("a.yaml=x: [\n", "b.yaml"), Options{Needless: func(n string, _ []byte) bool { return n == "a.yaml" }}, "", "b.yaml#0"},
		{"raw files", mapFS("a.yaml=x: [\n", "b.yaml"), Options{Raw: func(n string) bool { return n == "a.yaml" }}, "", "a.yaml#0 b.yaml#0"},
		{"size", mapFS("a.yaml=a: bcd\n", "b.yaml=a: bcde\n"), Options{Limits: Limits{FileSize: 7, Files: 9, Total: 99, Depth: 9, Scalar: 9, Items: 99}}, "b.yaml:0:0 HALO1002", "a.yaml#0"},
		{"count", mapFS("a.yaml", "b.yaml", "c.yaml", "d.yaml"), Options{Limits: Limits{FileSize: 9, Files: 2, Total: 99, Depth: 9, Scalar: 9, Items: 99}}, ".:0:0 HALO1002", "a.yaml#0 b.yaml#0"},
		{"sum", mapFS("a.yaml", "b.yaml"), Options{Limits: Limits{FileSize: 9, Files: 2, Total: 9, Depth: 9, Scalar: 9, Items: 99}}, ".:0:0 HALO1002", ""},
		{"nothing", fstest.MapFS{}, Options{}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, workers := range []int{0, 1, 3} {
				c.opts.Workers = workers
				found, visited, files := read(t, c.fs, c.opts)
				if got := strings.Join(found, " "); got != c.found {
					t.Errorf("found %s, want %s", got, c.found)
				}
				if got := strings.Join(visited, " "); got != c.visited {
					t.Errorf("visited %s, want %s", got, c.visited)
				}
				if !slices.IsSortedFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) }) {
					t.Error("files are not in order of names")
				}
			}
		})
	}
}

// broken is a file system in which some names cannot be opened, and others grow or end while they are read.
type broken struct {
	fs.FS
	deny map[string]error
	grow map[string]string
}

func (b broken) Open(name string) (fs.File, error) {
	if err := b.deny[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if text, ok := b.grow[name]; ok {
		return mapFS("x=" + text).Open("x")
	}
	return b.FS.Open(name)
}

func TestUnreadable(t *testing.T) {
	files := mapFS("a.yaml", "d/b.yaml", "e/c.yaml")
	for _, c := range []struct {
		deny           map[string]error
		grow           map[string]string
		found, visited string
	}{
		{deny: map[string]error{"a.yaml": fs.ErrPermission}, found: "a.yaml:0:0 HALO1001", visited: "d/b.yaml#0 e/c.yaml#0"},
		{deny: map[string]error{"d": fs.ErrPermission}, found: "d:0:0 HALO1001", visited: "a.yaml#0 e/c.yaml#0"},
		{deny: map[string]error{".": fs.ErrPermission}, found: ".:0:0 HALO1001", visited: ""},
		// A file that is longer or shorter than its size was when it was listed is read to its end.
		{grow: map[string]string{"a.yaml": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: ~\n"}, found: "a.yaml:1:35 HALO1011", visited: "a.yaml#0 d/b.yaml#0 e/c.yaml#0"},
		{grow: map[string]string{"a.yaml": "a"}, found: "a.yaml:1:1 HALO1008", visited: "d/b.yaml#0 e/c.yaml#0"},
		{grow: map[string]string{"a.yaml": strings.Repeat("#", 5<<20)}, found: "a.yaml:0:0 HALO1002", visited: "d/b.yaml#0 e/c.yaml#0"},
	} {
		found, visited, _ := read(t, broken{files, c.deny, c.grow}, Options{})
		if strings.Join(found, " ") != c.found || strings.Join(visited, " ") != c.visited {
			t.Errorf("%v: found %v, visited %v; want %s, %s", c.deny, found, visited, c.found, c.visited)
		}
	}
	for _, code := range []*diag.Code{codeUnreadable, codeLimit} {
		if !code.NoAnswer {
			t.Errorf("%s allows an answer", code.ID)
		}
	}
}

func TestDigestsAndSizes(t *testing.T) {
	_, _, files := read(t, mapFS("a.yaml=a: b\n", "b.yaml=a: b\n", "c.yaml=a: c\n"), Options{})
	if len(files) != 3 || files[0].Digest != files[1].Digest || files[0].Digest == files[2].Digest || files[0].Size != 5 || files[0].Digest == (File{}).Digest {
		t.Errorf("%+v", files)
	}
	if files.Name(diag.NewPos(1, 1, 1)) != "b.yaml" || files.Name(0) != "" || files.Name(diag.NewPos(9, 1, 1)) != "" {
		t.Error("a place names another file")
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var diags diag.List
	Read(ctx, mapFS("a.yaml"), Options{}, &diags, func(*Document, *diag.List) { t.Error("a document is visited after the end") })
}

// TestDir reads real directories: links are not followed at any level but for the directory itself, and nothing is opened that could block.
func TestDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and FIFOs are made here")
	}
	top := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("outside/secret.yaml", "outside: true\n")
	put("repo/a.yaml", "a: b\n")
	put("repo/d/b.yaml", "a: b\n")
	link("../outside/secret.yaml", "repo/linked.yaml")
	link("../outside", "repo/linked")
	link("repo", "current")
	if err := mkfifo(filepath.Join(top, "repo", "pipe.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"repo", "current"} {
		fsys, err := Dir(filepath.Join(top, dir))
		if err != nil {
			t.Fatal(err)
		}
		found, visited, _ := read(t, fsys, Options{})
		if got, want := strings.Join(found, " "), "linked:0:0 HALO1020 linked.yaml:0:0 HALO1003 pipe.yaml:0:0 HALO1003"; got != want {
			t.Errorf("%s: found %s, want %s", dir, got, want)
		}
		if got := strings.Join(visited, " "); got != "a.yaml#0 d/b.yaml#0" {
			t.Errorf("%s: visited %s", dir, got)
		}
		// Even who asks for them by name gets nothing from behind a link, nor from outside.
		for _, name := range []string{"linked.yaml", "../outside/secret.yaml", "/etc/passwd", "d/../a.yaml", ""} {
			if _, err := fs.ReadFile(fsys, name); err == nil {
				t.Errorf("%s: %s is readable", dir, name)
			}
		}
		if entries, err := fs.ReadDir(fsys, "linked"); err == nil {
			t.Errorf("%s: a linked directory has %v", dir, entries)
		}
		if info, err := fs.Lstat(fsys, "linked.yaml"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%v, %v", info, err)
		}
	}
	for _, name := range []string{"none", "repo/a.yaml", "repo/pipe.yaml"} {
		if _, err := Dir(filepath.Join(top, name)); err == nil {
			t.Errorf("%s is a directory", name)
		}
	}
	if _, err := Dir(filepath.Join(top, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestInterner holds that one copy is kept of equal texts, from any number of goroutines.
func TestInterner(t *testing.T) {
	var in Interner
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				if s := in.Intern(fmt.Sprint("word", i)); s != fmt.Sprint("word", i) {
					t.Errorf("%s", s)
				}
			}
		})
	}
	wg.Wait()
	if in.Intern("") != "" {
		t.Error("the empty text is another")
	}
}

// BenchmarkRead decodes 200 files of a usual form; the bytes a second are those of the files.
func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	text.WriteString("apiVersion: halos.dev/v1\nkind: Profile\nname: base\negress:\n  allowedDomains:\n")
	for i := range 60 {
		fmt.Fprintf(&text, "    - host-%d.acme.example\n", i)
	}
	m := fstest.MapFS{}
	for i := range 200 {
		m[fmt.Sprintf("profiles/p%03d.yaml", i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	b.SetBytes(int64(200 * text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		var diags diag.List
		Read(b.Context(), m, Options{}, &diags, func(*Document, *diag.List) {})
	}
}
