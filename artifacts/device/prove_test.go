package device

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"halos.dev/halo/artifacts/device/probe"
	"halos.dev/halo/compiler/policy"
)

// managedProbe are managed files as halo renders them, cut to what a probe reads.
var managedProbe = map[string]string{
	policy.ClaudeCode + " /etc/claude-code/managed-settings.json": `{"env":{"ANTHROPIC_BASE_URL":"https://ai.acme.example"},"permissions":{"deny":["Read(**/.env*)","Read(~/.ssh)"]},` +
		`"sandbox":{"enabled":true,"filesystem":{"denyRead":["~/.aws","~/.ssh"]},"network":{"allowedDomains":["*.a.example","ai.acme.example"],"deniedDomains":["paste.example"]}}}`,
	policy.Codex + " /etc/codex/requirements.toml": "default_permissions = \"halo-base\"\nallowed_sandbox_modes = [\"workspace-write\"]\n[experimental_network.domains]\n\"ai.acme.example\" = \"allow\"\n" +
		"\"*.a.example\" = \"allow\"\n\"paste.example\" = \"deny\"\n[model_providers.halo]\nbase_url = \"https://ai.acme.example:8443/v1\"\n[permissions.filesystem]\ndeny_read = [\"~/.aws\", \"~/.ssh\"]\n",
	policy.GeminiCLI + " /etc/gemini-cli/settings.json":               `{"security":{"toolSandboxing":true}}`,
	policy.GeminiCLI + " /etc/gemini-cli/policies/20-halo-paths.toml": "[[rule]]\ntoolName = [\"read_file\"]\ndecision = \"deny\"\ndenyMessage = \"sandbox.protectedPaths ~/.aws\"\n",
	policy.OpenCode + " /etc/opencode/opencode.json":                  `{"$schema":"https://opencode.ai/config.json","permission":{"external_directory":{"*":"ask","~/.aws/*":"deny"}}}`,
}

// program puts an npm package on a device.
func (d Device) program(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(d.Root, filepath.FromSlash(dir), filepath.FromSlash(name), "package.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestProve(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the device of this test is a linux one")
	}
	d := installed(t, managedProbe)
	d.program(t, "usr/lib/node_modules", "@anthropic-ai/claude-code", `{"version":"2.1.332","bin":{"claude":"bin/claude.exe"}}`)
	d.program(t, "home/alice/.nvm/versions/node/v22/lib/node_modules", "@openai/codex", `{"version":"0.171.0","bin":{"codex":"bin/codex.js"}}`)
	d.program(t, "usr/local/lib/node_modules", "@google/gemini-cli", `{"version":"0.61.0","bin":"bundle/gemini.js"}`)
	d.program(t, "usr/local/lib/node_modules", "opencode-ai", `{"version":"1.18.33","bin":{"opencode":"../../escape"}}`)
	if err := os.MkdirAll(filepath.Join(d.Root, "home/alice/.local/share/cursor-agent/versions/2026.9.28"), 0o755); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	plans := map[string]probe.Plan{}
	all := func(o probe.Outcome) []probe.Try {
		return []probe.Try{{Way: probe.Shell, What: "~/.aws", Outcome: o}, {Way: probe.Read, What: "~/.aws", Outcome: o}, {Way: probe.Request, What: "halo-x.example", Outcome: o}}
	}
	findings := map[string]probe.Finding{
		policy.ClaudeCode: {Tries: all(probe.Held)},
		policy.Codex:      {Tries: all(probe.Unknown), Reason: "it hangs"},
		policy.GeminiCLI:  {Tries: append(all(probe.Leaked)[:1], all(probe.Held)[1:]...), Closed: true},
	}
	home := Home{Dir: filepath.Join(d.Root, "home/alice"), Name: "~"}
	r, err := d.Doctor(DoctorOptions{Homes: []Home{home}, Token: "x", Probe: func(p probe.Plan) probe.Finding {
		mu.Lock()
		defer mu.Unlock()
		plans[p.Harness] = p
		return findings[p.Harness]
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK {
		t.Error("a read canary is ok")
	}
	levels := map[string]Level{}
	for _, p := range r.Harnesses {
		levels[p.Harness] = p.Level
		if p.Probe == nil {
			t.Errorf("%s: no word about the probe", p.Harness)
		}
	}
	for id, want := range map[string]Level{policy.ClaudeCode: Proven, policy.Codex: Selected, policy.GeminiCLI: Selected, policy.OpenCode: Selected, policy.CursorCLI: NotPresent} {
		if levels[id] != want {
			t.Errorf("%s is %s, want %s", id, levels[id], want)
		}
	}
	for _, want := range []string{
		"ok proven/claude-code proven: 2.1.332 was run; a command and the file tool did not read the canary of ~/.aws; a command did not reach halo-x.example",
		"warn proven/codex not proven: it hangs",
		"warn posture/gemini-cli probed 0.61.0: a command read the canary of the protected path ~/.aws; known limit: ",
		"warn proven/opencode not probed: the package of the program does not name what to start",
		"info proven/cursor-cli not probed: Cursor CLI has no managed file",
	} {
		if !slices.ContainsFunc(r.Checks, func(c Check) bool { return strings.HasPrefix(string(c.Status)+" "+c.Name+" "+c.Text, want) }) {
			t.Errorf("no line %q in %+v", want, r.Checks)
		}
	}

	claude, codex := plans[policy.ClaudeCode], plans[policy.Codex]
	for what, got := range map[string]string{
		"/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe": strings.TrimPrefix(claude.Program, filepath.ToSlash(d.Root)),
		"/usr/bin":       strings.TrimPrefix(strings.Join(claude.Path, " "), filepath.ToSlash(d.Root)),
		"~/.aws .env*":   strings.Join(claude.Protected, " "),
		"halo-x.example": claude.Denied,
		"https://ai.acme.example https://ai.acme.example:8443":        strings.Join(claude.Gateways, " "),
		probe.ProgramDir + "/node_modules/@openai/codex/bin/codex.js": codex.Program,
		probe.ProgramDir + "/bin":                                     strings.Join(codex.Path, " "),
	} {
		if got != what {
			t.Errorf("got %q, want %q", got, what)
		}
	}
	if len(claude.Programs) != 0 || len(codex.Programs) != 2 || !strings.HasSuffix(claude.Allowed, ".a.example") {
		t.Errorf("plans %+v, %+v", claude, codex)
	}
}

// TestProveDrifted calls nothing proven whose files are not in place.
func TestProveDrifted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the device of this test is a linux one")
	}
	d := installed(t, managedProbe)
	d.program(t, "usr/lib/node_modules", "@openai/codex", `{"version":"0.171.0","bin":{"codex":"bin/codex.js"}}`)
	file := filepath.Join(d.Root, "etc/codex/requirements.toml")
	if err := os.WriteFile(file, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := d.Doctor(DoctorOptions{Homes: []Home{}, Token: "x", Probe: func(probe.Plan) probe.Finding {
		return probe.Finding{Tries: []probe.Try{{Way: probe.Shell, What: "~/.aws", Outcome: probe.Held}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Harnesses {
		if p.Level == Proven {
			t.Errorf("%s is proven", p.Harness)
		}
	}
	if !slices.ContainsFunc(r.Checks, func(c Check) bool {
		return c.Name == "proven/codex" && strings.HasPrefix(c.Text, "held, but not proven")
	}) {
		t.Errorf("checks %+v", r.Checks)
	}
	// Nothing installed, nothing to run.
	r, err = Device{Root: t.TempDir(), OS: "linux", Harnesses: d.Harnesses}.Doctor(DoctorOptions{Homes: []Home{}, Probe: func(probe.Plan) probe.Finding {
		t.Error("a probe ran")
		return probe.Finding{}
	}})
	if err != nil || r.OK {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestClaimsHosts chooses hosts that say something: never a gateway's, never an allowed one as denied.
func TestClaimsHosts(t *testing.T) {
	rows := []struct {
		name                  string
		c                     claims
		def                   string
		wantDenied, wantAllow string
	}{
		{"default deny", claims{allowed: []string{"b.example"}}, "deny", "halo-x.example", "b.example"},
		{"default deny, all of the domain allowed", claims{allowed: []string{"*.example"}, denied: []string{"p.org"}}, "deny", "p.org", "*.example"},
		{"default allow", claims{denied: []string{"p.example"}}, "allow", "p.example", "halo-x.example"},
		{"default allow, a wildcard denied", claims{denied: []string{"*.p.org"}}, "allow", "*.p.org", "halo-x.example"},
		{"nothing denied", claims{allowed: []string{"b.example"}}, "allow", "", ""},
		{"no policy", claims{}, "", "", ""},
		{"only the gateway allowed", claims{allowed: []string{"gw.example"}, gateways: []string{"https://gw.example"}}, "deny", "halo-x.example", ""},
		{"an allowed host that is denied", claims{allowed: []string{"b.example"}, denied: []string{"b.example"}}, "deny", "halo-x.example", ""},
	}
	fits := func(got, want string) bool {
		if suffix, ok := strings.CutPrefix(want, "*"); ok {
			return strings.HasSuffix(got, suffix)
		}
		return got == want
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			denied, allowed := row.c.hosts(row.def, "x", row.c.gateways)
			if !fits(denied, row.wantDenied) || !fits(allowed, row.wantAllow) {
				t.Errorf("got %q and %q, want %q and %q", denied, allowed, row.wantDenied, row.wantAllow)
			}
		})
	}
}

// TestProtectedChoice refuses paths that cannot stand in a room or in a script.
func TestProtectedChoice(t *testing.T) {
	for p, want := range map[string]string{
		"~/.ssh": "home", "~/a/b": "home", ".env*": "name", "*.pem": "name", ".git": "", ".env": "name", "~/.gitconfig": "", "~/.codex/auth.json": "", "~/work": "", "~/work/x": "", "~/": "", "~": "", "~/../x": "", "~/a'b": "", "~/a\nb": "", "~/*.key": "",
		"/etc/shadow": "", "a/b": "", "*": "", "..": "", "$HOME": "", "[ab]": "", "": "",
	} {
		got := ""
		switch {
		case homeDir(p):
			got = "home"
		case workspaceName(p):
			got = "name"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", p, got, want)
		}
	}
}
