package effective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// resolver loads documents given as KIND NAME BODY, where the body is the rest of a mapping in one line.
func resolver(t testing.TB, docs ...string) *Resolver {
	t.Helper()
	var text strings.Builder
	for _, d := range docs {
		f := strings.SplitN(d, " ", 3)
		for len(f) < 3 {
			f = append(f, "")
		}
		body := f[2]
		if body != "" {
			body = ", " + body
		}
		fmt.Fprintf(&text, "---\n{apiVersion: halos.dev/v1, kind: %s, name: %s%s}\n", f[0], f[1], body)
	}
	var diags diag.List
	repo := policy.Load(t.Context(), fstest.MapFS{"halos.yaml": {Data: []byte("org: acme\n")}, "x.yaml": {Data: []byte(text.String())}}, policy.Options{}, &diags)
	if diags.Errors() > 0 {
		for _, d := range diags.Sorted() {
			t.Errorf("%d:%d %s: %s", d.Pos.Line(), d.Pos.Col(), d.Path, d.Message)
		}
		t.FailNow()
	}
	return NewResolver(repo)
}

// merged returns the effective policy of a parent and a child profile.
func merged(t *testing.T, parent, child string) *Policy {
	t.Helper()
	return resolver(t, "Profile parent "+parent, "Profile child "+strings.TrimSuffix("extends: parent, "+child, ", ")).Profile("child")
}

// values prints the values of a policy as key=value, without the indexes of lists.
func values(p *Policy) map[string]string {
	out := map[string]string{}
	for _, v := range Values(p) {
		key, _, _ := strings.Cut(v.Key, "[")
		if old, ok := out[key]; ok {
			v.Value = old + " " + v.Value
		}
		out[key] = v.Value
	}
	return out
}

// TestMerge has a row for every field: what a child makes of its parent.
func TestMerge(t *testing.T) {
	for _, c := range []struct{ parent, child, key, want string }{
		// Scalars: the child's value when it writes one, false included.
		{"permissions: {mode: plan}", "", "permissions.mode", "plan"},
		{"permissions: {mode: plan}", "permissions: {mode: auto}", "permissions.mode", "auto"},
		{"permissions: {disableBypass: true}", "permissions: {disableBypass: false}", "permissions.disableBypass", "false"},
		{"permissions: {disableBypass: true}", "permissions: {}", "permissions.disableBypass", "true"},
		{"permissions: {sandboxRequired: true}", "permissions: {sandboxRequired: false}", "permissions.sandboxRequired", "false"},
		{"sandbox: {mode: read-only}", "permissions: {sandbox: workspace-write}", "sandbox.mode", "workspace-write"},
		{"permissions: {sandbox: read-only}", "sandbox: {mode: 'off'}", "sandbox.mode", "off"},
		{"sandbox: {policy: a}", "sandbox: {policy: b}", "sandbox.policy", "b"},
		{"egress: {default: deny}", "egress: {default: allow}", "egress.default", "allow"},
		{"models: {default: a, enforce: true}", "models: {enforce: false}", "models.enforce", "false"},
		{"models: {default: a}", "models: {default: b}", "models.default", "b"},
		{"mcp: {managedOnly: true}", "mcp: {managedOnly: false}", "mcp.managedOnly", "false"},
		{"hooks: {managedOnly: true}", "hooks: {managedOnly: false}", "hooks.managedOnly", "false"},
		{"telemetry: {enabled: true}", "telemetry: {enabled: false}", "telemetry.enabled", "false"},
		{"telemetry: {otlpEndpoint: 'https://a.example'}", "telemetry: {otlpEndpoint: 'https://b.example'}", "telemetry.otlpEndpoint", "https://b.example"},
		{"telemetry: {protocol: grpc}", "telemetry: {protocol: http/protobuf}", "telemetry.protocol", "http/protobuf"},
		{"telemetry: {logPrompts: true}", "telemetry: {logPrompts: false}", "telemetry.logPrompts", "false"},
		{"instructions: a", "instructions: b", "instructions", "b"},
		// Lists that allow are replaced, and [] clears them.
		{"permissions: {allow: [a, b]}", "", "permissions.allow", "a b"},
		{"permissions: {allow: [a, b]}", "permissions: {allow: [c, c]}", "permissions.allow", "c"},
		{"permissions: {allow: [a, b]}", "permissions: {allow: []}", "permissions.allow", "[]"},
		{"permissions: {ask: [a]}", "permissions: {ask: [b]}", "permissions.ask", "b"},
		{"models: {allowed: [a, b]}", "models: {allowed: [b]}", "models.allowed", "b"},
		{"egress: {allowedDomains: [a.example, b.example]}", "egress: {allowedDomains: [c.example, c.example]}", "egress.allowedDomains", "c.example"},
		{"egress: {allowedDomains: [a.example]}", "egress: {allowedDomains: []}", "egress.allowedDomains", "[]"},
		{"egress: {presets: [vcs]}", "egress: {presets: [package-registries]}", "egress.presets", "package-registries"},
		{"sandbox: {writableRoots: [/opt/a]}", "sandbox: {writableRoots: [/opt/b, /opt/b/]}", "sandbox.writableRoots", "/opt/b"},
		// Lists that deny or protect only grow.
		{"permissions: {deny: [a, b]}", "permissions: {deny: [b, c]}", "permissions.deny", "a b c"},
		{"permissions: {deny: [a]}", "permissions: {deny: []}", "permissions.deny", "a"},
		{"egress: {deniedDomains: [a.example]}", "egress: {deniedDomains: [b.example, a.example]}", "egress.deniedDomains", "a.example b.example"},
		{"egress: {deniedDomains: [a.example]}", "egress: {deniedDomains: []}", "egress.deniedDomains", "a.example"},
		{"sandbox: {protectedPaths: [~/.ssh]}", "sandbox: {protectedPaths: [~/.aws, ~/.ssh/]}", "sandbox.protectedPaths", "~/.ssh ~/.aws"},
		{"mcp: {denied: [a]}", "mcp: {denied: [b]}", "mcp.denied", "a b"},
		{"hooks: {items: [{event: Stop, command: a}]}", "hooks: {items: [{event: Stop, command: b}, {event: Stop, command: a}]}", "hooks.items", "Stop a Stop b"},
		{"require: [{concept: egress, harness: codex, grade: default}]", "require: [{concept: egress, harness: codex, grade: enforced}]", "require", "egress on codex: default egress on codex: enforced"},
		// Servers are replaced as a whole list; maps are merged by key.
		{"mcp: {servers: [{name: a, command: [x]}]}", "mcp: {servers: [{name: b, command: [y]}]}", "mcp.servers", "b y"},
		{"mcp: {servers: [{name: a, command: [x]}]}", "mcp: {managedOnly: true}", "mcp.servers", "a x"},
		{"env: {A: 1x, B: 2x}", "env: {B: 3x, C: 4x}", "env.B", "3x"},
		{"env: {A: 1x, B: 2x}", "env: {B: 3x, C: 4x}", "env.A", "1x"},
		{"telemetry: {attributes: {a: x}}", "telemetry: {attributes: {b: y}}", "telemetry.attributes.a", "x"},
		{"harnesses: {codex: {version: 1.0.0, model: a}}", "harnesses: {codex: {version: 2.0.0}}", "harnesses.codex.model", "a"},
		{"harnesses: {codex: {version: 1.0.0, model: a}}", "harnesses: {codex: {version: 2.0.0}}", "harnesses.codex.version", "2.0.0"},
		{"harnesses: {codex: 1.0.0}", "harnesses: {claude-code: 2.0.0}", "harnesses.codex.version", "1.0.0"},
		{"harnesses: {claude-code: {version: 1.0.0, overrides: {a: 1, b: {c: 2}}}}", "harnesses: {claude-code: {overrides: {b: {d: 3}}}}", "harnesses.claude-code.overrides", `{"a":1,"b":{"d":3}}`},
	} {
		p := merged(t, c.parent, c.child)
		got := values(p)
		have := got[c.key]
		if strings.HasSuffix(c.key, "servers") || strings.HasSuffix(c.key, "items") {
			have = got[c.key] // name and command, event and command, in turn
		}
		if have != c.want {
			t.Errorf("parent %s, child %s: %s is %q, want %q", c.parent, c.child, c.key, have, c.want)
		}
	}
}

// TestMergeSharesNothing holds that no policy changes when another one is made of it.
func TestMergeSharesNothing(t *testing.T) {
	body := "egress: {allowedDomains: [a.example], deniedDomains: [b.example]}, sandbox: {protectedPaths: [~/.ssh]}, permissions: {deny: [x]}, env: {A: x}, harnesses: {claude-code: {version: 1.0.0, overrides: {a: 1}}}"
	child := strings.NewReplacer("a.example", "c.example", "b.example", "d.example", ".ssh", ".aws", "[x]", "[y]", "A: x", "A: y", "a: 1", "a: 2").Replace(body)
	r := resolver(t, "Profile a "+body, "Profile b extends: a, "+child, "Profile c extends: a, "+child, "Unit u overlay: {permissions: {deny: [z]}}")
	before := fmt.Sprint(values(r.Profile("a")))
	for _, u := range r.repo.Units {
		r.Overlay(r.Profile("a"), u)
		r.Overlay(r.Profile("b"), u)
	}
	if after := fmt.Sprint(values(resolver(t, "Profile a "+body).Profile("a"))); before != after || fmt.Sprint(values(r.Profile("a"))) != before {
		t.Errorf("the parent changed:\n%s\n%s", before, after)
	}
	if fmt.Sprint(values(r.Profile("b"))) != fmt.Sprint(values(r.Profile("c"))) {
		t.Error("two equal children differ")
	}
}

func TestOrigins(t *testing.T) {
	r := resolver(t, "Profile a egress: {allowedDomains: [a.example], deniedDomains: [b.example]}", "Profile b extends: a, egress: {deniedDomains: [c.example]}", "Unit u overlay: {egress: {deniedDomains: [d.example]}}")
	p := r.Overlay(r.Profile("b"), r.repo.Unit("u"))
	want := map[string]string{"a.example": "Profile/a", "b.example": "Profile/a", "c.example": "Profile/b", "d.example": "Unit/u"}
	for _, v := range Values(p) {
		if doc := r.repo.DocumentAt(v.Pos); doc == nil || doc.ID() != want[v.Value] {
			t.Errorf("%s %s comes from %v, want %s", v.Key, v.Value, doc, want[v.Value])
		}
		delete(want, v.Value)
	}
	if len(want) > 0 {
		t.Errorf("no value %v", want)
	}
}

func TestChains(t *testing.T) {
	r := resolver(t, "Profile a extends: b", "Profile b extends: a", "Profile c extends: none", "Profile d extends: c", "Profile e extends: a", "Profile f", "Profile g extends: f")
	for name, want := range map[string]bool{"a": false, "b": false, "c": false, "d": false, "e": false, "f": true, "g": true, "none": false} {
		if got := r.Profile(name); (got != nil) != want {
			t.Errorf("%s resolves: %v", name, got != nil)
		}
	}
	var docs []string
	for i := range MaxDepth + 3 {
		d := fmt.Sprintf("Profile p%04d", i)
		if i > 0 {
			d += fmt.Sprintf(" extends: p%04d", i-1)
		}
		docs = append(docs, d)
	}
	r = resolver(t, docs...)
	for i, want := range map[int]bool{0: true, MaxDepth: true, MaxDepth + 1: false, MaxDepth + 2: false} {
		if got := r.Profile(fmt.Sprintf("p%04d", i)) != nil; got != want {
			t.Errorf("a chain of %d resolves: %v", i, got)
		}
	}
	units := resolver(t, "Unit a parent: b, overlay: {}", "Unit b parent: a, overlay: {}", "Unit c parent: none, overlay: {}", "Unit d parent: e, overlay: {}", "Unit e overlay: {}")
	for name, want := range map[string]string{"a": "[b a]", "c": "[c]", "d": "[e d]", "e": "[e]"} {
		var got []string
		for _, u := range units.Ancestry(units.repo.Unit(name)) {
			got = append(got, u.Name.V)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("the ancestry of %s is %v, want %s", name, got, want)
		}
	}
}

func TestMode(t *testing.T) {
	for body, want := range map[string]string{
		"":                                                "off",
		"sandbox: {mode: read-only}":                      "read-only",
		"sandbox: {mode: 'off'}":                          "off",
		"sandbox: {writableRoots: [/opt/a]}":              "workspace-write",
		"sandbox: {protectedPaths: [a]}":                  "workspace-write",
		"egress: {deniedDomains: [a.example]}":            "workspace-write",
		"egress: {presets: [vcs]}":                        "workspace-write",
		"egress: {default: deny}":                         "workspace-write",
		"egress: {default: allow}":                        "off",
		"permissions: {sandboxRequired: true}":            "workspace-write",
		"sandbox: {writableRoots: []}":                    "off",
		"egress: {allowedDomains: [], deniedDomains: []}": "off",
	} {
		if got := resolver(t, "Profile a "+body).Profile("a").Mode(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestLoosenings has a row for every row of the comparator.
func TestLoosenings(t *testing.T) {
	for _, c := range []struct{ base, next, want string }{
		{"", "egress: {allowedDomains: [a.example]}", ""},
		{"egress: {allowedDomains: [a.example]}", "", "egress.default allow: host example.com: deny -> allow; sandbox.mode: sandbox mode: workspace-write -> off"},
		{"egress: {allowedDomains: [a.example]}", "egress: {allowedDomains: []}", "egress.allowedDomains allow: host example.com: deny -> allow; sandbox.mode: sandbox mode: workspace-write -> off"},
		{"egress: {default: deny}, sandbox: {mode: workspace-write}", "egress: {default: allow}, sandbox: {mode: workspace-write}", "egress.default allow: host example.com: deny -> allow"},
		{"egress: {default: deny, deniedDomains: ['*.com', '*.org', '*.net', '*.example']}", "egress: {default: allow, deniedDomains: ['*.com', '*.org', '*.net', '*.example']}", "egress.default allow: host unlisted.x1: deny -> allow"},
		{"egress: {allowedDomains: [a.example]}", "egress: {allowedDomains: [a.example, b.example]}", "egress.allowedDomains b.example: host b.example: deny -> allow"},
		{"egress: {allowedDomains: ['*.a.example']}", "egress: {allowedDomains: [x.a.example]}", ""},
		{"egress: {allowedDomains: ['*.a.example']}", "egress: {allowedDomains: [a.example]}", "egress.allowedDomains a.example: host a.example: deny -> allow"},
		{"egress: {allowedDomains: [x.a.example, any.a.example, x0.a.example]}", "egress: {allowedDomains: ['*.a.example']}", "egress.allowedDomains *.a.example: host x1.a.example: deny -> allow"},
		{"egress: {presets: [vcs]}", "egress: {presets: [vcs], allowedDomains: [github.com]}", ""},
		{"egress: {presets: [vcs]}", "egress: {presets: [vcs, model-providers]}", "egress.presets model-providers: host api.anthropic.com: deny -> allow"},
		// What is allowed and denied at once is not allowed.
		{"egress: {allowedDomains: [a.example]}", "egress: {allowedDomains: [a.example, b.example], deniedDomains: [b.example]}", ""},
		{"egress: {allowedDomains: [a.example]}", "egress: {allowedDomains: [a.example, '*.b.example'], deniedDomains: [any.b.example]}", "egress.allowedDomains *.b.example: host x0.b.example: deny -> allow"},
		{"egress: {allowedDomains: [a.example], deniedDomains: [b.example]}", "egress: {allowedDomains: [a.example]}", "egress.deniedDomains b.example: host b.example: no longer on the denied list"},
		{"egress: {deniedDomains: [b.example]}, sandbox: {mode: read-only}", "sandbox: {mode: read-only}", "egress.deniedDomains b.example: host b.example: deny -> allow"},
		{"egress: {deniedDomains: [b.example]}", "egress: {deniedDomains: ['*.b.example']}", "egress.deniedDomains b.example: host b.example: deny -> allow"},
		{"egress: {deniedDomains: [x.b.example]}", "egress: {deniedDomains: ['*.b.example']}", ""},
		{"sandbox: {protectedPaths: [~/.ssh, ~/.aws]}", "sandbox: {protectedPaths: [~/.ssh]}", "sandbox.protectedPaths ~/.aws: path ~/.aws: protected -> not protected"},
		{"sandbox: {protectedPaths: [~/.config/gcloud]}", "sandbox: {protectedPaths: [~/.config]}", ""},
		{"sandbox: {mode: workspace-write, writableRoots: [/opt/a]}", "sandbox: {mode: workspace-write, writableRoots: [/opt/a/b]}", ""},
		{"sandbox: {mode: workspace-write, writableRoots: [/opt/a]}", "sandbox: {mode: workspace-write, writableRoots: [/opt/a, /opt/b]}", "sandbox.writableRoots /opt/b: path /opt/b: read-only -> writable"},
		{"sandbox: {mode: read-only}", "sandbox: {mode: workspace-write}", "sandbox.mode workspace-write: sandbox mode: read-only -> workspace-write"},
		{"permissions: {sandbox: read-only}", "permissions: {sandbox: workspace-write}", "permissions.sandbox workspace-write: sandbox mode: read-only -> workspace-write"},
		{"sandbox: {mode: workspace-write}", "", "sandbox.mode: sandbox mode: workspace-write -> off"},
		{"sandbox: {writableRoots: [/opt/a]}", "sandbox: {mode: 'off'}", "sandbox.mode off: sandbox mode: workspace-write -> off"},
		{"sandbox: {mode: 'off'}", "sandbox: {mode: read-only}", ""},
		{"permissions: {sandboxRequired: true}, sandbox: {mode: read-only}", "sandbox: {mode: read-only}", "permissions.sandboxRequired false: permissions.sandboxRequired: true -> false"},
		{"permissions: {disableBypass: true}", "permissions: {disableBypass: false}", "permissions.disableBypass false: permissions.disableBypass: true -> false"},
		{"mcp: {managedOnly: true}", "", "mcp.managedOnly false: mcp.managedOnly: true -> false"},
		{"hooks: {managedOnly: true}", "", "hooks.managedOnly false: hooks.managedOnly: true -> false"},
		{"models: {enforce: true}", "", "models.enforce false: models.enforce: true -> false"},
		{"permissions: {disableBypass: false}", "permissions: {disableBypass: true}", ""},
		{"permissions: {mode: plan}", "", "permissions.mode: permission mode: plan -> default"},
		{"", "permissions: {mode: acceptEdits}", "permissions.mode acceptEdits: permission mode: default -> acceptEdits"},
		{"permissions: {mode: auto}", "permissions: {mode: bypassPermissions}", "permissions.mode bypassPermissions: permission mode: auto -> bypassPermissions"},
		{"permissions: {mode: auto}", "permissions: {mode: plan}", ""},
		{"permissions: {allow: [a], ask: [b], deny: [c]}", "permissions: {allow: [a, d], ask: [e], deny: []}", "permissions.allow d: permissions.allow d: asked -> allowed; permissions.ask e: permissions.ask e: new ask rule; permissions.deny c: permissions.deny c: denied -> not denied"},
		{"mcp: {managedOnly: true, servers: [{name: a, command: [x]}]}", "mcp: {managedOnly: true, servers: [{name: a, command: [y]}]}", "mcp.servers a: MCP server a: blocked -> allowed"},
		{"mcp: {servers: []}", "mcp: {servers: [{name: a, command: [y]}]}", ""},
		{"mcp: {denied: [a]}", "mcp: {denied: [b]}", "mcp.denied a: mcp.denied a: denied -> not denied"},
		{"models: {allowed: [a]}", "models: {allowed: [b]}", "models.allowed b: models.allowed b: blocked -> allowed"},
		{"models: {allowed: [a]}", "models: {allowed: []}", "models.allowed: models: listed only -> any"},
		{"", "models: {allowed: [a]}", ""},
	} {
		r := resolver(t, "Profile base "+c.base, "Profile next "+c.next)
		var got []string
		for _, l := range Loosenings(r.Profile("base"), r.Profile("next")) {
			got = append(got, strings.TrimSpace(l.Field+" "+l.Entry)+": "+l.Witness)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("base %s, next %s:\n%s\nwant\n%s", c.base, c.next, strings.Join(got, "; "), c.want)
		}
	}
}

// random makes a body of the fields that overlays may write, from few words, so that policies meet.
func random(rnd *rand.Rand) string {
	names := []string{"a.example", "b.example", "x.a.example", "y.x.a.example"}
	pick := func(from []string, max int) string {
		var out []string
		for range rnd.IntN(max + 1) {
			out = append(out, "'"+from[rnd.IntN(len(from))]+"'")
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	patterns := slices.Clone(names)
	for _, n := range names {
		patterns = append(patterns, "*."+n)
	}
	var egress, sandbox, permissions []string
	chance := func(into *[]string, s string) {
		if rnd.IntN(2) == 0 {
			*into = append(*into, s)
		}
	}
	if allowed := pick(patterns, 3); rnd.IntN(2) == 0 && allowed != "[]" {
		egress = append(egress, "allowedDomains: "+allowed)
	} else {
		chance(&egress, "default: "+[]string{"allow", "deny"}[rnd.IntN(2)])
	}
	chance(&egress, "deniedDomains: "+pick(patterns, 3))
	chance(&sandbox, "mode: "+[]string{"workspace-write", "read-only"}[rnd.IntN(2)])
	chance(&sandbox, "writableRoots: "+pick([]string{"/opt/a", "/opt/a/b", "/opt/b", "~/.cache"}, 2))
	chance(&sandbox, "protectedPaths: "+pick([]string{"/opt/a", "/opt/a/b", "/opt/c", "*.pem", "~/.ssh", "~/.ssh/keys"}, 3))
	chance(&permissions, "deny: "+pick([]string{"r", "s", "t"}, 2))
	chance(&permissions, "sandboxRequired: "+[]string{"true", "false"}[rnd.IntN(2)])
	return fmt.Sprintf("egress: {%s}, sandbox: {%s}, permissions: {%s}", strings.Join(egress, ", "), strings.Join(sandbox, ", "), strings.Join(permissions, ", "))
}

// Everything that the random policies can tell apart.
var (
	someHosts = []host.Name{"a.example", "b.example", "x.a.example", "y.x.a.example", "q.a.example", "q.b.example", "q.x.a.example", "q.y.x.a.example", "q.q.q.a.example", "other.test", "10.1.2.3"}
	someFiles = []string{"/opt/a", "/opt/a/f", "/opt/a/b", "/opt/a/b/f", "/opt/b/f", "/opt/c/f", "/opt/d", "/home/u/.ssh", "/home/u/.ssh/keys/f", "/home/u/.ssh/f", "/home/u/.cache/f", "/ws/x.pem", "/ws/a/x.pem/f", "/ws/x"}
)

func protects(p *Policy, file string) bool {
	return slices.ContainsFunc(p.Sandbox.ProtectedPaths.Items, func(f policy.FilePath) bool { return fspath.Matches(f.Path, file, "/ws", "/home/u") })
}

func writes(p *Policy, file string) bool {
	return slices.ContainsFunc(p.Sandbox.WritableRoots.Items, func(f policy.FilePath) bool { return fspath.Matches(f.Path, file, "/ws", "/home/u") })
}

// looser returns something that next allows and base does not, or "".
func looser(base, next *Policy) string {
	for _, h := range someHosts {
		if next.Hosts.Decide(h).Allow && !base.Hosts.Decide(h).Allow {
			return "host " + string(h)
		}
	}
	for _, f := range someFiles {
		if protects(base, f) && !protects(next, f) {
			return "unprotected " + f
		}
		if writes(next, f) && !writes(base, f) {
			return "writable " + f
		}
	}
	if rank(next.Mode()) < rank(base.Mode()) {
		return "mode " + next.Mode()
	}
	for _, l := range Locks {
		if l.At(&base.Body).V && !l.At(&next.Body).V {
			return l.Field
		}
	}
	for _, d := range base.Permissions.Deny.Items {
		if !slices.ContainsFunc(next.Permissions.Deny.Items, func(e source.Str) bool { return e.V == d.V }) {
			return "permissions.deny " + d.V
		}
	}
	return ""
}

// TestLooseningLaws holds the comparator to its law over all pairs of random policies: it finds nothing exactly when there is nothing to find, and every
// witness is true.
func TestLooseningLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	var docs []string
	const n = 220
	for i := range n {
		docs = append(docs, fmt.Sprintf("Profile p%03d %s", i, random(rnd)))
	}
	r := resolver(t, docs...)
	quiet := 0
	for i := range n {
		for j := range n {
			a, b := r.Profile(fmt.Sprintf("p%03d", i)), r.Profile(fmt.Sprintf("p%03d", j))
			ls := Loosenings(a, b)
			found := looser(a, b)
			if len(ls) == 0 {
				if quiet++; found != "" {
					t.Fatalf("no loosening, but %s\n%s\n%s", found, docs[i], docs[j])
				}
				continue
			}
			if i == j {
				t.Fatalf("looser than itself: %+v\n%s", ls, docs[i])
			}
			for _, l := range ls {
				if name, ok := strings.CutPrefix(l.Witness, "host "); ok && strings.HasSuffix(l.Witness, ": deny -> allow") {
					h := host.Name(strings.TrimSuffix(name, ": deny -> allow"))
					if a.Hosts.Decide(h).Allow || !b.Hosts.Decide(h).Allow {
						t.Fatalf("false witness %s\n%s\n%s", l.Witness, docs[i], docs[j])
					}
				}
				if name, ok := strings.CutPrefix(l.Witness, "path "); ok {
					name, what, _ := strings.Cut(name, ": ")
					name = strings.NewReplacer("~", "/home/u", "*.pem", "/ws/x.pem").Replace(name)
					if what == "protected -> not protected" && (!protects(a, name) || protects(b, name)) || what == "read-only -> writable" && (writes(a, name) || !writes(b, name)) {
						t.Fatalf("false witness %s\n%s\n%s", l.Witness, docs[i], docs[j])
					}
				}
			}
		}
	}
	if quiet < n+50 {
		t.Errorf("only %d pairs without a loosening: the test says little", quiet)
	}
}

// TestOverlayLaws holds overlays to theirs: an overlay that does not loosen a ring by itself does not do so among others, and their order does not matter.
func TestOverlayLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	tried := 0
	for range 150 {
		docs := []string{"Profile base " + random(rnd)}
		for i := range 8 {
			docs = append(docs, fmt.Sprintf("Unit u%d overlay: {%s}", i, random(rnd)))
		}
		r := resolver(t, docs...)
		base := r.Profile("base")
		var units []*policy.Unit
		for _, u := range r.repo.Units {
			p := r.Overlay(base, u)
			// Contradictions inside one policy are refused by the checks and have no meaning here.
			if len(Loosenings(base, p)) == 0 && !(p.Egress.Default.V == "allow" && len(p.Hosts.Allowed()) > 0) {
				units = append(units, u)
			}
		}
		if len(units) < 2 {
			continue
		}
		tried++
		one := r.With(base, units)
		if found := looser(base, one); found != "" {
			t.Fatalf("%d units together: %s\n%s", len(units), found, strings.Join(docs, "\n"))
		}
		for _, u := range units {
			if found := looser(r.Overlay(base, u), one); found != "" {
				t.Fatalf("looser than %s alone: %s\n%s", u.Name.V, found, strings.Join(docs, "\n"))
			}
		}
		for range 4 {
			rnd.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
			other := r.With(base, units)
			if a, b := looser(one, other), looser(other, one); a != "" || b != "" {
				t.Fatalf("the order of units matters: %s%s\n%s", a, b, strings.Join(docs, "\n"))
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d of the repos have two units: the test says little", tried)
	}
}

func TestDigest(t *testing.T) {
	same := []string{
		"Profile p egress: {allowedDomains: [a.example], presets: [vcs]}, sandbox: {writableRoots: [/opt/a]}",
		"Profile p sandbox: {writableRoots: [/opt/a/]},   egress: {presets: [vcs], allowedDomains: [a.example]}",
	}
	digests := map[[32]byte]string{resolver(t, same[0]).Profile("p").Digest(): same[0]}
	if d := resolver(t, same[1]).Profile("p").Digest(); digests[d] == "" {
		t.Error("places and spelling change the digest")
	}
	for _, body := range []string{
		"", "egress: {allowedDomains: [a.example]}", "egress: {deniedDomains: [a.example]}", "egress: {presets: [vcs]}", "egress: {default: allow}", "egress: {default: deny}", "egress: {allowedDomains: []}",
		"sandbox: {mode: read-only}", "sandbox: {writableRoots: [/opt/a]}", "sandbox: {protectedPaths: [/opt/a]}", "sandbox: {protectedPaths: [/opt/a, b]}", "sandbox: {policy: a}", "sandbox: {writableRoots: []}",
		"permissions: {mode: plan}", "permissions: {allow: [a]}", "permissions: {ask: [a]}", "permissions: {deny: [a]}", "permissions: {deny: [a, b]}", "permissions: {deny: [ab]}", "permissions: {disableBypass: true}",
		"permissions: {disableBypass: false}", "permissions: {sandboxRequired: true}", "models: {default: a}", "models: {allowed: [a]}", "models: {enforce: true}", "mcp: {managedOnly: true}", "mcp: {servers: []}",
		"mcp: {servers: [{name: a, command: [b]}]}", "mcp: {servers: [{name: a, command: [b, c]}]}", "mcp: {servers: [{name: a, url: 'https://a.example'}]}", "mcp: {servers: [{name: a, url: 'https://a.example', headers: {A: b}}]}",
		"mcp: {denied: [a]}", "hooks: {managedOnly: true}", "hooks: {items: [{event: Stop, command: a}]}", "hooks: {items: [{event: Stop, matcher: b, command: a}]}", "telemetry: {enabled: true}", "telemetry: {enabled: false}",
		"telemetry: {otlpEndpoint: 'https://a.example'}", "telemetry: {protocol: grpc}", "telemetry: {logPrompts: true}", "telemetry: {attributes: {a: b}}", "instructions: a", "env: {a: b}", "env: {a: b, c: d}",
		"harnesses: {codex: 1.0.0}", "harnesses: {codex: {version: 1.0.0, model: a}}", "harnesses: {codex: {version: 1.0.0, overrides: {a: 1}}}", "harnesses: {codex: {version: 1.0.0, overrides: {a: 2}}}", "harnesses: {opencode: 1.0.0}",
	} {
		d := resolver(t, "Profile p "+body).Profile("p").Digest()
		if other, ok := digests[d]; ok {
			t.Errorf("%q and %q have one digest", body, other)
		}
		digests[d] = body
	}
}

func TestTargets(t *testing.T) {
	r := resolver(t, "Profile p", "Ring b order: 1, profile: p", "Ring a order: 2, profile: p", "Ring c order: 3, profile: none",
		"Unit u overlay: {}, membership: {users: [eve]}", "Unit v rings: [a], overlay: {permissions: {deny: [x]}}, membership: {users: [eve]}", "Unit w parent: u, rings: [b], overlay: {}")
	var got []string
	for _, x := range r.Targets() {
		got = append(got, x.ID)
	}
	if want := "b b+u b+u+w b+w a a+u a+u+v a+v"; strings.Join(got, " ") != want {
		t.Errorf("targets %s, want %s", strings.Join(got, " "), want)
	}
	if TargetID("r", []string{"b", "a", "b"}) != "r+a+b" || TargetID("r", nil) != "r" {
		t.Error(TargetID("r", []string{"b", "a", "b"}))
	}
}
