package device

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/compiler/policy"
)

// managedOpen are managed files that switch sandbox and egress on and lock nothing else, managedLocked those that lock what can be.
var (
	managedOpen = map[string]string{
		policy.ClaudeCode + " /etc/claude-code/managed-settings.json":      `{"sandbox":{"enabled":true}}`,
		policy.Codex + " /etc/codex/requirements.toml":                     "allowed_sandbox_modes = [\"read-only\", \"workspace-write\"]\n",
		policy.CopilotCLI + " /etc/github-copilot/managed-settings.json":   `{"sandbox":{"enabled":true}}`,
		policy.GeminiCLI + " /etc/gemini-cli/settings.json":                `{"security":{"toolSandboxing":true}}`,
		policy.GeminiCLI + " /etc/gemini-cli/policies/10-halo-egress.toml": "[[rule]]\ntoolName = \"web_fetch\"\ndecision = \"ask_user\"\npriority = 500\n",
		policy.OpenCode + " /etc/opencode/opencode.json":                   `{"permission":{"webfetch":"ask"}}`,
	}
	managedLocked = map[string]string{
		policy.ClaudeCode + " /etc/claude-code/managed-settings.json": `{"sandbox":{"enabled":true,"filesystem":{"allowManagedReadPathsOnly":true}},"allowManagedPermissionRulesOnly":true,` +
			`"permissions":{"disableBypassPermissionsMode":"disable","disableAutoMode":"disable"}}`,
		policy.Codex + " /etc/codex/requirements.toml": "allowed_sandbox_modes = [\"read-only\"]\nallowed_approval_policies = [\"on-request\"]\ndefault_permissions = \"halo-base\"\n" +
			"allow_managed_hooks_only = true\nmodel_provider = \"acme\"\n[allowed_permission_profiles]\nhalo-base = true\n[mcp_servers]\n[otel]\nlog_user_prompt = false\n",
		policy.CopilotCLI + " /etc/github-copilot/managed-settings.json": `{"sandbox":{"enabled":true,"allowBypass":false,"userPolicy":{"filesystem":{"readwritePaths":[]}}},` +
			`"permissions":{"disableBypassPermissionsMode":"disable"},"allowManagedHooksOnly":true,"strictKnownMarketplaces":[]}`,
		policy.GeminiCLI + " /etc/gemini-cli/settings.json":             `{"security":{"toolSandboxing":true,"folderTrust":{"enabled":true}},"hooksConfig":{"enabled":true},"telemetry":{"enabled":true}}`,
		policy.GeminiCLI + " /etc/gemini-cli/policies/30-halo-mcp.toml": "[[rule]]\nmcpName = \"*\"\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 100\n",
		policy.OpenCode + " /etc/opencode/opencode.json":                `{"share":"disabled"}`,
	}
)

// installed makes a device with managed files, as Install leaves it.
func installed(t *testing.T, files map[string]string) Device {
	t.Helper()
	d := Device{Root: filepath.Join(t.TempDir(), "dev"), OS: "linux", Harnesses: all.Harnesses()}
	r := &Record{SchemaVersion: 1, Org: "acme", Version: "1.0.0", Sequence: 1, Digest: "sha256:" + strings.Repeat("0", 64), Target: "ga", Ring: "ga", OS: "linux", Default: "deny", Allowed: 17, Denied: 2}
	contents := map[string][]byte{}
	for key, text := range files {
		id, dest, _ := strings.Cut(key, " ")
		in := Installed{Dest: dest, Harness: id, Mode: "0644", SHA256: digest([]byte(text)), Size: int64(len(text))}
		if canOwn() {
			in.Owner = rootOwner
		}
		contents[dest] = []byte(text)
		r.Files = append(r.Files, in)
	}
	slices.SortFunc(r.Files, func(a, b Installed) int { return strings.Compare(a.Dest, b.Dest) })
	tr, err := d.open(true)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	changes, err := tr.plan(nil, r, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.apply(t.Context(), r, contents, changes, sign.TrustKeys()); err != nil {
		t.Fatal(err)
	}
	return d
}

type weakRow struct {
	Name   string
	Locked bool
	Home   map[string]string
	Env    map[string]string
	Want   []string
}

// TestWeak holds doctor to every setting and variable that it looks for, and every one of those to a row.
func TestWeak(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the device of these rows is a linux one")
	}
	data, err := os.ReadFile("testdata/weak.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rows []weakRow
	if err := yaml.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	devices := map[bool]Device{false: installed(t, managedOpen), true: installed(t, managedLocked)}
	seen := ""
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			home := t.TempDir()
			for name, text := range row.Home {
				file := filepath.Join(home, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var env []string
			for name, v := range row.Env {
				env = append(env, name+"="+v)
			}
			r, err := devices[row.Locked].Doctor(DoctorOptions{Homes: []Home{{home, "~"}}, Environ: env})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range r.Checks {
				if c.Status == OK {
					continue
				}
				line := string(c.Status) + " " + c.Name + " " + c.Text
				got = append(got, line)
				seen += line + "\n"
				if strings.Contains(line+c.Fix, "secret") {
					t.Errorf("content of a file is shown: %s", line)
				}
				if c.Status == Warn && c.Fix == "" {
					t.Errorf("no fix: %s", line)
				}
			}
			for _, want := range row.Want {
				if !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, want) }) {
					t.Errorf("no line %q", want)
				}
			}
			if len(got) != len(row.Want) {
				t.Errorf("%d lines, want %d:\n%s", len(got), len(row.Want), strings.Join(got, "\n"))
			}
			weak := slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, "warn") })
			if r.OK == weak || weak != (len(r.Drift) > 0) {
				t.Errorf("ok is %v with %d drift entries", r.OK, len(r.Drift))
			}
		})
	}
	for _, r := range rules {
		what := strings.Join(r.keys, ".")
		if len(r.keys) == 0 {
			what = r.effect
		}
		if !strings.Contains(seen, what) {
			t.Errorf("no row for %s of %s", what, r.harness)
		}
	}
	for _, v := range variables {
		if !strings.Contains(seen, "sets "+strings.TrimSuffix(v.name, "*")) {
			t.Errorf("no row for the variable %s", v.name)
		}
	}
}

// TestText holds the columns of the report: status, name, text from column 31, and the fix below it.
func TestText(t *testing.T) {
	r := &Report{Checks: []Check{
		{Status: OK, Name: "posture/claude-code", Text: "sandbox: on (managed)"},
		{Status: Warn, Name: "posture/codex", Text: "x sets y", Fix: "remove y"},
	}}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	want := "ok   posture/claude-code      sandbox: on (managed)\nwarn posture/codex            x sets y\n" + fmt.Sprintf("%30s", "") + "fix: remove y\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
