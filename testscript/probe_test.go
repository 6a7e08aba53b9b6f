package testscript

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const probePolicy = `apiVersion: halos.dev/v1
kind: Profile
name: base
permissions: {sandbox: workspace-write, disableBypass: true}
sandbox: {protectedPaths: ["~/.secret", ".hidden*"]}
egress: {default: deny, allowedDomains: [open.example]}
harnesses: {claude-code: {version: 2.1.332}, codex: {version: 0.171.0}}
---
apiVersion: halos.dev/v1
kind: Ring
name: ga
order: 1
profile: base
membership: {default: true}
`

// TestProbe runs halo doctor --probe on a device whose only program stands for a CLI that holds the policy, or does not.
func TestProbe(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("SKIP: only root on Linux can make the namespaces that the programs run in")
	}
	for _, tool := range []string{"unshare", "mount", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("SKIP: this test needs " + tool)
		}
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../artifacts/device/probe/testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	write("modules/@anthropic-ai/claude-code/package.json", `{"version": "2.1.332", "bin": {"claude": "bin/claude"}}`, 0o644)
	write("modules/@anthropic-ai/claude-code/bin/claude", string(text), 0o755)
	write("repo/halos.yaml", "org: acme\n", 0o644)
	write("repo/policy.yaml", probePolicy, 0o644)
	write("home/.keep", "", 0o644)
	run(t, "keygen", "--out", filepath.Join(dir, "k"))
	run(t, "build", "--quiet", filepath.Join(dir, "repo"), "--out", filepath.Join(dir, "r"), "--key", filepath.Join(dir, "k.key"), "--sequence", "1", "--as-of", "2026-11-30T00:00:00Z")
	doctor := func(t *testing.T, mode string, args ...string) (string, int) {
		t.Helper()
		args = append([]string{"-m", "sh", "testdata/device.sh", filepath.Join(bin, "halo"), filepath.Join(dir, "r"), filepath.Join(dir, "k.pub"), "ga", filepath.Join(dir, "modules"), mode,
			"--home", filepath.Join(dir, "home")}, args...)
		cmd := exec.CommandContext(t.Context(), "unshare", args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "HALO_SECRET=1"}
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		} else if ok {
			return string(out), exit.ExitCode()
		}
		return string(out), 0
	}
	rows := []struct {
		mode   string
		status int
		want   []string
	}{
		{"hold", 0, []string{"\nok   proven/claude-code       proven: 2.1.332 was run; a command and the file tool did not read the canary of ~/.secret; a command and the file tool did " +
			"not read the canary of .hidden*; a command did not reach halo-", "\ninfo proven/codex             not probed: no installed program was found\n"}},
		{"leak", 1, []string{"\nwarn posture/claude-code      probed 2.1.332: a command read the canary of the protected path ~/.secret", "the file tool read the canary of the protected path .hidden*",
			"a command reached halo-", "fix: "}},
		{"tool", 1, []string{"the file tool read the canary of the protected path ~/.secret"}},
		{"crash", 1, []string{"\nwarn proven/claude-code       not proven: it ended with status 3 before it answered a tool call: \"cannot start: no such sandbox\"\n"}},
	}
	for _, row := range rows {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			out, status := doctor(t, row.mode, "--probe")
			if status != row.status {
				t.Errorf("exit status %d, want %d:\n%s", status, row.status, out)
			}
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if strings.Contains(out, "canary-0-") || strings.Contains(out, "canary-1-") {
				t.Errorf("the text of a canary is shown:\n%s", out)
			}
			if row.mode != "hold" && strings.Contains(out, "proven: ") && strings.Contains(out, "was run") {
				t.Errorf("proven:\n%s", out)
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		out, status := doctor(t, "hold", "--probe", "--output", "json")
		var r struct {
			OK        bool
			Harnesses []struct {
				Harness, Level string
				Probe          *struct {
					Reason string
					Tries  []struct{ Way, What, Outcome string }
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		if status != 0 || !r.OK || len(r.Harnesses) != 2 || r.Harnesses[0].Level != "proven" || len(r.Harnesses[0].Probe.Tries) != 5 || r.Harnesses[1].Level != "selected" ||
			r.Harnesses[1].Probe.Reason == "" {
			t.Errorf("exit status %d:\n%s", status, out)
		}
	})
	t.Run("without", func(t *testing.T) {
		t.Parallel()
		// Without --probe nothing is run, whatever it would do.
		out, status := doctor(t, "leak")
		if status != 0 || strings.Contains(out, "prob") {
			t.Errorf("exit status %d:\n%s", status, out)
		}
	})
}
