package artifacts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// blame prints the answers for the lines 1 to n of a file: c for a commit, s for one at which a shallow clone ends, else the reason.
func blame(t *testing.T, dir, file string, n int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]int, n)
	for i := range lines {
		lines[i] = i + 1
	}
	var out []string
	answers := Blame(t.Context(), dir, file, data, lines)
	for _, i := range lines {
		switch a := answers[i]; {
		case (a.Commit == "") == (a.Reason == "") || a.Commit != "" && (len(a.Commit) != 40 || a.Time.Format("2006-01-02 15:04") != "2026-01-02 02:04"):
			t.Errorf("line %d: %+v", i, a)
		case a.Shallow:
			out = append(out, "s")
		case a.Commit != "":
			out = append(out, "c")
		default:
			out = append(out, a.Reason)
		}
	}
	return strings.Join(out, ", ")
}

func TestBlame(t *testing.T) {
	const dirty = "not committed, or beside a change that is not"
	dir, run := repo(t, "sub/policy")
	put(t, dir, "base.yaml", "one\ntwo\nthree\nfour\nfive\n")
	run("add", ".")
	run("commit", "-q", "-m", "base")
	for _, c := range []struct{ name, content, want string }{
		{"unchanged", "one\ntwo\nthree\nfour\nfive\n", "c, c, c, c, c"},
		{"other line endings", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\n", "c, c, c, c, c"},
		{"a changed line", "one\ntwo\n3\nfour\nfive\n", "c, c, " + dirty + ", c, c"},
		{"a line more", "one\ntwo\nnew\nthree\nfour\nfive\n", "c, c, " + dirty + ", c, c"},
		{"a line less", "one\ntwo\nfour\nfive\n", "c, c, c, c"},
		{"two changes", "0\ntwo\nthree\nfour\n0\n", strings.TrimSuffix(strings.Repeat(dirty+", ", 5), ", ")},
	} {
		put(t, dir, "base.yaml", c.content)
		if got := blame(t, dir, "base.yaml", strings.Count(c.want, ",")+1-strings.Count(c.want, "committed, or")); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
	put(t, dir, "new.yaml", "x\n")
	if got := blame(t, dir, "new.yaml", 1); got != "the file is not in the last commit" {
		t.Error(got)
	}
	put(t, dir, "base.yaml", "one\ntwo\n")
	if got := Blame(t.Context(), dir, "base.yaml", []byte("one\ntwo\n"), []int{7}); got[7].Reason != dirty {
		t.Error(got)
	}
}

// TestBlameRunsNoProgram holds git to the files: neither a filter nor a text conversion that the configuration names is run.
func TestBlameRunsNoProgram(t *testing.T) {
	dir, run := repo(t, "")
	mark := filepath.Join(t.TempDir(), "ran")
	put(t, dir, "base.yaml", "one\n")
	put(t, dir, ".gitattributes", "*.yaml diff=x filter=x\n")
	run("add", ".")
	run("commit", "-q", "-m", "base")
	run("config", "diff.x.textconv", "touch "+mark+"; cat")
	run("config", "filter.x.clean", "touch "+mark+"; cat")
	run("config", "blame.ignoreRevsFile", "revs")
	put(t, dir, "revs", "# none\n")
	if got := blame(t, dir, "base.yaml", 1); got != "c" {
		t.Error(got)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("git blame ran a program of the repository's configuration")
	}
}

func TestBlameShallow(t *testing.T) {
	dir, run := repo(t, "")
	put(t, dir, "base.yaml", "one\n")
	run("add", ".")
	run("commit", "-q", "-m", "second")
	put(t, dir, "base.yaml", "one\ntwo\n")
	run("commit", "-q", "-a", "-m", "third")
	clone := filepath.Join(t.TempDir(), "clone")
	run("clone", "-q", "--depth", "2", "file://"+dir, clone)
	if got := blame(t, clone, "base.yaml", 2); got != "s, c" {
		t.Error(got)
	}
}

func TestBlameWithoutGit(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "x.yaml", "x\n")
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if got := blame(t, dir, "x.yaml", 1); got != "not a git repository" {
		t.Error(got)
	}
	t.Setenv("PATH", "")
	if got := blame(t, dir, "x.yaml", 1); got != "git cannot be run" {
		t.Error(got)
	}
}
