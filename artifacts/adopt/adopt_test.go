package adopt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/policy"
)

// from imports files of testdata.
func from(t testing.TB, in Input, names ...string) *Result {
	t.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		in.Files = append(in.Files, draft.File{Name: name, Data: data})
	}
	r, err := Import(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said returns the verdicts of a policy as words.
func said(p *effective.Policy) []string {
	out := []string{"mode " + p.Mode()}
	for _, x := range p.Sandbox.ProtectedPaths.Items {
		out = append(out, "protected "+x.Path.String())
	}
	for _, x := range p.Sandbox.WritableRoots.Items {
		out = append(out, "writable "+x.Path.String())
	}
	for _, x := range p.Permissions.Allow.Items {
		out = append(out, "allow "+x.V)
	}
	for _, x := range p.Permissions.Ask.Items {
		out = append(out, "ask "+x.V)
	}
	for _, x := range p.Permissions.Deny.Items {
		out = append(out, "deny "+x.V)
	}
	for _, x := range p.Models.Allowed.Items {
		out = append(out, "model "+x.V)
	}
	for _, x := range p.MCP.Servers {
		out = append(out, "server "+strings.TrimSpace(x.Name.V+" "+x.URL.V))
	}
	for _, x := range p.MCP.Denied.Items {
		out = append(out, "no server "+x.V)
	}
	for _, x := range p.Hooks.Items {
		out = append(out, "hook "+x.Event.V+" "+x.Matcher.V+" "+x.Command.V)
	}
	for name, set := range map[string]bool{"bypass locked": p.Permissions.DisableBypass.V, "managed servers only": p.MCP.ManagedOnly.V, "managed hooks only": p.Hooks.ManagedOnly.V} {
		if set {
			out = append(out, name)
		}
	}
	if p.Permissions.Mode.IsSet() {
		out = append(out, "start "+p.Permissions.Mode.V)
	}
	slices.Sort(out)
	return out
}

// TestVerdicts compares what is built from imported files with what a person read out of them.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name            string
		files           []string
		harness         string
		allowed, denied string
		verdicts        []string
		dropped, warned []string
	}{
		{"claude", []string{"claude/managed-settings.json"}, policy.ClaudeCode,
			"github.com x.acme.example docs.acme.example ai.acme.example", "secret.acme.example acme.example dead.example pastebin.com 10.0.0.1",
			[]string{"allow Bash(git status)", "ask Bash(git push:*)", "bypass locked", "deny Bash(curl:*)", "hook PreToolUse Bash /usr/local/bin/guard", "managed hooks only",
				"managed servers only", "mode workspace-write", "model haiku", "model sonnet", "no server shady", "protected ~/.aws", "protected ~/.gnupg", "protected ~/.ssh",
				"server mcp.acme.example https://mcp.acme.example/docs", "start plan", "writable /opt/build-cache"},
			[]string{"/$schema", "/forceLoginMethod", "/permissions/deny/2", "/permissions/deny/4", "/sandbox/autoAllowBashIfSandboxed", "/sandbox/excludedCommands/0",
				"/sandbox/filesystem/allowWrite/1", "/sandbox/network/allowedDomains/2", "/sandbox/network/allowedDomains/3", "/env/ACME_TOKEN", "/env/OTEL_EXPORTER_OTLP_HEADERS",
				"/hooks/PreToolUse/0/hooks/0/timeout", "/hooks/PreCompact/0/hooks/0/type", "/hooks/PreCompact/0/hooks/0/command", "/allowedMcpServers/1/serverName", "/allowedMcpServers/2/serverUrl"},
			[]string{"/availableModels/0", "/permissions/deny/2", "/permissions/deny/4", "/sandbox/enabled", "/sandbox/filesystem/denyRead/1", "/sandbox/filesystem/denyWrite/1",
				"/sandbox/network/allowedDomains/0", "/sandbox/network/allowedDomains/2"}},
		{"codex", []string{"codex/requirements.toml", "codex/config.toml"}, policy.Codex,
			"github.com acme.example", "pastebin.com x.com foo.acme.example",
			[]string{"bypass locked", "deny Bash(rm -fr:*)", "deny Bash(rm -rf:*)", "deny Read(//srv/secrets)", "deny Read(~/.ssh)", "managed hooks only", "managed servers only",
				"mode workspace-write", "protected .env*", "server docs https://mcp.acme.example/docs"},
			nil, nil},
		{"copilot", []string{"copilot/managed-settings.json"}, policy.CopilotCLI,
			"github.com x.acme.example", "secret.acme.example x.secret.acme.example acme.example",
			[]string{"bypass locked", "managed hooks only", "mode workspace-write", "protected ~/*.pem", "protected ~/.ssh", "writable /opt/build-cache"},
			[]string{"/permissions/deny/0", "/sandbox/userPolicy/network/allowedHosts/2", "/telemetry/endpoint"},
			[]string{"/sandbox/enabled", "/sandbox/userPolicy/filesystem/deniedPaths/1", "/sandbox/userPolicy/network/allowedHosts/2", "/telemetry/endpoint"}},
		{"gemini", []string{"gemini/settings.json", "gemini/paths.toml"}, policy.GeminiCLI,
			"", "pastebin.com github.com",
			[]string{"ask Bash(git push:*)", "bypass locked", "deny Bash(curl:*)", "deny WebSearch", "managed servers only", "mode workspace-write", "protected .env*",
				"server docs https://mcp.acme.example/docs", "start acceptEdits"},
			[]string{"/security/auth/enforcedType", "/tools/core/0", "/mcp/allowed/1", "/mcpServers/docs/trust", "/admin/secureModeEnabled"}, nil},
		{"opencode", []string{"opencode/opencode.jsonc"}, policy.OpenCode,
			"github.com", "",
			[]string{"ask Bash", "ask WebFetch", "bypass locked", "deny Bash(curl:*)", "mode workspace-write", "model sonnet", "no server shady", "protected .env*",
				"protected /etc/acme", "protected ~/.ssh", "server docs https://mcp.acme.example/docs", "writable /opt/build-cache"},
			[]string{"/permission/bash/git status", "/plugin/0"},
			[]string{"/permission/external_directory/~1etc~1acme", "/permission/read/.env*", "/permission/read/*~1.env*"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := from(t, Input{OS: "linux"}, c.files...)
			if r.Harness != c.harness {
				t.Errorf("files of %s", r.Harness)
			}
			built, err := Prove(t.Context(), r.Name, r.Profile, r.Extra)
			if err != nil {
				t.Fatal(err)
			}
			p := built.Targets[0].Policy
			if got := said(p); !slices.Equal(got, c.verdicts) {
				t.Errorf("got  %q\nwant %q", got, c.verdicts)
			}
			for want, hosts := range map[bool]string{true: c.allowed, false: c.denied} {
				for h := range strings.FieldsSeq(hosts) {
					if got := p.Hosts.Decide(host.Name(h)); got.Allow != want {
						t.Errorf("%s is decided by %s", h, got.Rule())
					}
				}
			}
			var dropped, warned []string
			for _, l := range r.Lines {
				if l.Outcome == draft.Dropped {
					dropped = append(dropped, l.Pointer)
				}
				if l.Warning != "" {
					warned = append(warned, l.Pointer)
				}
			}
			if c.dropped != nil && (c.name != "gemini" && !slices.Equal(dropped, c.dropped) || slices.ContainsFunc(c.dropped, func(s string) bool { return !slices.Contains(dropped, s) })) {
				t.Errorf("dropped %q", dropped)
			}
			if c.warned != nil && !slices.Equal(warned, c.warned) {
				t.Errorf("warned %q", warned)
			}
			if i := slices.IndexFunc(built.Plan(built.Targets[0]).Renderings, func(x *compiler.Rendering) bool { return x.OS == "linux" }); i < 0 || len(built.Plan(built.Targets[0]).Renderings[i].Files) == 0 {
				t.Error("nothing is rendered")
			}
			account(t, r)
		})
	}
}

// TestOpenShell proves that the composed policy allows just what the input says.
func TestOpenShell(t *testing.T) {
	r := from(t, Input{}, "openshell/policy.yaml")
	built, err := Prove(t.Context(), r.Name, r.Profile, r.Extra)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/openshell/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The rule without executables matches nothing, and what is only logged is enforced.
	input, _ := openshell.Parse(0, []byte(strings.Replace(string(data), "protocol: rest\n", "protocol: rest\n        enforcement: enforce\n", 1)))
	files := built.Plan(built.Targets[0]).OpenShell
	if len(files) != 1 {
		t.Fatalf("%d policies", len(files))
	}
	output, found := openshell.Parse(0, files[0].Content)
	if openshell.HasErrors(found) {
		t.Fatal(found)
	}
	if w, looser := openshell.Looser(input, output); looser {
		t.Errorf("looser: %s", w)
	}
	if w, looser := openshell.Looser(output, input); looser {
		t.Errorf("tighter: %s", w)
	}
	p := built.Targets[0].Policy
	if !p.Hosts.Decide("ai.acme.example").Allow || p.Hosts.Decide("github.com").Allow || p.Hosts.Decide("example.org").Allow {
		t.Errorf("the profile decides otherwise:\n%s", r.Profile)
	}
	account(t, r)
}

// TestEveryLeafOnce generates documents and wants every leaf in exactly one line.
func TestEveryLeafOnce(t *testing.T) {
	for _, k := range kinds[:] {
		if !strings.HasSuffix(k.name, ".json") {
			continue
		}
		for seed := range 40 {
			doc, leaves := generated(seed)
			r, err := Import(t.Context(), Input{Harness: k.harness, Files: []draft.File{{Name: k.name, Data: []byte(doc)}}})
			if err != nil {
				t.Fatalf("%s: %v\n%s", k.harness, err, doc)
			}
			seen := map[string]int{}
			for _, l := range r.Lines {
				seen[l.Pointer]++
			}
			for _, l := range leaves {
				if seen[l] != 1 {
					t.Errorf("%s: %s is in %d lines\n%s", k.harness, l, seen[l], doc)
				}
				delete(seen, l)
			}
			if len(seen) > 0 {
				t.Errorf("%s: lines about nothing: %v\n%s", k.harness, seen, doc)
			}
			account(t, r)
		}
	}
}

// words are keys and values of generated documents.
var words = []string{"sandbox", "enabled", "network", "allowedDomains", "permissions", "deny", "allow", "env", "filesystem", "userPolicy", "allowedHosts", "hooks", "PreToolUse",
	"mcpServers", "security", "toolSandboxing", "tools", "unknown", "telemetry", "model"}

var values = []string{`true`, `false`, `1`, `null`, `"github.com"`, `"*"`, `"~/.ssh"`, `"Bash(x:*)"`, `"deny"`, `[]`, `{}`, `["a.example", 7]`, `"WebFetch(domain:*)"`}

// generated returns a document and the pointers of its leaves.
func generated(seed int) (string, []string) {
	next := uint32(seed)*2654435761 + 12345
	pick := func(n int) int {
		next = next*1664525 + 1013904223
		return int(next>>8) % n
	}
	var leaves []string
	var object func(at string, depth int) string
	object = func(at string, depth int) string {
		var parts []string
		used := map[string]bool{}
		for range 1 + pick(4) {
			key := words[pick(len(words))]
			if used[key] {
				continue
			}
			used[key] = true
			pointer := at + "/" + key
			if depth < 3 && pick(2) == 0 {
				parts = append(parts, `"`+key+`": `+object(pointer, depth+1))
				continue
			}
			v := values[pick(len(values))]
			if v == `["a.example", 7]` {
				leaves = append(leaves, pointer+"/0", pointer+"/1")
			} else {
				leaves = append(leaves, pointer)
			}
			parts = append(parts, `"`+key+`": `+v)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	doc := object("", 0)
	return doc, leaves
}

func TestWhose(t *testing.T) {
	for _, c := range []struct{ name, data, want, os string }{
		{"/etc/claude-code/managed-settings.json", "{}", policy.ClaudeCode, "linux"},
		{"/Library/Application Support/GitHubCopilot/managed-settings.json", "{}", policy.CopilotCLI, "darwin"},
		{`C:\ProgramData\OpenAI\Codex\requirements.toml`, "", policy.Codex, "windows"},
		{"managed-settings.json", `{"sandbox": {"userPolicy": {}}}`, policy.CopilotCLI, "linux"},
		{"managed-settings.json", `{"sandbox": {"network": {}}}`, policy.ClaudeCode, "linux"},
		{"managed-settings.json", `{}`, "", "linux"},
		{"policy.yaml", "version: 1\nnetwork_policies: {}\n", OpenShell, "linux"},
		{"x.toml", "[[rule]]\ntoolName = \"x\"\n", policy.GeminiCLI, "linux"},
	} {
		files := []draft.File{{Name: c.name, Data: []byte(c.data)}}
		if got, _ := whose(files, ""); got != c.want || system(files) != c.os {
			t.Errorf("%s %s: got %q, %s", c.name, c.data, got, system(files))
		}
	}
}

// TestHostile feeds in what no reader may fall over.
func TestHostile(t *testing.T) {
	for name, data := range map[string]string{
		"requirements.toml": "a = " + strings.Repeat("[", 100_000),
		"config.toml":       strings.Repeat("a.", 100_000) + "a = 1",
		"opencode.json":     strings.Repeat(`{"a":`, 100_000),
		"opencode.jsonc":    "/* ' */" + strings.Repeat("[", 100_000),
	} {
		if _, err := Import(t.Context(), Input{Files: []draft.File{{Name: name, Data: []byte(data)}}}); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeysWithoutField: a setting that the program has and a profile has not is told from one that nobody knows, and two places of one setting are both explained.
func TestKeysWithoutField(t *testing.T) {
	got, err := Import(t.Context(), Input{Harness: policy.ClaudeCode, Files: []draft.File{{Name: "managed-settings.json", Data: []byte(`{"disableAutoMode": "disable", "permissions": {"disableAutoMode": "disable"},
		"policyHelpers": [], "fastMode": true, "sandbox": {"enabled": true, "ripgrep": {"command": "rg"}}, "claudeMd": "Ask first.", "bogus": 1}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"/disableAutoMode": "kept", "/permissions/disableAutoMode": "mapped", "/policyHelpers": "dropped no field", "/fastMode": "dropped no field",
		"/sandbox/ripgrep/command": "dropped no field", "/claudeMd": "mapped", "/bogus": "dropped knows no such setting", "/sandbox/enabled": "mapped"}
	for _, l := range got.Lines {
		outcome, reason, _ := strings.Cut(want[l.Pointer], " ")
		if string(l.Outcome) != outcome || !strings.Contains(l.Reason, reason) {
			t.Errorf("%s is %s: %s", l.Pointer, l.Outcome, l.Reason)
		}
		delete(want, l.Pointer)
	}
	for pointer := range want {
		t.Errorf("nothing is said about %s", pointer)
	}
	if !strings.Contains(string(got.Profile), "Ask first.") {
		t.Errorf("the instructions are lost:\n%s", got.Profile)
	}
}
