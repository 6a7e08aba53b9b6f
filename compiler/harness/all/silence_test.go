package all

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/rendertest"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// TestNothingIsDroppedInSilence takes every value out of many policies, one at a time: where the files stay the same without it, a gap has to name its field, or the entry.
func TestNothingIsDroppedInSilence(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	said := map[string]bool{}
	for range 150 {
		body := randomBody(rnd)
		for _, h := range Harnesses() {
			if !slices.Contains(strict, h.ID) {
				continue
			}
			goos := policy.OSes[rnd.IntN(3)]
			tg := rendertest.Target(t, h.ID, h.Known.String(), goos, body)
			files, gaps := h.Render(tg)
			whole := string(rendertest.Print(files, nil))
			for _, v := range effective.Values(tg.Policy) {
				if v.Field == "harnesses."+h.ID+".version" || v.Value == "[]" || follows(tg.Policy, v) {
					continue
				}
				less := tg
				less.Policy = tg.Policy.Without(func(key string, entry int) bool { return key == v.Field && entry == v.Entry })
				rest, _ := h.Render(less)
				if string(rendertest.Print(rest, nil)) != whole {
					continue
				}
				if slices.ContainsFunc(gaps, func(g harness.Gap) bool { return names(g, v) }) {
					continue
				}
				key := h.ID + " " + v.Field
				if !said[key] {
					said[key] = true
					t.Errorf("%s on %s: %s = %s changes nothing and no gap says so\n%s", h.ID, goos, v.Key, v.Value, body)
				}
			}
		}
	}
}

// follows reports whether a value says what follows from another one anyway.
func follows(p *effective.Policy, v effective.Value) bool {
	t := &p.Telemetry
	switch v.Field {
	case "sandbox.mode", "permissions.sandboxRequired", "egress.default":
		return true
	case "telemetry.otlpEndpoint", "telemetry.protocol":
		// Nothing is sent, or the protocol is the one without which it would be.
		return t.OTLPEndpoint.IsSet() && (!t.Enabled.V || v.Value == "http/protobuf")
	case "permissions.deny":
		// The web search is off.
		return strings.HasPrefix(v.Value, "Web") && (p.EgressRules() || slices.ContainsFunc(p.Permissions.Deny.Items, func(s source.Str) bool { return s.V == "WebSearch" }))
	case "mcp.denied":
		// The closed list has no denied server.
		return p.MCP.ManagedOnly.V
	case "models.enforce":
		// The list has a gap.
		return len(p.Models.Allowed.Items) > 0
	}
	return false
}

func names(g harness.Gap, v effective.Value) bool {
	return g.Field == v.Field && (v.Entry < 0 || g.Entry == "" || strings.Contains(g.Entry, v.Value) || strings.Contains(v.Value, g.Entry) || v.Field == "hooks.items" || v.Field == "models.allowed")
}

// randomBody writes a profile with each key or without it.
func randomBody(rnd *rand.Rand) string {
	one := func(from ...string) string { return from[rnd.IntN(len(from))] }
	some := func(from ...string) string {
		out := []string{}
		for _, s := range from {
			if rnd.IntN(3) == 0 {
				out = append(out, s)
			}
		}
		b, _ := json.Marshal(out)
		return string(b)
	}
	var b strings.Builder
	section := func(name string, keys ...string) {
		kept := slices.DeleteFunc(keys, func(string) bool { return rnd.IntN(2) == 0 })
		if len(kept) > 0 && rnd.IntN(2) == 0 {
			fmt.Fprintf(&b, "%s: {%s}\n", name, strings.Join(kept, ", "))
		}
	}
	section("permissions", "mode: "+one("plan", "default", "acceptEdits", "auto"), "allow: "+some("Read", "Bash(git status:*)"), "ask: "+some("Bash", "Edit(src/**)", "Bash(git push:*)"),
		"deny: "+some("Bash(curl:*)", "WebSearch", "Read(./secrets/**)", "mcp__evil", "Write", "Edit", "WebFetch(domain:x.example)", "Task"), "sandboxRequired: true", "disableBypass: true")
	section("sandbox", "mode: "+one("workspace-write", "read-only"), "protectedPaths: "+some("~/.ssh", ".env*", "/opt/keys", "secrets/**", "**/*.{pem,key}", "a b", "[ab]x", "/*/x", "ü"))
	if !strings.Contains(b.String(), "read-only") && strings.Contains(b.String(), "sandbox: {") {
		s := b.String()
		b.Reset()
		b.WriteString(strings.Replace(s, "sandbox: {", "sandbox: {writableRoots: "+some("/opt/cache", "~/.cache/x", "/tmp/y")+", ", 1))
	}
	section("egress", "default: "+one("deny", "allow"), "deniedDomains: "+some("pastebin.com", "*.pastebin.com", "x.example"))
	section("mcp", "managedOnly: true", "servers: [{name: a, url: 'https://x.example/mcp', headers: {Authorization: 'Bearer ${T}'}}, {name: b.c, command: [b, -x]}, {name: u_v, command: [c, $HOME]}]", "denied: "+some("evil", "b.c", "k_l"))
	section("hooks", "managedOnly: true", "items: [{event: "+one(policy.HookEvents...)+", matcher: "+one("Bash", "'Edit|Write'", "'*'")+", command: run}]")
	section("models", "default: sonnet", "allowed: "+some("sonnet", "haiku", "v/m"), "enforce: true")
	section("telemetry", "enabled: "+one("true", "false"), "otlpEndpoint: 'https://c.example:4318'", "protocol: "+one("grpc", "http/protobuf"), "logPrompts: "+one("true", "false"), "attributes: {a: b}")
	section("env", "A: x", "B_C: ''")
	if rnd.IntN(3) == 0 {
		b.WriteString("instructions: Be careful.\n")
	}
	return b.String()
}
