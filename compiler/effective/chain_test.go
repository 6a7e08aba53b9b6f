package effective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/policy"
)

// full has every field of the model, the lists and maps with two entries.
const full = `harnesses: {codex: {version: 1.2.3, model: m, overrides: {a: {b: 1, c: 2}, d: 3}}}, models: {default: a, allowed: [a, b], enforce: true},
  permissions: {mode: plan, allow: [a, b], ask: [c, d], deny: [e, f], disableBypass: true, sandboxRequired: true},
  sandbox: {mode: read-only, writableRoots: [/opt/a, /opt/b], protectedPaths: [~/.a, ~/.b], policy: box},
  egress: {default: deny, allowedDomains: [a.example, b.example], presets: [vcs, package-registries], deniedDomains: [c.example, d.example]},
  mcp: {managedOnly: true, servers: [{name: a, command: [x, y]}, {name: b, url: 'https://b.example', headers: {H: h, I: i}}], denied: [c, d]},
  hooks: {managedOnly: true, items: [{event: Stop, matcher: m, command: a}, {event: Stop, command: b}]},
  telemetry: {enabled: true, otlpEndpoint: 'https://o.example', protocol: grpc, logPrompts: true, attributes: {a: x, b: y}},
  instructions: text, env: {A: x, B: y}, require: [{concept: egress, harness: codex, grade: default}, {concept: egress, harness: codex, grade: enforced}]`

// TestWithout holds that the table of fields is the model: every value has a field, and leaving a field or an entry out takes away what it said and no more.
func TestWithout(t *testing.T) {
	p := resolver(t, "Sandbox box", "Profile all "+strings.ReplaceAll(full, "\n", "")).Profile("all")
	before := fmt.Sprint(Values(p), p.Hosts.AllowedHosts(), p.Hosts.DeniedHosts())
	fields := map[string]int{}
	for _, v := range Values(p) {
		fields[v.Field] = max(fields[v.Field], v.Entry+1)
	}
	fields["harnesses.codex.overrides"] = 3
	for _, f := range Fields() {
		if id := strings.Split(f.Key, "."); id[0] == "harnesses" && id[1] != "codex" {
			continue
		}
		entries, ok := fields[f.Key]
		if !ok {
			t.Errorf("no value is of the field %s", f.Key)
		}
		delete(fields, f.Key)
		if f.List != (entries > 0) || f.List && entries < 2 {
			t.Errorf("%s: %d entries", f.Key, entries)
		}
		for entry := -1; entry < entries; entry++ {
			less := p.Without(func(key string, e int) bool { return key == f.Key && e == entry })
			var want []string
			for _, v := range Values(p) {
				if v.Field != f.Key || entry >= 0 && v.Entry != entry && !strings.HasSuffix(v.Field, ".overrides") {
					want = append(want, v.Value)
				}
			}
			var got []string
			for _, v := range Values(less) {
				if !strings.HasSuffix(v.Field, ".overrides") || v.Field != f.Key {
					got = append(got, v.Value)
				}
			}
			if strings.HasSuffix(f.Key, ".overrides") {
				want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "{") })
				all := []string{`{"a":{"c":2},"d":3}`, `{"a":{"b":1},"d":3}`, `{"a":{"b":1,"c":2}}`}
				if pin := less.Pin("codex"); entry >= 0 {
					if text := valuesOfText(less); text != all[entry] || len(pin.OverrideKeys) != 2 {
						t.Errorf("%s[%d]: %s", f.Key, entry, text)
					}
				} else if len(pin.Overrides) > 0 || pin.OverridesPos.IsValid() {
					t.Errorf("%s: %v", f.Key, pin.Overrides)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("without %s[%d]:\n%q\nwant\n%q", f.Key, entry, got, want)
			}
			denied, allowed := 2, 2
			for _, h := range less.Hosts.Allowed() {
				if h.Field == "egress.presets" {
					allowed++
				}
			}
			switch {
			case f.Key == "egress.deniedDomains" && entry < 0:
				denied = 0
			case f.Key == "egress.deniedDomains":
				denied = 1
			case f.Key == "egress.allowedDomains" && entry < 0:
				allowed -= 2
			case f.Key == "egress.allowedDomains":
				allowed--
			}
			if len(less.Hosts.Denied()) != denied || len(less.Hosts.Allowed()) != allowed {
				t.Errorf("without %s[%d]: %v, %v", f.Key, entry, less.Hosts.AllowedHosts(), less.Hosts.DeniedHosts())
			}
			for _, h := range less.Hosts.Allowed() {
				if i := slices.Index([]string{"vcs", "package-registries"}, h.Name); f.Key == "egress.presets" && h.Field == f.Key && (entry < 0 || i == entry) {
					t.Errorf("without %s[%d]: %s", f.Key, entry, h.Pattern)
				}
			}
		}
	}
	for field := range fields {
		t.Errorf("%s is not in the table of fields", field)
	}
	if after := fmt.Sprint(Values(p), p.Hosts.AllowedHosts(), p.Hosts.DeniedHosts()); after != before {
		t.Errorf("the policy was changed:\n%s\n%s", before, after)
	}
}

func valuesOfText(p *Policy) string {
	for _, v := range Values(p) {
		if strings.HasSuffix(v.Key, ".overrides") {
			return v.Value
		}
	}
	return ""
}

// fates prints a chain: each value with what became of it.
func fates(c Chain) string {
	var out []string
	for _, l := range c.Layers {
		for _, v := range l.Values {
			s := l.Doc.Name.V + ":" + v.Value.Value + " " + v.Fate.String()
			if v.By != nil {
				s += " by " + v.By.Name.V
			}
			out = append(out, s)
		}
	}
	for _, v := range c.Implied {
		out = append(out, "implied "+v.Value)
	}
	return strings.Join(out, ", ")
}

func field(t *testing.T, key string) Field {
	t.Helper()
	i := slices.IndexFunc(Fields(), func(f Field) bool { return f.Key == key })
	if i < 0 {
		t.Fatal("no field", key)
	}
	return Fields()[i]
}

func TestChain(t *testing.T) {
	for _, c := range []struct{ parent, child, key, want string }{
		{"models: {default: a}", "models: {default: b}", "models.default", "parent:a beaten by child, child:b in effect"},
		{"models: {default: a}", "models: {enforce: true}", "models.default", "parent:a in effect"},
		{"models: {allowed: [a, b]}", "models: {allowed: [b, b]}", "models.allowed", "parent:a beaten by child, parent:b beaten by child, child:b in effect, child:b repeated by child"},
		{"models: {allowed: [a]}", "models: {allowed: []}", "models.allowed", "parent:a beaten by child, child:[] in effect"},
		{"permissions: {deny: [a, b]}", "permissions: {deny: [b, c]}", "permissions.deny", "parent:a in effect, parent:b in effect, child:b repeated by parent, child:c in effect"},
		{"env: {A: x, B: y}", "env: {B: z}", "env", "parent:x in effect, parent:y beaten by child, child:z in effect"},
		{"harnesses: {codex: {version: 1.0.0, overrides: {a: 1, b: {c: 2}}}}", "harnesses: {codex: {overrides: {b: {d: 3}}}}", "harnesses.codex.overrides",
			`parent:1 in effect, parent:{"c":2} beaten by child, child:{"d":3} in effect`},
		{"harnesses: {codex: 1.0.0}", "harnesses: {codex: 2.0.0}", "harnesses.codex.version", "parent:1.0.0 beaten by child, child:2.0.0 in effect"},
		{"mcp: {servers: [{name: a, command: [x]}]}", "mcp: {servers: []}", "mcp.servers", "parent:a beaten by child, parent:x beaten by child, child:[] in effect"},
		{"hooks: {items: [{event: Stop, command: a}]}", "hooks: {items: [{event: Stop, command: a}]}", "hooks.items",
			"parent:Stop in effect, parent:a in effect, child:Stop repeated by parent, child:a repeated by parent"},
		{"", "", "env", ""},
	} {
		if got := fates(merged(t, c.parent, c.child).Chain(field(t, c.key))); got != c.want {
			t.Errorf("%s of %s, then %s: %s\nwant %s", c.key, c.parent, c.child, got, c.want)
		}
	}
	r := resolver(t, "Profile p egress: {allowedDomains: [a.example, b.example, c.example]}", "Unit u overlay: {egress: {allowedDomains: [a.example, b.example]}, sandbox: {mode: read-only}}",
		"Unit v overlay: {egress: {allowedDomains: [b.example, c.example]}, sandbox: {mode: workspace-write}}")
	both := r.With(r.Profile("p"), []*policy.Unit{r.repo.Unit("u"), r.repo.Unit("v")})
	for key, want := range map[string]string{
		"egress.allowedDomains": "p:a.example beaten by u, p:b.example beaten by u, p:c.example beaten by u, u:a.example narrowed by v, u:b.example narrowed by v, v:b.example in effect, v:c.example narrowed",
		"egress.default":        "implied deny",
		"sandbox.mode":          "u:read-only in effect, v:workspace-write narrowed",
	} {
		if got := fates(both.Chain(field(t, key))); got != want {
			t.Errorf("%s: %s\nwant %s", key, got, want)
		}
	}
}

// TestChainLaws holds that a chain says what is in effect and no more, for random chains.
func TestChainLaws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	looked := 0
	for range 200 {
		r := resolver(t, "Profile a "+random(rnd), "Profile b extends: a, "+random(rnd), "Unit u overlay: {"+random(rnd)+"}", "Unit v overlay: {"+random(rnd)+"}")
		for _, p := range []*Policy{r.Profile("a"), r.Profile("b"), r.Overlay(r.Profile("b"), r.repo.Unit("u")), r.With(r.Profile("b"), r.repo.Units)} {
			for _, f := range Fields() {
				var want, got []string
				for _, v := range valuesOf(&p.Body, f) {
					want = append(want, fmt.Sprint(v.Value, v.Pos))
				}
				c := p.Chain(f)
				for _, l := range c.Layers {
					for _, v := range l.Values {
						looked++
						if v.Fate == InEffect {
							got = append(got, fmt.Sprint(v.Value.Value, v.Pos))
						}
						if v.Fate != InEffect && v.Fate != Narrowed && v.By == nil || v.Fate == Narrowed && len(p.Units) < 2 {
							t.Fatalf("%s: %s", f.Key, fates(c))
						}
					}
				}
				for _, v := range c.Implied {
					got = append(got, fmt.Sprint(v.Value, v.Pos))
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("%s: %s\nthe policy has %q", f.Key, fates(c), want)
				}
			}
		}
	}
	if looked < 1000 {
		t.Error("the chains have next to no values:", looked)
	}
}
