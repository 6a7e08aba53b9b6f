package cache

import (
	"crypto/sha256"
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
	"halos.dev/halo/compiler/tape"
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
			if got := NewRecorder(fsys).Look(t.Context(), trace, 2); got != test.same {
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
			if trace, ok := rec.Trace(); ok && NewRecorder(fsys).Look(t.Context(), trace, 1) {
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
	if got, note := s.Find(t.Context(), q, NewRecorder(fsys), 1); !reflect.DeepEqual(got, rep) || note != "note" {
		t.Fatalf("found %+v, want %+v", got, rep)
	}
	later := q
	later.Day = Instant(q.Day).Add(24*time.Hour - 1)
	if got, _ := s.Find(t.Context(), later, NewRecorder(fsys), 1); got == nil {
		t.Error("another time of the same day is another question")
	}
	for name, other := range map[string]Question{
		"the next day":  {Dir: q.Dir, Advise: q.Advise, Day: Instant(q.Day).Add(24 * time.Hour)},
		"without rules": {Dir: q.Dir, Day: q.Day},
		"another place": {Dir: q.Dir + "x", Advise: q.Advise, Day: q.Day},
		"a build":       {Dir: q.Dir, Advise: q.Advise, Day: q.Day, Build: "x"},
	} {
		if got, _ := s.Find(t.Context(), other, NewRecorder(fsys), 1); got != nil {
			t.Errorf("%s: found", name)
		}
	}
	unknown := *s
	unknown.Codes = s.Codes[:1]
	if got, _ := unknown.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
		t.Error("found with a code that does not exist")
	}
	if err := os.WriteFile(s.Program, []byte("2"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
		t.Error("found by another program")
	}
}

func TestDamagedEntry(t *testing.T) {
	s, q, fsys, _ := saved(t)
	good, err := os.ReadFile(s.path(q, runs))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(good); i += 17 {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if err := os.WriteFile(s.path(q, runs), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
			t.Fatalf("found with byte %d of %d changed", i, len(good))
		}
	}
	for _, n := range []int{0, 1, len(begin), len(begin) + 32, len(good) - 1} {
		if err := os.WriteFile(s.path(q, runs), good[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
			t.Fatalf("found in the first %d bytes", n)
		}
	}
}

func TestForeignDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of Unix")
	}
	s, q, fsys, rep := saved(t)
	for _, name := range []string{s.Dir, s.path(q, runs)} {
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
			if got, _ := s.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
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
	if got, _ := s.Find(t.Context(), q, NewRecorder(fsys), 1); got != nil {
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

func FuzzFindings(f *testing.F) {
	codes := []*diag.Code{codeOne, codeTwo}
	write := func(r *report.Report) string {
		t := tape.Writer(nil)
		findings(t, r, codes)
		text, _ := t.Text()
		return string(text)
	}
	f.Add(write(&report.Report{Files: source.Files{{Name: "a.yaml", Size: 3}}, Diagnostics: []diag.Diagnostic{{Code: codeOne, Message: "m", Related: []diag.Related{{Message: "r"}}}}}))
	f.Add("\xff\xff\xff\xff\x0f")
	f.Fuzz(func(t *testing.T, text string) {
		var rep, again report.Report
		first := tape.Reader(text)
		if findings(first, &rep, codes); !first.Done() {
			return
		}
		// Numbers have more than one spelling; what they mean must come back.
		second := tape.Reader(write(&rep))
		if findings(second, &again, codes); !second.Done() || !reflect.DeepEqual(again, rep) {
			t.Errorf("%+v came back as %+v", rep, again)
		}
	})
}

// What an earlier run made is found only for files that are what they were.
func TestParts(t *testing.T) {
	dir, fsys := repo(t)
	rec := NewRecorder(fsys)
	look(t, rec)
	plan := [32]byte{1}
	for _, name := range []string{"a/b.yaml", "a/c.yaml", "d/e/f.yaml"} {
		rec.KeepDocument(name, []byte("document of "+name))
	}
	rec.KeepPlan(plan, []byte("gaps"))
	s := &Store{Dir: filepath.Join(t.TempDir(), "cache"), Program: os.Args[0], Codes: []*diag.Code{codeOne}}
	q := Question{Dir: dir, Day: time.Unix(0, 0)}
	if err := s.Save(q, rec, &report.Report{Files: make(source.Files, few+1)}, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/a/b.yaml", []byte("B"), 0o644); err != nil {
		t.Fatal(err)
	}
	next := NewRecorder(fsys)
	if rep, _ := s.Find(t.Context(), q, next, 1); rep != nil {
		t.Fatal("a changed file went unnoticed")
	}
	want := map[string]bool{"a/b.yaml": false, "a/c.yaml": true, "d/e/f.yaml": true, "halos.yaml": false, "absent": false}
	for name, known := range want {
		f, text, ok := next.Document(name)
		if ok != known || ok && text != "document of "+name {
			t.Errorf("%s: %q, %t", name, text, ok)
		}
		data, _ := os.ReadFile(filepath.Join(dir, name))
		if ok && (f.Name != name || f.Size != int64(len(data)) || f.Digest != sha256.Sum256(data)) {
			t.Errorf("%s is said to be %+v", name, f)
		}
	}
	if text, ok := next.Plan(plan); !ok || text != "gaps" {
		t.Errorf("the plan is %q, %t", text, ok)
	}
	if text, ok := next.Plan([32]byte{2}); ok {
		t.Errorf("a plan that was never made is %q", text)
	}
	// What was found passes on to the next run, which need not know where it came from.
	look(t, next)
	if err := s.Save(q, next, &report.Report{Files: make(source.Files, few+1)}, ""); err != nil {
		t.Fatal(err)
	}
	third := NewRecorder(fsys)
	if rep, _ := s.Find(t.Context(), q, third, 1); rep == nil {
		t.Fatal("an unchanged repo has no findings")
	}
	if err := os.WriteFile(dir+"/d/e/f.yaml", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fourth := NewRecorder(fsys)
	s.Find(t.Context(), q, fourth, 1)
	if _, text, ok := fourth.Document("a/c.yaml"); !ok || text != "document of a/c.yaml" {
		t.Errorf("after two runs, a/c.yaml is %q, %t", text, ok)
	}
	// Entries of another program, or damaged ones, are none.
	data, err := os.ReadFile(s.path(q, made))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(s.path(q, made), data, 0o600); err != nil {
		t.Fatal(err)
	}
	fifth := NewRecorder(fsys)
	s.Find(t.Context(), q, fifth, 1)
	if _, text, ok := fifth.Document("a/c.yaml"); ok {
		t.Errorf("a damaged entry has %q", text)
	}
}
