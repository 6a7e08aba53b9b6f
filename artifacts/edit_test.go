package artifacts

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// files has what lies below a directory, by path.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		if d.IsDir() {
			out[p] = "dir"
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			out[p] = "link"
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, p))
		out[p] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWriteEdits(t *testing.T) {
	edit := func(path, was, data string) Edit {
		e := Edit{Path: path, Data: []byte(data)}
		if was != "" {
			e.Was = []byte(was)
		}
		return e
	}
	all := []Edit{edit("gateway.yaml", "", "g"), edit("profiles/deep/default.yaml", "", "p"), edit("sub/over.yaml", "old", "new"), edit("halos.yaml", "root", "org")}
	done := map[string]string{"gateway.yaml": "g", "profiles": "dir", "profiles/deep": "dir", "profiles/deep/default.yaml": "p", "sub": "dir", "sub/over.yaml": "new", "halos.yaml": "org"}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		want  string
	}{
		{"whole", nil, ""},
		{"a leftover", func(t *testing.T, dir string) { write(t, dir, ".halos.yaml.halo-new-0", "junk") }, ""},
		{"exists", func(t *testing.T, dir string) { write(t, dir, "profiles/deep/default.yaml", "mine") }, "write profiles/deep/default.yaml: file already exists"},
		{"a directory exists", func(t *testing.T, dir string) { write(t, dir, "gateway.yaml/x", "") }, "write gateway.yaml: file already exists"},
		{"changed", func(t *testing.T, dir string) { write(t, dir, "halos.yaml", "other") }, "write halos.yaml: the file changed meanwhile; run halo again"},
		{"gone", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "halos.yaml")) }, "write halos.yaml: no such file or directory"},
		{"no directory", func(t *testing.T, dir string) { write(t, dir, "profiles", "file") }, "is not a directory"},
		{"a link", func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, "halos.yaml"))
			write(t, dir, "real", "root")
			if err := os.Symlink("real", filepath.Join(dir, "halos.yaml")); err != nil {
				t.Skip(err)
			}
		}, "write halos.yaml: not a regular file"},
		{"a linked directory", func(t *testing.T, dir string) {
			write(t, dir, "elsewhere/x", "")
			if err := os.Symlink("elsewhere", filepath.Join(dir, "profiles")); err != nil {
				t.Skip(err)
			}
		}, "is not a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "halos.yaml", "root")
			write(t, dir, "sub/over.yaml", "old")
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			before := filesBelow(t, dir)
			err := WriteEdits(t.Context(), dir, all)
			after := filesBelow(t, dir)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) && runtime.GOOS != "windows" {
					t.Errorf("%v, want %s", err, c.want)
				}
				if !maps.Equal(before, after) {
					t.Errorf("a run that failed left\n%v\nof\n%v", after, before)
				}
				return
			}
			delete(after, ".halos.yaml.halo-new-0")
			if err != nil || !maps.Equal(after, done) {
				t.Errorf("%v: %v", err, after)
			}
		})
	}
}

// TestWriteEditsUndone holds that a run that is stopped after any of its files takes back the others.
func TestWriteEditsUndone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "halos.yaml", "root")
	write(t, dir, "over.yaml", "old")
	if err := os.Chmod(filepath.Join(dir, "over.yaml"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := filesBelow(t, dir)
	for n := range 4 {
		ctx := &stopAfter{Context: t.Context(), n: n}
		err := WriteEdits(ctx, dir, []Edit{{Path: "new/a.yaml", Data: []byte("a")}, {Path: "over.yaml", Was: []byte("old"), Data: []byte("new")}, {Path: "b.yaml", Data: []byte("b")},
			{Path: "halos.yaml", Was: []byte("root"), Data: []byte("org")}})
		if err != context.Canceled || !maps.Equal(before, filesBelow(t, dir)) {
			t.Errorf("stopped after %d: %v, %v", n, err, filesBelow(t, dir))
		}
		if info, err := os.Stat(filepath.Join(dir, "over.yaml")); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
			t.Errorf("stopped after %d: %v %v", n, info.Mode(), err)
		}
	}
}

// stopAfter is a context that is cancelled when it was asked n times.
type stopAfter struct {
	context.Context
	n int
}

func (s *stopAfter) Err() error {
	if s.n--; s.n < 0 {
		return context.Canceled
	}
	return nil
}

// write writes a file below a directory, and the directories above it.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
