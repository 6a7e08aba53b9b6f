package testscript

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// agentEvent is the part of an event that the tests look at.
type agentEvent struct {
	Event, Dest, Drift, Message string
	Sequence                    int64
	OK                          *bool
	Problems                    []string
}

// agentRun is a running agent.
type agentRun struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startAgent(t *testing.T, root string, args ...string) *agentRun {
	t.Helper()
	home := t.TempDir()
	cmd := halo(t, append([]string{"agent", "--root", root, "--os", "linux", "--home", home}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agentRun{t, cmd, bufio.NewScanner(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return a
}

// wait reads events until one fits. The deadline of the test binary bounds it.
func (a *agentRun) wait(what string, fits func(agentEvent) bool) agentEvent {
	a.t.Helper()
	for a.lines.Scan() {
		var e agentEvent
		if err := json.Unmarshal(a.lines.Bytes(), &e); err != nil {
			a.t.Fatalf("not a JSON line: %s", a.lines.Text())
		}
		if fits(e) {
			return e
		}
	}
	a.t.Fatalf("the agent ended without %s", what)
	return agentEvent{}
}

func (a *agentRun) event(name string) agentEvent {
	a.t.Helper()
	return a.wait(name, func(e agentEvent) bool { return e.Event == name })
}

func (a *agentRun) restored(dest, drift string) {
	a.t.Helper()
	a.wait("restored "+dest+" "+drift, func(e agentEvent) bool { return e.Event == "restored" && e.Dest == dest && e.Drift == drift })
}

// TestAgentRestores changes managed files in every way, and sees each come back, by being watched alone and by being checked at intervals alone.
func TestAgentRestores(t *testing.T) {
	first, second, key := deviceReleases(t)
	root := filepath.Join(t.TempDir(), "dev")
	release := filepath.Join(t.TempDir(), "current")
	if err := os.CopyFS(release, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	run(t, "install", "--release", release, "--key", key, "--ring", "ga", "--root", root, "--os", "linux")
	want := managed(t, root)
	const dest = "/etc/codex/requirements.toml"
	file := filepath.Join(root, dest)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	drifts := []struct {
		name, drift string
		do          func() error
	}{
		{"changed", "changed", func() error { return os.WriteFile(file, []byte("mine"), 0o644) }},
		{"deleted", "missing", func() error { return os.Remove(file) }},
		{"replaced by a link", "not-regular", func() error {
			if err := os.WriteFile(elsewhere, []byte("mine"), 0o644); err != nil {
				return err
			}
			return os.Rename(link(t, elsewhere), file)
		}},
		{"mode", "mode", func() error { return os.Chmod(file, 0o666) }},
		{"replaced by an empty directory", "not-regular", func() error {
			if err := os.Rename(file, filepath.Join(t.TempDir(), "away")); err != nil {
				return err
			}
			return os.Mkdir(file, 0o755)
		}},
		{"with its directory", "missing", func() error { return os.RemoveAll(filepath.Dir(file)) }},
	}
	for _, mode := range []string{"24h", "100ms"} {
		t.Run(mode, func(t *testing.T) {
			a := startAgent(t, root, "--interval", mode)
			if e := a.event("posture"); e.OK == nil || !*e.OK {
				t.Fatalf("posture is %v at the start: %v", e.OK, e.Problems)
			}
			for _, d := range drifts {
				if err := d.do(); err != nil {
					t.Fatalf("%s: %v", d.name, err)
				}
				a.wait("restored after "+d.name, func(e agentEvent) bool { return e.Event == "restored" && e.Dest == dest })
				if got := managed(t, root); got[strings.TrimPrefix(dest, "/")] != want[strings.TrimPrefix(dest, "/")] {
					t.Fatalf("%s: not restored:\n%s", d.name, got[strings.TrimPrefix(dest, "/")])
				}
				if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o644 {
					t.Fatalf("%s: restored as %v, %v", d.name, info, err)
				}
			}
			if data, err := os.ReadFile(elsewhere); err != nil || string(data) != "mine" {
				t.Errorf("what the link named was changed: %q, %v", data, err)
			}
		})
	}
	t.Run("release", func(t *testing.T) {
		a := startAgent(t, root, "--interval", "100ms")
		a.event("posture")
		// The release disappears: files are still restored.
		if err := os.Rename(release, release+".away"); err != nil {
			t.Fatal(err)
		}
		a.wait("the missing release", func(e agentEvent) bool { return e.Event == "failed" && strings.Contains(e.Message, "no new release") })
		if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		a.restored(dest, "changed")
		// A newer one is taken, and the older one is not taken back.
		next := filepath.Join(t.TempDir(), "next")
		if err := os.CopyFS(next, os.DirFS(second)); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, release); err != nil {
			t.Fatal(err)
		}
		if e := a.event("installed"); e.Sequence != 2 {
			t.Fatalf("sequence %d was installed", e.Sequence)
		}
		if err := os.Rename(release, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(release+".away", release); err != nil {
			t.Fatal(err)
		}
		a.wait("the refusal of the older release", func(e agentEvent) bool {
			return e.Event == "failed" && strings.Contains(e.Message, "sequence 1 is older")
		})
		// A cached copy that was damaged is never written.
		if err := filepath.WalkDir(filepath.Join(root, "var/lib/halo/files"), func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return os.WriteFile(p, []byte("mine"), 0o644)
		}); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		a.wait("the damaged copy", func(e agentEvent) bool {
			return e.Event == "failed" && e.Dest == dest && strings.Contains(e.Message, "damaged")
		})
	})
}

// link makes a link beside nothing, to be renamed into place.
func link(t *testing.T, to string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestAgentKilled kills the agent 200 times, at points spread over a start that restores: every managed file is the drifted or the whole one.
func TestAgentKilled(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	first, _, key := deviceReleases(t)
	root := filepath.Join(t.TempDir(), "dev")
	run(t, "install", "--release", first, "--key", key, "--ring", "ga", "--root", root, "--os", "linux")
	want := managed(t, root)
	const drifted = "drifted, and long enough that a torn file would show\n"
	corrupt := func() {
		for name := range want {
			if err := os.WriteFile(filepath.Join(root, name), []byte(drifted), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	corrupt()
	once := []string{"agent", "--once", "--root", root, "--os", "linux", "--home", t.TempDir()}
	start := time.Now()
	run(t, once...)
	length := time.Since(start)
	killed, restored := 0, 0
	for i := range rounds {
		corrupt()
		cmd := halo(t, once...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(length*time.Duration(i)/time.Duration(rounds), func() { cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		for name, text := range managed(t, root) {
			switch {
			case strings.HasSuffix(name, ".halo-new"):
			case text == want[name]:
				restored++
			case text != drifted:
				t.Fatalf("round %d: %s is neither the drifted nor the whole file:\n%s", i, name, text)
			}
		}
	}
	run(t, once...)
	for name, text := range managed(t, root) {
		if text != want[name] {
			t.Errorf("%s was not restored after the last kill, or is a leftover", name)
		}
	}
	if killed == 0 || restored == 0 {
		t.Errorf("%d of %d runs were killed and %d files were restored by then, so nothing was tested", killed, rounds, restored)
	}
}

// TestAgentFull keeps running while the device has no room and while it cannot be written to, and restores when it can.
func TestAgentFull(t *testing.T) {
	first, _, key := deviceReleases(t)
	root := t.TempDir()
	script := `mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
"$2" install --release "$3" --key "$4" --ring ga --root "$1" --os linux >/dev/null || exit 1
head -c 1000000 /dev/zero > "$1/fill" 2>/dev/null
: > "$1/etc/codex/requirements.toml"; head -c 1000000 /dev/zero >> "$1/fill" 2>/dev/null
mkfifo "$1.out"; mkdir "$1.home"
"$2" agent --root "$1" --os linux --home "$1.home" --interval 100ms > "$1.out" & agent=$!
exec 3< "$1.out"
seek() { while read -r line <&3; do case $line in *"$1"*) return;; esac; done; exit 2; }
seek 'no space left on device'
rm "$1/fill"
seek '"event":"restored"'
echo drift > "$1/etc/codex/requirements.toml"
seek '"event":"restored"'
n=0; kill -STOP $agent; rm "$1/etc/codex/requirements.toml"
until mount -o remount,ro "$1" 2>/dev/null; do
	kill -CONT $agent; n=$((n+1)); [ $n -lt 500 ] || exit 3; kill -STOP $agent; rm -f "$1/etc/codex/requirements.toml"
done
kill -CONT $agent
seek 'read-only file system'
mount -o remount,rw "$1"
seek '"event":"restored"'
kill $agent; seek '"event":"stop"'; wait $agent`
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script, "sh", root, filepath.Join(bin, "halo"), first, key)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 || strings.Contains(string(out), "unshare failed") || strings.Contains(string(out), "Operation not permitted") {
		t.Skipf("no file system may be mounted here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
