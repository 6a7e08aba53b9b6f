package rendertest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"halos.dev/halo/compiler/policy"
)

// Random writes the body of a profile with each key or without it, in the forms that harnesses take differently.
func Random(rnd *rand.Rand) string {
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
	section("hooks", "managedOnly: true", "items: [{event: "+one(policy.HookEvents...)+", matcher: "+one("Bash", "'Edit|Write'", "'*'", "startup", "'startup|resume'")+", command: run}]")
	section("models", "default: sonnet", "allowed: "+some("sonnet", "haiku", "v/m"), "enforce: true")
	section("telemetry", "enabled: "+one("true", "false"), "otlpEndpoint: 'https://c.example:4318'", "protocol: "+one("grpc", "http/protobuf"), "logPrompts: "+one("true", "false"), "attributes: {a: b}")
	section("env", "A: x", "B_C: ''")
	if rnd.IntN(3) == 0 {
		b.WriteString("instructions: Be careful.\n")
	}
	return b.String()
}
