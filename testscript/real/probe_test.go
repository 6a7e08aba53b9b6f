//go:build linux

package real

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// proofs are what halo doctor --probe finds on each CLI under testdata/policy: the outcomes for ~/.aws by a command and by the file tool, for .env* the same, and
// for a host on no list. What leaks is what halo reports as a gap of that CLI.
var proofs = map[string]string{
	"claude-code": "held held held held held",
	"codex":       "held held held held held",
	"copilot-cli": "held held leaked leaked held",
	"gemini-cli":  "leaked held leaked held held",
	"opencode":    "leaked held leaked held leaked",
}

// TestRealProbe has halo prove the policy on a device with the real CLIs, from the signed release to the answer.
func TestRealProbe(t *testing.T) {
	needCLIs(t)
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("SKIP: unshare is not installed")
	}
	dir := t.TempDir()
	halo := filepath.Join(dir, "halo")
	env := append(os.Environ(), "HALO_KEY_PASSWORD=test")
	for _, argv := range [][]string{
		{"go", "build", "-o", halo, "../../cmd/halo"},
		{halo, "keygen", "--out", filepath.Join(dir, "k")},
		{halo, "build", "testdata/policy", "--out", filepath.Join(dir, "release"), "--key", filepath.Join(dir, "k.key"), "--sequence", "1", "--as-of", "2026-11-30T00:00:00Z", "--quiet"},
	} {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
		}
	}
	var modules []string
	for _, c := range CLIs() {
		if prefix, _, err := c.Prefix(os.Getenv("HALO_CI_CACHE")); err == nil {
			modules = append(modules, filepath.Join(prefix, "node_modules"))
		}
	}
	if len(modules) == 0 {
		t.Skip("SKIP: no CLI is installed")
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "../testdata/device.sh", halo, filepath.Join(dir, "release"), filepath.Join(dir, "k.pub"), "ring3-ga", strings.Join(modules, ":"), "",
		"--home", home, "--probe", "--probe-limit", "8m", "--output", "json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		t.Fatalf("%v\n%s", err, out)
	}
	var r struct {
		Harnesses []struct {
			Harness, Version, Level string
			Probe                   struct {
				Reason string
				Tries  []struct{ Outcome string }
			}
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, h := range r.Harnesses {
		t.Run(h.Harness, func(t *testing.T) {
			if h.Version == "" {
				t.Skipf("SKIP: %s is not installed", h.Harness)
			}
			var got []string
			for _, try := range h.Probe.Tries {
				got = append(got, try.Outcome)
			}
			if s := strings.Join(got, " "); s != proofs[h.Harness] {
				t.Errorf("got %q, want %q: %s", s, proofs[h.Harness], h.Probe.Reason)
			}
			if proven := !slices.Contains(got, "leaked"); (h.Level == "proven") != proven {
				t.Errorf("level %s with %q", h.Level, got)
			}
		})
	}
	if len(r.Harnesses) < len(proofs) {
		t.Errorf("%d harnesses:\n%s", len(r.Harnesses), out)
	}
}
