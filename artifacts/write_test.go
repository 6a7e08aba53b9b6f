package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bigPlan is a release with many files whose content tells its version, so that a mixture of two is seen.
func bigPlan(version string, files int) *Plan {
	p := smallPlan()
	p.Manifest.Version = version
	for i := range files {
		p.Add(fmt.Sprintf("targets/r%d/linux/codex/root/etc/f%04d", i%37, i), fmt.Appendf(nil, "%s %d\n", version, i))
	}
	return p
}

func TestWriteRefusesWhatItDidNotWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(out string) error
		want string
	}{
		{"file", func(out string) error { return os.WriteFile(out, []byte("mine"), 0o644) }, "a file"},
		{"link to a release", func(out string) error {
			if err := seal(t, smallPlan()).Write(t.Context(), out+"-real"); err != nil {
				return err
			}
			return os.Symlink(out+"-real", out)
		}, "symbolic link"},
		{"dangling link", func(out string) error { return os.Symlink("none", out) }, "symbolic link"},
		{"other directory", func(out string) error {
			return errors.Join(os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, "notes.txt"), nil, 0o644))
		}, "no manifest.json"},
		{"other manifest", func(out string) error {
			return errors.Join(os.Mkdir(out, 0o755), os.WriteFile(filepath.Join(out, ManifestName), []byte(`{"name":"app"}`), 0o644))
		}, "not a halo release"},
		{"linked manifest", func(out string) error {
			if err := seal(t, smallPlan()).Write(t.Context(), out+"-real"); err != nil {
				return err
			}
			return errors.Join(os.Mkdir(out, 0o755), os.Symlink(filepath.Join(out+"-real", ManifestName), filepath.Join(out, ManifestName)))
		}, "not a halo release"},
		{"release with a file more", func(out string) error {
			return errors.Join(seal(t, fullPlan()).Write(t.Context(), out), os.WriteFile(filepath.Join(out, "packs", "notes.txt"), nil, 0o644))
		}, "packs/notes.txt"},
		{"release with a repository in it", func(out string) error {
			return errors.Join(seal(t, fullPlan()).Write(t.Context(), out), os.Mkdir(filepath.Join(out, ".git"), 0o755))
		}, ".git"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			out := filepath.Join(parent, "out")
			if err := tt.make(out); err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			before := readTree(t, parent)
			err := seal(t, bigPlan("new", 3)).Write(t.Context(), out)
			var refused *OutError
			if !errors.As(err, &refused) || refused.Code != CodeNotRelease || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), out) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if after := readTree(t, parent); !maps.Equal(before, after) {
				t.Error("something changed")
			}
		})
	}
}

func TestWriteReplaces(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "a", "b", "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	key, _ := newKey(t)
	for i, p := range []*Plan{bigPlan("one", 100), bigPlan("two", 3), fullPlan(), bigPlan("one", 100)} {
		r := seal(t, p)
		if i%2 == 0 {
			if _, err := r.Sign(key); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Write(t.Context(), out+string(filepath.Separator)); err != nil {
			t.Fatal(err)
		}
		fresh := filepath.Join(t.TempDir(), "fresh")
		if err := r.Write(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(readTree(t, out), readTree(t, fresh)) {
			t.Errorf("step %d: not the same as written to a new place", i)
		}
		noLeftovers(t, out)
	}
	// A release that is damaged but holds nothing else may be replaced.
	if err := os.Remove(filepath.Join(out, SumsName)); err != nil {
		t.Fatal(err)
	}
	if err := seal(t, fullPlan()).Write(t.Context(), out); err != nil {
		t.Errorf("a damaged release: %v", err)
	}
	if err := seal(t, fullPlan()).Write(t.Context(), string(filepath.Separator)); err == nil {
		t.Error("the root was replaced")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := readTree(t, out)
	if err := seal(t, bigPlan("x", 3)).Write(ctx, out); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if !maps.Equal(before, readTree(t, out)) {
		t.Error("a cancelled run changed the release")
	}
	noLeftovers(t, out)
}

func TestWriteRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := seal(t, fullPlan()).Write(t.Context(), "out"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadManifest("out"); err != nil {
		t.Error(err)
	}
}

// What a killed run leaves is cleared away, the old release put back where two renames were needed, and the directory of a run
// that is alive left alone.
func TestLeftovers(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	if err := seal(t, bigPlan("old", 5)).Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	old := readTree(t, out)
	dead := filepath.Join(parent, ".out"+newMark+"123")
	if err := os.MkdirAll(filepath.Join(dead, "targets"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(out, filepath.Join(parent, ".out"+oldMark+"456")); err != nil {
		t.Fatal(err)
	}
	living, unlock, err := makeTemp(parent, ".out"+newMark)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(living, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{".other" + newMark + "1", ".out-new-1", "out2"} {
		if err := os.Mkdir(filepath.Join(parent, foreign), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := recoverLeftovers(parent, "out", out); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(old, readTree(t, out)) {
		t.Error("the old release did not come back")
	}
	if _, err := os.Lstat(dead); runtime.GOOS != "windows" && !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory of a dead run is still there")
	}
	for _, kept := range []string{filepath.Base(living), ".other" + newMark + "1", ".out-new-1", "out2"} {
		if _, err := os.Lstat(filepath.Join(parent, kept)); err != nil {
			t.Errorf("%s is gone", kept)
		}
	}
	unlock()
}

// The program that is killed: it writes two releases in turn until it dies. HALO_TEST_WRITER names the place.
func TestMain(m *testing.M) {
	out := os.Getenv("HALO_TEST_WRITER")
	if out == "" {
		os.Exit(m.Run())
	}
	files, _ := strconv.Atoi(os.Getenv("HALO_TEST_FILES"))
	fmt.Println("ready")
	first, _ := strconv.Atoi(os.Getenv("HALO_TEST_FIRST"))
	for i := first; ; i++ {
		r, err := bigPlan(strconv.Itoa(i%2), files).Seal()
		if err == nil {
			err = limitedWrite(r, out)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		if os.Getenv("HALO_TEST_ONCE") != "" {
			os.Exit(0)
		}
	}
}

func writer(ctx context.Context, out string, files int, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), append([]string{"HALO_TEST_WRITER=" + out, "HALO_TEST_FILES=" + strconv.Itoa(files)}, env...)...)
	return cmd
}

// A run killed at any instant leaves one of the two releases whole, and the next run finds nothing in its way.
func TestKilledAtAnyInstant(t *testing.T) {
	const files = 150
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	started := time.Now()
	if err := seal(t, bigPlan("0", files)).Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	span := 3 * time.Since(started)
	first := "1"
	versions := map[string]int{}
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for range rounds {
		cmd := writer(t.Context(), out, files, "HALO_TEST_FIRST="+first)
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := pipe.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		// The instant of the kill is what this test varies; nothing is waited for.
		timer := time.AfterFunc(time.Duration(rnd.Int64N(int64(span))), func() { cmd.Process.Kill() })
		cmd.Wait()
		timer.Stop()
		if code := cmd.ProcessState.ExitCode(); code == 3 {
			t.Fatal("a run could not write after the one before it was killed")
		}
		if exchangeWorks(t) {
			m, _, err := ReadManifest(out)
			if err != nil {
				t.Fatalf("after a kill: %v", err)
			}
			if err := checkFiles(t.Context(), DirFS(out), m); err != nil {
				t.Fatalf("after a kill: %v", err)
			}
			if versions[m.Version]++; m.Version == first {
				first = map[string]string{"0": "1", "1": "0"}[first]
			}
		}
	}
	if err := seal(t, bigPlan("last", 3)).Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 1 && runtime.GOOS != "windows" {
		t.Errorf("%d entries are left beside the release (%v)", len(entries)-1, err)
	}
	t.Logf("versions found: %v", versions)
}

// exchangeWorks reports whether names can be swapped in one step here; without, out may be missing for an instant.
func exchangeWorks(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := errors.Join(os.Mkdir(a, 0o755), os.Mkdir(b, 0o755)); err != nil {
		t.Fatal(err)
	}
	return exchange(a, b) == nil
}

// A file that cannot be written whole, as on a full disk, leaves the old release and nothing else.
func TestFullDisk(t *testing.T) {
	if limitFileSize(0) != nil {
		t.Skip("SKIPPED: no way to limit the size of files here, so a full disk was not tried")
	}
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	if err := seal(t, fullPlan()).Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	before := readTree(t, parent)
	// SHA256SUMS of 150 files is larger than the limit, every other file smaller.
	output, err := writer(t.Context(), out, 150, "HALO_TEST_ONCE=1", "HALO_TEST_FSIZE=4096").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !bytes.Contains(output, []byte("too large")) {
		t.Errorf("a run on a full disk: %v %s", err, output)
	}
	if !maps.Equal(before, readTree(t, parent)) {
		t.Error("a run that failed left something")
	}
	if output, err := writer(t.Context(), out, 150, "HALO_TEST_ONCE=1").CombinedOutput(); err != nil {
		t.Errorf("without the limit: %v %s", err, output)
	}
}

// limitedWrite is Write under the limits that the environment names.
func limitedWrite(r *Release, out string) error {
	if s := os.Getenv("HALO_TEST_FSIZE"); s != "" {
		n, _ := strconv.ParseUint(s, 10, 63)
		if err := limitFileSize(n); err != nil {
			return err
		}
	}
	if s := os.Getenv("HALO_TEST_UMASK"); s != "" {
		n, _ := strconv.ParseInt(s, 8, 32)
		setUmask(int(n))
	}
	return r.Write(context.Background(), out)
}

func TestModesWhateverTheUmask(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no permission bits")
	}
	var want map[string]string
	for _, umask := range []string{"022", "000", "002", "077"} {
		out := filepath.Join(t.TempDir(), "out")
		if output, err := writer(t.Context(), out, 40, "HALO_TEST_ONCE=1", "HALO_TEST_UMASK="+umask).CombinedOutput(); err != nil {
			t.Errorf("umask %s: %v %s", umask, err, output)
			continue
		}
		got := readTree(t, out)
		if want == nil {
			want = got
		}
		if !maps.Equal(got, want) {
			t.Errorf("umask %s: other modes or bytes", umask)
		}
	}
	for path, content := range want {
		if !strings.HasPrefix(content, "drwxr-xr-x") && !strings.HasPrefix(content, "-rw-r--r-- ") {
			t.Errorf("%s has mode %.10s", path, content)
		}
	}
}

func TestRootPath(t *testing.T) {
	for dest, want := range map[string]string{
		"/etc/codex/config.toml":                            "root/etc/codex/config.toml",
		`C:\Program Files\ClaudeCode\managed-settings.json`: "root/C/Program Files/ClaudeCode/managed-settings.json",
		"C:/ProgramData/x":                                  "root/C/ProgramData/x",
	} {
		if got := RootPath(dest); got != want {
			t.Errorf("%s: %s, not %s", dest, got, want)
		} else if err := checkPath(got); err != nil {
			t.Error(err)
		}
	}
}
