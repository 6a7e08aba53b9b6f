package testscript

import (
	"bytes"
	"encoding/xml"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// deviceRepo is a policy whose release has files of several harnesses; other makes each of them different.
func deviceRepo(t *testing.T, other bool) string {
	t.Helper()
	dir := t.TempDir()
	hosts, more := "github.com", ""
	if other {
		hosts, more = "gitlab.com, github.com", "  gemini-cli: {version: 0.61.0}\n"
	}
	policy := "apiVersion: halos.dev/v1\nkind: Profile\nname: base\npermissions: {sandbox: workspace-write, disableBypass: true}\n" +
		"egress: {default: deny, allowedDomains: [" + hosts + "]}\nharnesses:\n  claude-code: {version: 2.1.332}\n  codex: {version: 0.171.0}\n" + more +
		"---\napiVersion: halos.dev/v1\nkind: Ring\nname: ga\norder: 1\nprofile: base\nmembership: {default: true}\n"
	for name, text := range map[string]string{"halos.yaml": "org: acme\n", "policy.yaml": policy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// deviceReleases builds and signs two releases, the second newer, and returns them with the public key.
func deviceReleases(t *testing.T) (first, second, key string) {
	t.Helper()
	dir := t.TempDir()
	key = filepath.Join(dir, "k.pub")
	run(t, "keygen", "--out", filepath.Join(dir, "k"))
	first, second = filepath.Join(dir, "r1"), filepath.Join(dir, "r2")
	for i, out := range []string{first, second} {
		run(t, "build", "--quiet", deviceRepo(t, i == 1), "--out", out, "--key", filepath.Join(dir, "k.key"), "--sequence", string(rune('1'+i)), "--as-of", "2026-11-30T00:00:00Z")
	}
	return first, second, key
}

func halo(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "halo"), args...)
	cmd.Env = append(os.Environ(), "HALO_KEY_PASSWORD=test")
	return cmd
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := halo(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("halo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// managed returns the files below etc of a device.
func managed(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "etc"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestInstallKilled kills installations at points spread over their whole run: every managed file is the old or the new one, whole, and the next run finishes.
func TestInstallKilled(t *testing.T) {
	const rounds = 40
	first, second, key := deviceReleases(t)
	template := filepath.Join(t.TempDir(), "template")
	install := func(release, root string) []string {
		return []string{"install", "--release", release, "--key", key, "--ring", "ga", "--root", root, "--os", "linux"}
	}
	run(t, install(first, template)...)
	before := managed(t, template)
	whole := filepath.Join(t.TempDir(), "whole")
	copyDevice(t, template, whole)
	start := time.Now()
	run(t, install(second, whole)...)
	length := time.Since(start)
	after := managed(t, whole)
	if len(before) < 2 || len(after) <= len(before) {
		t.Fatalf("releases with %d and %d files show nothing", len(before), len(after))
	}
	killed := 0
	for i := range rounds {
		root := filepath.Join(t.TempDir(), "dev")
		copyDevice(t, template, root)
		cmd := halo(t, install(second, root)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(length*time.Duration(i)/rounds, func() { cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		timer.Stop()
		for name, text := range managed(t, root) {
			if strings.HasSuffix(name, ".halo-new") {
				continue
			}
			if text != before[name] && text != after[name] {
				t.Fatalf("round %d: %s is neither the old nor the new file:\n%s", i, name, text)
			}
		}
		run(t, install(second, root)...)
		got := managed(t, root)
		for name, text := range after {
			if got[name] != text {
				t.Fatalf("round %d: %s is not the new file after the next run", i, name)
			}
		}
		if len(got) != len(after) {
			t.Fatalf("round %d: the next run left %d files, want %d", i, len(got), len(after))
		}
	}
	if killed == 0 {
		t.Error("no run was killed, so nothing was tested")
	}
}

func copyDevice(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	// CopyFS opens modes to the group; a device has them as installed.
	err := filepath.WalkDir(to, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(p, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstallFull installs on a file system that has no room left: nothing changes, and the error names a file. It needs the right to mount.
func TestInstallFull(t *testing.T) {
	first, second, key := deviceReleases(t)
	root := t.TempDir()
	script := `mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
"$2" install --release "$3" --key "$5" --ring ga --root "$1" --os linux || exit 1
head -c 1000000 /dev/zero > "$1/fill" 2>/dev/null
"$2" install --release "$4" --key "$5" --ring ga --root "$1" --os linux && exit 2
find "$1/etc" -name '*.halo-new' | grep . && exit 3
"$2" install --release "$3" --key "$5" --ring ga --root "$1" --os linux --dry-run | grep -c keep || exit 4
rm "$1/fill"; mount -o remount,ro "$1" || exit 77
"$2" install --release "$4" --key "$5" --ring ga --root "$1" --os linux && exit 5
exit 0`
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-c", script, "sh", root, filepath.Join(bin, "halo"), first, second, key)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 || bytes.Contains(out, []byte("unshare failed")) || bytes.Contains(out, []byte("Operation not permitted")) {
		t.Skipf("no file system may be mounted here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("no space left on device")) || !bytes.Contains(out, []byte("read-only file system")) {
		t.Errorf("the cause is not named:\n%s", out)
	}
}

// TestServices reads the service definitions of examples/device with the tools of their systems, where they are there, and as XML.
func TestServices(t *testing.T) {
	dir := filepath.Join("..", "examples", "device")
	for name, tool := range map[string][]string{
		"halo-agent.service":    {"systemd-analyze", "verify"},
		"dev.halos.agent.plist": {"plistutil", "-i"},
		"halo-agent.xml":        nil,
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune(" \t\n<>", r) }), " ")
		words = strings.ReplaceAll(words, " /string string ", " ")
		if !strings.Contains(words, "agent --interval 1m") {
			t.Errorf("%s does not start halo agent --interval 1m", name)
		}
		if !strings.HasSuffix(name, ".service") {
			for d := xml.NewDecoder(bytes.NewReader(data)); ; {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if tool == nil {
			continue
		}
		if _, err := exec.LookPath(tool[0]); err != nil {
			t.Logf("%s is not here to read %s", tool[0], name)
			continue
		}
		// systemd wants the program to be there.
		file := filepath.Join(t.TempDir(), name)
		data = bytes.ReplaceAll(data, []byte("/usr/local/bin/halo"), []byte(filepath.Join(bin, "halo")))
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), tool[0], append(tool[1:], file)...).CombinedOutput(); err != nil || strings.HasPrefix(tool[0], "systemd") && len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
