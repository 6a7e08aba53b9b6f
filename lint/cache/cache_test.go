package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/report"
)

var (
	codeOne = &diag.Code{ID: "HALO9001", Severity: diag.Error}
	codeTwo = &diag.Code{ID: "HALO9002", Severity: diag.Warning}
)

// look does to a file system what a run does: lists, describes, reads, and asks for what is not there.
func look(t *testing.T, fsys fs.FS) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			if _, err := d.Info(); err != nil {
				return err
			}
			_, err = fs.ReadFile(fsys, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Lstat(fsys, "missing/manifest.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(fsys, "absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func repo(t *testing.T) (string, fs.FS) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"halos.yaml": "org: a\n", "a/b.yaml": "b", "a/c.yaml": "", ".claude/settings.json": "{}", "d/e/f.yaml": "f"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	fsys, err := source.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, fsys
}

func TestUnchanged(t *testing.T) {
	do := func(errs ...error) error { return errors.Join(errs...) }
	tests := []struct {
		name   string
		unix   bool
		same   bool
		change func(dir string) error
	}{
		{"nothing", false, true, func(string) error { return nil }},
		{"other times", false, true, func(dir string) error {
			return os.Chtimes(dir+"/a/b.yaml", time.Unix(1, 0), time.Unix(1, 0))
		}},
		{"the same bytes written again", false, true, func(dir string) error {
			return do(os.Remove(dir+"/a/b.yaml"), os.WriteFile(dir+"/a/b.yaml", []byte("b"), 0o644))
		}},
		{"content", false, false, func(dir string) error { return os.WriteFile(dir+"/a/b.yaml", []byte("B"), 0o644) }},
		{"longer", false, false, func(dir string) error { return os.WriteFile(dir+"/a/b.yaml", []byte("bb"), 0o644) }},
		{"emptied", false, false, func(dir string) error { return os.WriteFile(dir+"/a/b.yaml", nil, 0o644) }},
		{"removed", false, false, func(dir string) error { return os.Remove(dir + "/a/c.yaml") }},
		{"added", false, false, func(dir string) error { return os.WriteFile(dir+"/a/d.yaml", nil, 0o644) }},
		{"added at the root", false, false, func(dir string) error { return os.WriteFile(dir+"/.gitattributes", nil, 0o644) }},
		{"added beside a settings file", false, false, func(dir string) error { return os.WriteFile(dir+"/.claude/x", nil, 0o644) }},
		{"renamed", false, false, func(dir string) error { return os.Rename(dir+"/a/b.yaml", dir+"/a/a.yaml") }},
		{"renamed directory", false, false, func(dir string) error { return os.Rename(dir+"/d", dir+"/D") }},
		{"mode", true, false, func(dir string) error { return os.Chmod(dir+"/a/b.yaml", 0o600) }},
		{"mode of a directory", true, false, func(dir string) error { return os.Chmod(dir, 0o711) }},
		{"a link to the same bytes", true, false, func(dir string) error {
			return do(os.Rename(dir+"/a/b.yaml", dir+"/.b"), os.Symlink("../.b", dir+"/a/b.yaml"))
		}},
		{"a directory in the place of a file", false, false, func(dir string) error { return do(os.Remove(dir+"/a/c.yaml"), os.Mkdir(dir+"/a/c.yaml", 0o755)) }},
		{"what was missing", false, false, func(dir string) error { return os.WriteFile(dir+"/absent", nil, 0o644) }},
		{"what was missing, below a directory", false, false, func(dir string) error {
			return do(os.Mkdir(dir+"/missing", 0o755), os.WriteFile(dir+"/missing/manifest.json", nil, 0o644))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.unix && runtime.GOOS == "windows" {
				t.Skip("modes and links of Unix")
			}
			dir, fsys := repo(t)
			rec := NewRecorder(fsys)
			look(t, rec)
			trace, ok := rec.Trace()
			if !ok {
				t.Fatal("torn")
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			if got := Unchanged(t.Context(), fsys, trace, 2); got != test.same {
				t.Errorf("unchanged: %t, want %t", got, test.same)
			}
		})
	}
}

// A run that saw two states, read a file in part or left one open is no run to repeat.
func TestTorn(t *testing.T) {
	tests := []struct {
		name string
		run  func(t *testing.T, dir string, rec *Recorder)
	}{
		{"changed between two looks", func(t *testing.T, dir string, rec *Recorder) {
			look(t, rec)
			if err := os.WriteFile(dir+"/a/b.yaml", []byte("other"), 0o644); err != nil {
				t.Fatal(err)
			}
			look(t, rec)
		}},
		{"left open", func(t *testing.T, dir string, rec *Recorder) {
			if f, err := rec.Open("a/b.yaml"); err != nil {
				t.Fatal(err)
			} else {
				t.Cleanup(func() { f.(*file).f.Close() })
			}
		}},
		{"read in part", func(t *testing.T, dir string, rec *Recorder) {
			f, err := rec.Open("halos.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(f, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}},
		{"a directory read as a file", func(t *testing.T, dir string, rec *Recorder) {
			if _, err := fs.ReadFile(rec, "a"); err == nil {
				t.Fatal("no error")
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, fsys := repo(t)
			rec := NewRecorder(fsys)
			test.run(t, dir, rec)
			if trace, ok := rec.Trace(); ok && Unchanged(t.Context(), fsys, trace, 1) {
				t.Error("found unchanged")
			}
		})
	}
}

// saved returns a store with one entry, and what is in it.
func saved(t *testing.T) (*Store, Question, fs.FS, *report.Report) {
	t.Helper()
	dir, fsys := repo(t)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("1"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &Store{Dir: filepath.Join(t.TempDir(), "cache"), Program: program, Codes: []*diag.Code{codeOne, codeTwo}}
	rec := NewRecorder(fsys)
	look(t, rec)
	rep := &report.Report{Diagnostics: []diag.Diagnostic{
		{Code: codeOne, Severity: diag.Error, Pos: diag.NewPos(1, 2, 3), Document: "Ring/a", Path: "x[0]", Message: "wrong", Hint: "right", Related: []diag.Related{{Pos: diag.NewPos(0, 1, 1), Message: "here"}}},
		{Code: codeTwo, Severity: diag.Info, File: ".", Message: "ünïcode \x00"},
	}}
	for i := range few + 1 {
		rep.Files = append(rep.Files, source.File{Name: fmt.Sprint(i), Size: int64(i), Digest: [32]byte{byte(i), 31: 1}})
	}
	q := Question{Dir: dir, Advise: true, Day: time.Unix(1e9, 0)}
	if err := s.Save(q, rec, rep, "note"); err != nil {
		t.Fatal(err)
	}
	return s, q, fsys, rep
}

func TestFind(t *testing.T) {
	s, q, fsys, rep := saved(t)
	if got, note := s.Find(t.Context(), q, fsys, 1); !reflect.DeepEqual(got, rep) || note != "note" {
		t.Fatalf("found %+v, want %+v", got, rep)
	}
	later := q
	later.Day = Instant(q.Day).Add(24*time.Hour - 1)
	if got, _ := s.Find(t.Context(), later, fsys, 1); got == nil {
		t.Error("another time of the same day is another question")
	}
	for name, other := range map[string]Question{
		"the next day":  {Dir: q.Dir, Advise: q.Advise, Day: Instant(q.Day).Add(24 * time.Hour)},
		"without rules": {Dir: q.Dir, Day: q.Day},
		"another place": {Dir: q.Dir + "x", Advise: q.Advise, Day: q.Day},
		"a build":       {Dir: q.Dir, Advise: q.Advise, Day: q.Day, Build: "x"},
	} {
		if got, _ := s.Find(t.Context(), other, fsys, 1); got != nil {
			t.Errorf("%s: found", name)
		}
	}
	unknown := *s
	unknown.Codes = s.Codes[:1]
	if got, _ := unknown.Find(t.Context(), q, fsys, 1); got != nil {
		t.Error("found with a code that does not exist")
	}
	if err := os.WriteFile(s.Program, []byte("2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Find(t.Context(), q, fsys, 1); got != nil {
		t.Error("found by another program")
	}
}

func TestDamagedEntry(t *testing.T) {
	s, q, fsys, _ := saved(t)
	good, err := os.ReadFile(s.path(q))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 17 {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if err := os.WriteFile(s.path(q), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Find(t.Context(), q, fsys, 1); got != nil {
			t.Fatalf("found with byte %d of %d changed", i, len(good))
		}
	}
	for _, n := range []int{0, 1, len(begin), len(begin) + 32, len(good) - 1} {
		if err := os.WriteFile(s.path(q), good[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Find(t.Context(), q, fsys, 1); got != nil {
			t.Fatalf("found in the first %d bytes", n)
		}
	}
}

func TestForeignDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	s, q, fsys, rep := saved(t)
	for _, name := range []string{s.Dir, s.path(q)} {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		for _, more := range []fs.FileMode{0o020, 0o002} {
			if err := os.Chmod(name, info.Mode().Perm()|more); err != nil {
				t.Fatal(err)
			}
			if got, _ := s.Find(t.Context(), q, fsys, 1); got != nil {
				t.Errorf("%s with %v: found", name, more)
			}
		}
		if name == s.Dir && s.Save(q, NewRecorder(fsys), rep, "") == nil {
			t.Error("saved where others can write")
		}
		if err := os.Chmod(name, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	link := s.Dir + "-link"
	if err := os.Symlink(s.Dir, link); err != nil {
		t.Fatal(err)
	}
	s.Dir = link
	if got, _ := s.Find(t.Context(), q, fsys, 1); got != nil {
		t.Error("found through a link")
	}
}

func TestFewFiles(t *testing.T) {
	s := &Store{Dir: filepath.Join(t.TempDir(), "cache")}
	if err := s.Save(Question{}, NewRecorder(os.DirFS(".")), &report.Report{Files: make(source.Files, few)}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a small repo has an entry")
	}
}

func TestEvict(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for i, name := range []string{"old" + suffix, "killed" + suffix + ".tmp", "new" + suffix, "mine"} {
		path := filepath.Join(s.Dir, name)
		at := time.Unix(int64(1000+i), 0)
		if err := errors.Join(os.WriteFile(path, make([]byte, 10), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.evict(15); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"mine", "new" + suffix}; !reflect.DeepEqual(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(&report.Report{Files: source.Files{{Name: "a.yaml", Size: 3}}, Diagnostics: []diag.Diagnostic{{Code: codeOne, Message: "m", Related: []diag.Related{{Message: "r"}}}}}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, ok := decode(data, []*diag.Code{codeOne, codeTwo})
		if !ok {
			return
		}
		// Numbers have more than one spelling; what they mean must come back.
		again, ok := decode(encode(rep), []*diag.Code{codeOne, codeTwo})
		if !ok || !reflect.DeepEqual(again, rep) {
			t.Errorf("%+v came back as %+v", rep, again)
		}
	})
}
