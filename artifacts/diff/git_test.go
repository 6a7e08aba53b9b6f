package diff

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// gitRepo makes a repository of files, all committed.
func gitRepo(t *testing.T, files map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "init", "-q", "-b", "main")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "one")
	return dir
}

func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@acme.example", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// TestTree holds the tree of a revision to the rules of file systems and to the bytes that were committed.
func TestTree(t *testing.T) {
	files := map[string]string{"policy/halos.yaml": "org: acme\n", "policy/a/b/c.yaml": "x\r\n", "policy/a/d.yaml": "", "policy/ä.yaml": "y", "other.txt": "z", ".gitattributes": "*.yaml export-ignore text eol=crlf\n"}
	dir := gitRepo(t, files)
	tree, err := OpenTree(t.Context(), filepath.Join(dir, "policy"), "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if len(tree.Commit) != 40 {
		t.Errorf("commit %q", tree.Commit)
	}
	if err := fstest.TestFS(tree, "halos.yaml", "a/b/c.yaml", "a/d.yaml", "ä.yaml"); err != nil {
		t.Error(err)
	}
	// The line endings are those of the commit, which git made of the file.
	want := map[string]string{"halos.yaml": "org: acme\n", "a/b/c.yaml": "x\n", "a/d.yaml": "", "ä.yaml": "y"}
	n := 0
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		data, err := fs.ReadFile(tree, p)
		if string(data) != want[p] {
			t.Errorf("%s is %q, want %q", p, data, want[p])
		}
		return err
	})
	if err != nil || n != len(want) {
		t.Errorf("%d files, %v", n, err)
	}
	for _, name := range []string{"missing", "a/missing", "../other.txt", "/a", ""} {
		if _, err := tree.Open(name); err == nil {
			t.Errorf("%q opens", name)
		}
	}
	if _, err := tree.ReadDir("halos.yaml"); err == nil {
		t.Error("a file is listed")
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if err := tree.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}

func TestTreeRefuses(t *testing.T) {
	dir := gitRepo(t, map[string]string{"policy/halos.yaml": "org: acme\n"})
	for rev, says := range map[string]string{
		"nothing": "neither a directory nor a revision", "--help": "neither a directory nor a revision", "": "neither a directory nor a revision", "HEAD:policy": "neither a directory nor a revision", "HEAD\n": "neither a directory nor a revision",
	} {
		if _, err := OpenTree(t.Context(), filepath.Join(dir, "policy"), rev); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("revision %q: %v", rev, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTree(t.Context(), filepath.Join(dir, "new"), "HEAD"); err == nil || !strings.Contains(err.Error(), "has no directory new") {
		t.Error(err)
	}
	if _, err := OpenTree(t.Context(), t.TempDir(), "HEAD"); err == nil {
		t.Error("a directory outside a repository opens")
	}
	if _, err := MergeBase(t.Context(), dir, "HEAD", "nothing"); err == nil {
		t.Error("a merge base with nothing")
	}
	run(t, dir, "checkout", "-q", "--orphan", "other")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "two")
	if _, err := MergeBase(t.Context(), dir, "main", "other"); err == nil || !strings.Contains(err.Error(), "no commit in common") {
		t.Error(err)
	}
}

// TestTreeLinks holds that links are links, and that a submodule, whose files the revision does not hold, is refused.
func TestTreeLinks(t *testing.T) {
	dir := gitRepo(t, map[string]string{"halos.yaml": "org: acme\n"})
	if err := os.Symlink("halos.yaml", filepath.Join(dir, "link.yaml")); err != nil {
		t.Skip(err)
	}
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "link")
	tree, err := OpenTree(t.Context(), dir, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if info, err := fs.Lstat(tree, "link.yaml"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error(info, err)
	}
	if _, err := tree.Open("link.yaml"); err == nil {
		t.Error("a link opens")
	}
	if _, err := tree.ReadLink("link.yaml"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	run(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+tree.Commit+",sub")
	run(t, dir, "commit", "-q", "-m", "sub")
	if _, err := OpenTree(t.Context(), dir, "HEAD"); err == nil || !strings.Contains(err.Error(), "submodule at sub") {
		t.Error(err)
	}
}
