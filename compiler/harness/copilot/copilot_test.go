package copilot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

func TestGoldens(t *testing.T) {
	h := Harness()
	rendertest.Renders(t, h, "worked", "1.0.102", rendertest.Worked)
	rendertest.Renders(t, h, "everything", "1.0.102", rendertest.Everything)
	rendertest.Renders(t, h, "read-only", "1.0.102", "sandbox: {mode: read-only}\negress: {default: deny}\n")
	rendertest.Renders(t, h, "denies", "1.0.93", "egress: {deniedDomains: [bad.example]}\ntelemetry: {enabled: true, protocol: grpc, otlpEndpoint: 'https://otel.acme.example:4317', logPrompts: true}\nmcp: {servers: [{name: any, url: 'https://mcp.acme.example'}], managedOnly: true}\n")
	rendertest.Renders(t, h, "old", "1.0.92", rendertest.Everything)
	rendertest.Renders(t, h, "nothing", "1.0.102", "{}")
}

func TestTable(t *testing.T) { rendertest.Complete(t, Harness()) }

// document is what the program reads of the settings, written here a second time.
type document struct {
	Sandbox *struct {
		Enabled    bool
		UserPolicy struct {
			Network struct {
				AllowOutbound              *bool
				AllowedHosts, BlockedHosts []string
			}
		}
	}
	Permissions struct{ LimitTo []string }
}

// sandboxAllows is the program's rule for commands (observed on 1.0.102, linux): a blocked name blocks its subdomains, a blocked wildcard only these, an empty
// allow list restricts nothing.
func (d *document) sandboxAllows(n host.Name) bool {
	if d.Sandbox == nil {
		return true
	}
	net := d.Sandbox.UserPolicy.Network
	if net.AllowOutbound != nil && !*net.AllowOutbound {
		return false
	}
	match := func(p string, below bool) bool {
		if s, wild := strings.CutPrefix(p, "*."); wild {
			return strings.HasSuffix(string(n), "."+s)
		}
		return string(n) == p || below && strings.HasSuffix(string(n), "."+p)
	}
	if slices.ContainsFunc(net.BlockedHosts, func(p string) bool { return match(p, true) }) {
		return false
	}
	return len(net.AllowedHosts) == 0 || slices.ContainsFunc(net.AllowedHosts, func(p string) bool { return match(p, false) })
}

// fetchAllows adds the boundary of the tools, where *.x includes x.
func (d *document) fetchAllows(n host.Name) bool {
	if !d.sandboxAllows(n) {
		return false
	}
	return d.Permissions.LimitTo == nil || slices.ContainsFunc(d.Permissions.LimitTo, func(e string) bool {
		h := strings.TrimSuffix(strings.TrimPrefix(e, "Domain("), ")")
		if s, wild := strings.CutPrefix(h, "*."); wild {
			return string(n) == s || strings.HasSuffix(string(n), "."+s)
		}
		return string(n) == h
	})
}

func TestHostsAreNeverLooser(t *testing.T) {
	for _, body := range append(slices.Clone(rendertest.Policies), rendertest.Everything) {
		for _, goos := range policy.OSes {
			tg := rendertest.Target(t, policy.CopilotCLI, "1.0.102", goos, body)
			files, gaps := render(tg)
			var doc document
			for _, f := range files {
				if f.Dest == settingsPath(goos) {
					if err := json.Unmarshal(f.Content, &doc); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, n := range rendertest.Hosts(tg.Policy.Hosts) {
				want := tg.Policy.Hosts.Decide(n)
				for c, got := range map[harness.Concept]bool{harness.Egress: doc.sandboxAllows(n), harness.Fetch: doc.fetchAllows(n)} {
					if got && !want.Allow {
						t.Errorf("%s %s %s: allowed, but %s denies", body, c, n, want.Rule())
					}
					if !got && want.Allow {
						// A blocked name above the host must be named.
						named := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == c && strings.HasSuffix(string(n), "."+g.Entry) })
						if !named {
							t.Errorf("%s %s %s: refused, but %s allows and no gap says so", body, c, n, want.Rule())
						}
					}
				}
			}
			rendertest.Sound(t, Harness(), tg)
		}
	}
}

func TestEveryProtectedPathIsDeniedOrNamed(t *testing.T) {
	for _, goos := range policy.OSes {
		tg := rendertest.Target(t, policy.CopilotCLI, "1.0.102", goos, rendertest.Everything)
		files, gaps := render(tg)
		text := string(rendertest.Print(files, nil))
		for _, r := range tg.Policy.Sandbox.ProtectedPaths.Items {
			p := r.Path.String()
			named := slices.ContainsFunc(gaps, func(g harness.Gap) bool {
				return g.Concept == harness.ProtectedPaths && (g.Entry == p || g.Entry == "" && g.Grade == harness.None)
			})
			if !strings.Contains(text, `"`+p+`"`) && !named {
				t.Errorf("%s: %s is neither denied nor named by a gap", goos, p)
			}
		}
	}
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		version, body, key string
		want               bool
	}{
		{"1.0.92", rendertest.Worked, `"sandbox"`, false},
		{"1.0.93", rendertest.Worked, `"allowBypass": false`, true},
		{"1.0.92", rendertest.Worked, `"limitTo"`, false},
		{"1.0.82", "mcp: {managedOnly: true, denied: [shady]}", `"allowedMcpServers"`, false},
		{"1.0.82", "mcp: {managedOnly: true, denied: [shady]}", `"deniedMcpServers"`, true},
		{"1.0.83", "mcp: {managedOnly: true}", `"allowedMcpServers": []`, true},
		{"1.0.82", "hooks: {managedOnly: true}", `"allowManagedHooksOnly"`, false},
		{"1.0.83", "hooks: {managedOnly: true}", `"allowManagedHooksOnly"`, true},
		{"1.0.78", "permissions: {disableBypass: true}", `"disableBypassPermissionsMode"`, false},
		{"1.0.79", "permissions: {disableBypass: true}", `"disableBypassPermissionsMode"`, true},
		{"1.0.101", "permissions: {mode: default}", `"defaultMode"`, false},
		{"1.0.102", "permissions: {mode: default}", `"defaultMode": "manual"`, true},
		{"1.0.102", "permissions: {mode: auto}", `"defaultMode"`, false},
		{"1.0.101", "telemetry: {logPrompts: true}", `"capture"`, false},
		{"1.0.102", "telemetry: {logPrompts: true}", `"prompts": true`, true},
	} {
		tg := rendertest.Target(t, policy.CopilotCLI, c.version, "linux", c.body)
		files, gaps := render(tg)
		if got := strings.Contains(string(rendertest.Print(files, nil)), c.key); got != c.want {
			t.Errorf("%s at %s: %s rendered %t, want %t", c.body, c.version, c.key, got, c.want)
		}
		if !c.want && len(gaps) < 2 {
			t.Errorf("%s at %s: nothing says that %s is missing: %v", c.body, c.version, c.key, gaps)
		}
		rendertest.Sound(t, Harness(), tg)
	}
}

// TestBoundaryWithoutSandbox: the tools that fetch have a boundary of their own, which may be empty, and commands have none.
func TestBoundaryWithoutSandbox(t *testing.T) {
	for _, x := range []struct {
		version, egress string
		limit           []string
		held            bool
	}{
		{"1.0.102", "{default: deny}", []string{}, true},
		{"1.0.102", "{allowedDomains: [a.example]}", []string{"Domain(a.example)"}, true},
		{"1.0.102", "{allowedDomains: [a.example, '*.b.example'], deniedDomains: [c.example]}", []string{"Domain(a.example)"}, true},
		{"1.0.102", "{allowedDomains: ['*.b.example']}", []string{}, true},
		{"1.0.102", "{deniedDomains: [c.example]}", nil, false},
		{"1.0.92", "{default: deny}", nil, false},
	} {
		tg := rendertest.Target(t, policy.CopilotCLI, x.version, "linux", "sandbox: {mode: 'off'}\negress: "+x.egress+"\n")
		files, gaps := render(tg)
		var doc document
		for _, f := range files {
			if err := json.Unmarshal(f.Content, &doc); err != nil {
				t.Fatal(err)
			}
		}
		if got := doc.Permissions.LimitTo; (got == nil) != (x.limit == nil) || !slices.Equal(got, x.limit) {
			t.Errorf("%s at %s: limitTo %q, want %q", x.egress, x.version, got, x.limit)
		}
		none := func(c harness.Concept) bool {
			return slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Concept == c && g.Grade == harness.None })
		}
		if !none(harness.Egress) || none(harness.Fetch) == x.held {
			t.Errorf("%s at %s: gaps %v", x.egress, x.version, gaps)
		}
		rendertest.Sound(t, Harness(), tg)
	}
}

func TestADeniedNameIsSaidToBeAName(t *testing.T) {
	for body, want := range map[string]bool{"mcp: {denied: [shady]}": true, "mcp: {denied: ['https://mcp.example/x']}": false, "mcp: {managedOnly: true, denied: [shady]}": false} {
		_, gaps := render(rendertest.Target(t, policy.CopilotCLI, "1.0.102", "linux", body))
		if got := slices.ContainsFunc(gaps, func(g harness.Gap) bool { return g.Field == "mcp.denied" && g.Grade == harness.Overridable }); got != want {
			t.Errorf("%s: gap %t, want %t: %v", body, got, want, gaps)
		}
	}
}

func TestOldPinSaysWhichVersionIsNeeded(t *testing.T) {
	_, gaps := render(rendertest.Target(t, policy.CopilotCLI, "1.0.92", "darwin", rendertest.Worked))
	if !slices.ContainsFunc(gaps, func(g harness.Gap) bool {
		return g.Concept == harness.Sandbox && strings.Contains(g.Reason, "1.0.93") && strings.Contains(g.Reason, "copilot-cli")
	}) {
		t.Errorf("no gap names 1.0.93: %v", gaps)
	}
}

func TestTooLargeIsNotRendered(t *testing.T) {
	var b strings.Builder
	b.WriteString("egress:\n  allowedDomains:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "    - host%04d.example\n", i)
	}
	tg := rendertest.Target(t, policy.CopilotCLI, "1.0.102", "linux", b.String())
	files, gaps := render(tg)
	if len(files) != 0 {
		t.Errorf("%d bytes rendered", len(files[0].Content))
	}
	if len(gaps) == 0 || gaps[0].Grade != harness.None {
		t.Errorf("gaps %v", gaps)
	}
	rendertest.Sound(t, Harness(), tg)
}

// TestTampered changes every single value of several renderings.
func TestTampered(t *testing.T) {
	for _, version := range []string{"1.0.79", "1.0.83", "1.0.93", "1.0.102"} {
		for _, goos := range policy.OSes {
			for _, body := range []string{rendertest.Worked, rendertest.Everything, "sandbox: {mode: read-only}\negress: {default: deny}\n", shared} {
				rendertest.Tampered(t, Harness(), rendertest.Target(t, policy.CopilotCLI, version, goos, body), func(string, string) bool { return false })
			}
		}
	}
}

// shared leaves servers and hooks to the user, and everything open.
const shared = `
permissions: {mode: default, disableBypass: true}
sandbox: {mode: "off"}
egress: {allowedDomains: [a.example], deniedDomains: [b.example]}
mcp: {denied: [shady, "https://mcp.example/x"]}
hooks: {items: [{event: PreToolUse, command: /opt/acme/guard}, {event: PreToolUse, command: /opt/acme/log}, {event: Stop, command: /opt/acme/stop}]}
telemetry: {enabled: false, logPrompts: true, attributes: {team: platform}}
`

func TestMistakes(t *testing.T) {
	tg := rendertest.Target(t, policy.CopilotCLI, "1.0.102", "linux", rendertest.Everything)
	rendertest.Edits(t, Harness(), tg, []rendertest.Edit{
		{"scheme in an allowed host", `"ai.acme.example"`, `"https://ai.acme.example"`, "drops it"},
		{"port in an allowed host", `"ai.acme.example"`, `"ai.acme.example:443"`, "drops it"},
		{"inner wildcard", `"*.evil.example"`, `"a.*.evil.example"`, "drops it"},
		{"list as a text", `"blockedHosts": [
          "*.evil.example",
          "blocked.example"
        ]`, `"blockedHosts": "blocked.example"`, "is not a list"},
		{"empty allow list", `"allowedHosts": [
          "*.acme.example",
          "a.blocked.example",
          "ai.acme.example"
        ]`, `"allowedHosts": []`, "restricts nothing"},
		{"no outbound beside a list", `"allowLocalNetwork": false`, `"allowLocalNetwork": false, "allowOutbound": false`, "blocks the allowed hosts too"},
		{"local network open", `"allowLocalNetwork": false`, `"allowLocalNetwork": true`, "asks for"},
		{"denied host dropped", `"blocked.example"`, `"other.example"`, "lacks blocked.example"},
		{"allowed host added", `"ai.acme.example"`, `"evil.acme.test"`, "not the policy's list"},
		{"scheme in the boundary", `Domain(ai.acme.example)`, `Domain(https://ai.acme.example)`, "empties the list"},
		{"boundary with another family", `Domain(ai.acme.example)`, `WebFetch(ai.acme.example)`, "empties the list"},
		{"boundary wider than the list", `Domain(ai.acme.example)`, `Domain(other.example)`, "adds Domain(other.example)"},
		{"glob in denied paths", `"~/.ssh"`, `"~/.ssh*"`, "never matches"},
		{"relative denied path", `"~/.ssh"`, `".ssh"`, "never matches"},
		{"protected path dropped", `"~/.ssh"`, `"~/.gnupg"`, "lacks ~/.ssh"},
		{"bypass allowed", `"allowBypass": false`, `"allowBypass": true`, "asks for"},
		{"sandbox off", `"enabled": true,
    "failIfUnavailable"`, `"enabled": false,
    "failIfUnavailable"`, "asks for"},
		{"fails open", `"failIfUnavailable": true,`, ``, "asks for"},
		{"roots left to the user", `"readwritePaths"`, `"readonlyPaths"`, "is a key that"},
		{"bypass lock of a wrong type", `"disable"`, `true`, "is not a text"},
		{"bypass lock misspelt", `"disableBypassPermissionsMode"`, `"disableBypassPermissionMode"`, "is a key that"},
		{"list without its lock", `"allowManagedMcpServersOnly": true,`, ``, "without its lock"},
		{"server by name", `"serverUrl": "https://mcp.acme.example/docs"`, `"serverName": "docs"`, "by its name"},
		{"server by wildcard", `https://mcp.acme.example/docs`, `https://mcp.acme.example/*`, "more than one server"},
		{"two matchers", `"serverUrl": "https://mcp.acme.example/docs"`, `"serverUrl": "https://mcp.acme.example/docs", "serverName": "docs"`, "exactly one"},
		{"denied server dropped", `"shady"`, `"shiny"`, "does not deny"},
		{"hooks unlocked", `"allowManagedHooksOnly": true`, `"allowManagedHooksOnly": false`, "asks for"},
		{"endpoint without a scheme", `"https://otel.internal.acme.example:4318"`, `"otel.internal.acme.example:4318"`, "has no scheme"},
		{"protocol it does not speak", `"http/protobuf"`, `"grpc"`, "want one of"},
		{"key twice", `"allowBypass": false,`, `"allowBypass": false, "allowBypass": true,`, "twice"},
		{"trailing comma", `"permissions": {`, `"permissions": {,`, "not JSON"},
		{"byte order mark", "{\n", "\xef\xbb\xbf{\n", "byte order mark"},
		{"bypass value", `"manual"`, `"bypassPermissions"`, "switches the protection off"},
		{"secret", `"platform"`, `"ghp_0123456789abcdef"`, "a GitHub token"},
		{"hook event", `"sessionStart"`, `"SessionStartx"`, "is a key that"},
		{"cwd hidden", `"allowBypass": false`, `"addCurrentWorkingDirectory": false, "allowBypass": false`, "is a key that"},
	})
	files, _ := render(tg)
	files[0].Mode = 0o666
	if len(check(tg, files)) == 0 {
		t.Error("a file that others can write is not found")
	}
	files[0].Mode, files[0].Content = 0o644, append(files[0].Content, strings.Repeat(" ", maxBytes)...)
	if !slices.ContainsFunc(check(tg, files), func(f harness.Finding) bool { return strings.Contains(f.Message, "65536") }) {
		t.Error("a file that is too large is not found")
	}
}

func BenchmarkRender(b *testing.B) {
	tg := rendertest.Target(b, policy.CopilotCLI, "1.0.102", "linux", rendertest.Everything)
	for b.Loop() {
		render(tg)
	}
}
