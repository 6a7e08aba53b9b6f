package artifacts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// repo makes a git repository with one commit and returns a policy directory in it.
func repo(t *testing.T, sub string) (dir string, run func(args ...string)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	root := t.TempDir()
	run = func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x.example", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@x.example", "GIT_COMMITTER_DATE=2026-01-02T03:04:05+01:00", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	dir = filepath.Join(root, filepath.FromSlash(sub))
	put(t, dir, "halos.yaml", "org: acme\n")
	put(t, dir, "rings/ga.yaml", "ga\n")
	put(t, dir, "packs/p/pack.yaml", "p\n")
	put(t, dir, "README.md", "readme\n")
	put(t, dir, ".gitignore", "ignored/\nlocal.yaml\n")
	run("init", "-q")
	run("add", ".")
	run("commit", "-q", "-m", "policy")
	return dir, run
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGitOrigin(t *testing.T) {
	read := []string{"halos.yaml", "rings/ga.yaml", "packs/p/pack.yaml"}
	for i, tt := range []struct {
		name   string
		change func(t *testing.T, dir string, run func(...string))
		read   []string
		dirty  bool
	}{
		{"clean", func(*testing.T, string, func(...string)) {}, nil, false},
		{"touched", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "halos.yaml", "org: acme\n") }, nil, false},
		{"other file changed", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "README.md", "x\n") }, nil, false},
		{"other file added", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "out/manifest.json", "x\n") }, nil, false},
		{"policy changed", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "rings/ga.yaml", "x\n") }, nil, true},
		{"policy changed and staged", func(t *testing.T, dir string, run func(...string)) {
			put(t, dir, "rings/ga.yaml", "x\n")
			run("add", "-A")
		}, nil, true},
		{"staged and taken back", func(t *testing.T, dir string, run func(...string)) {
			put(t, dir, "rings/ga.yaml", "x\n")
			run("add", "-A")
			put(t, dir, "rings/ga.yaml", "ga\n")
		}, nil, true},
		{"pack changed", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "packs/p/pack.yaml", "x\n") }, nil, true},
		{"policy added", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "rings/new.yaml", "x\n") }, []string{"rings/new.yaml"}, true},
		{"policy added in a new directory", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "units/x/new.yaml", "x\n") }, []string{"units/x/new.yaml"}, true},
		{"odd name", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "rings/ü \"x\".yaml", "x\n") }, []string{"rings/ü \"x\".yaml"}, true},
		{"ignored and read", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "local.yaml", "x\n") }, []string{"local.yaml"}, true},
		{"ignored directory and read", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "ignored/a/x.yaml", "x\n") }, []string{"ignored/a/x.yaml"}, true},
		{"ignored and not read", func(t *testing.T, dir string, _ func(...string)) { put(t, dir, "ignored/x.md", "x\n") }, nil, false},
		{"policy removed", func(t *testing.T, dir string, _ func(...string)) { os.Remove(filepath.Join(dir, "rings", "ga.yaml")) }, nil, true},
		{"policy removed and staged", func(t *testing.T, _ string, run func(...string)) {
			run("rm", "-q", "-r", "--ignore-unmatch", ":(glob)**/ga.yaml")
		}, nil, true},
		{"policy renamed", func(t *testing.T, dir string, run func(...string)) {
			os.Rename(filepath.Join(dir, "rings", "ga.yaml"), filepath.Join(dir, "rings", "gb.yaml"))
			run("add", "-A")
		}, nil, true},
		{"other file removed", func(t *testing.T, dir string, _ func(...string)) { os.Remove(filepath.Join(dir, "README.md")) }, nil, false},
		{"hidden change", func(t *testing.T, dir string, run func(...string)) {
			rel, _ := filepath.Rel(strings.TrimSuffix(dir, "/policy dir"), dir)
			run("update-index", "--assume-unchanged", filepath.ToSlash(filepath.Join(rel, "halos.yaml")))
			put(t, dir, "halos.yaml", "x\n")
		}, nil, true},
		{"nested repository", func(t *testing.T, dir string, run func(...string)) {
			put(t, dir, "team/x.yaml", "x\n")
			run("-C", filepath.Join(dir, "team"), "init", "-q")
		}, []string{"team/x.yaml"}, true},
	} {
		// Every other one in a subdirectory, where git and the policy name files differently.
		sub := []string{"", "policy dir"}[i%2]
		t.Run(tt.name, func(t *testing.T) {
			dir, run := repo(t, sub)
			tt.change(t, dir, run)
			o, err := GitOrigin(t.Context(), dir, append(tt.read, read...))
			if err != nil {
				t.Fatal(err)
			}
			if o.Dirty != tt.dirty {
				t.Errorf("dirty is %v", o.Dirty)
			}
			if want := time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC); !o.Time.Equal(want) || !isHex(o.Commit, 40) || o.Reason != "" {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A change outside the policy directory, and the caller's environment, do not matter.
func TestGitOriginIsOfTheDirectory(t *testing.T) {
	dir, run := repo(t, "policy")
	put(t, filepath.Dir(dir), "rings/ga.yaml", "elsewhere\n")
	want, err := GitOrigin(t.Context(), dir, []string{"halos.yaml", "rings/ga.yaml"})
	if err != nil || want.Dirty {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, kv := range []string{"GIT_DIR=/nowhere", "GIT_WORK_TREE=/nowhere", "GIT_INDEX_FILE=/nowhere/index", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de", "GIT_CONFIG_COUNT=x"} {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	if got, err := GitOrigin(t.Context(), dir, []string{"halos.yaml", "rings/ga.yaml"}); err != nil || got != want {
		t.Errorf("with another environment: %+v, %v", got, err)
	}
	// A monitor program that the repository names is not run.
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT"} {
		os.Unsetenv(name)
	}
	marker := filepath.Join(t.TempDir(), "ran")
	run("config", "core.fsmonitor", "touch "+marker+"; false")
	if _, err := GitOrigin(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program from the repository's configuration was run")
	}
}

func TestNoOrigin(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: git is not installed")
	}
	t.Setenv("GIT_CEILING_DIRECTORIES", "")
	dir := t.TempDir()
	if o, err := GitOrigin(t.Context(), dir, nil); err != nil || o != (Origin{Reason: "not a git repository"}) {
		t.Errorf("no repository: %+v, %v", o, err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if o, err := GitOrigin(t.Context(), dir, nil); err != nil || o != (Origin{Reason: "no commit yet"}) {
		t.Errorf("no commit: %+v, %v", o, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := GitOrigin(ctx, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	t.Setenv("PATH", "")
	if o, err := GitOrigin(t.Context(), dir, nil); err != nil || o != (Origin{Reason: "git cannot be run"}) {
		t.Errorf("no git: %+v, %v", o, err)
	}
}

func TestSourceTime(t *testing.T) {
	asOf := time.Date(2026, 5, 6, 7, 8, 9, 10, time.FixedZone("x", 3600))
	commit := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clean, dirty := Origin{Commit: "c", Time: commit}, Origin{Commit: "c", Time: commit, Dirty: true}
	for _, tt := range []struct {
		name  string
		asOf  time.Time
		epoch string
		o     Origin
		want  time.Time
		known bool
		bad   bool
	}{
		{"as of wins", asOf, "5", clean, time.Date(2026, 5, 6, 6, 8, 9, 0, time.UTC), true, false},
		{"epoch wins", time.Time{}, "5", clean, time.Unix(5, 0).UTC(), true, false},
		{"epoch with changes", time.Time{}, "5", dirty, time.Unix(5, 0).UTC(), true, false},
		{"epoch 0", time.Time{}, "0", clean, time.Unix(0, 0).UTC(), true, false},
		{"commit", time.Time{}, "", clean, commit, true, false},
		{"changes", time.Time{}, "", dirty, time.Unix(0, 0).UTC(), false, false},
		{"nothing", time.Time{}, "", Origin{}, time.Unix(0, 0).UTC(), false, false},
		{"bad epoch", time.Time{}, "today", clean, time.Time{}, false, true},
		{"negative epoch", time.Time{}, "-5", clean, time.Time{}, false, true},
		{"signed epoch", time.Time{}, "+5", clean, time.Time{}, false, true},
		{"epoch with a space", time.Time{}, " 5", clean, time.Time{}, false, true},
		{"epoch beyond the year 9999", time.Time{}, "253402300800", clean, time.Time{}, false, true},
		{"last epoch", time.Time{}, "253402300799", clean, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), true, false},
	} {
		got, known, err := SourceTime(tt.asOf, tt.epoch, tt.o)
		if got != tt.want || known != tt.known || (err != nil) != tt.bad {
			t.Errorf("%s: %v, %v, %v", tt.name, got, known, err)
		}
	}
}
