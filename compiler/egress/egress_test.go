package egress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/host"
)

// entries makes list entries; NAME=PATTERN is an entry of a preset.
func entries(t testing.TB, field string, texts ...string) []Entry {
	t.Helper()
	var out []Entry
	for i, s := range texts {
		name, pattern, preset := strings.Cut(s, "=")
		e := Entry{Field: field, Name: name, Pos: diag.NewPos(0, i+1, 1)}
		if preset {
			e.Field = "egress.presets"
		} else {
			pattern = s
		}
		p, problem := host.ParseDenyPattern(pattern)
		if problem != nil {
			t.Fatal(s, problem)
		}
		e.Pattern = p
		out = append(out, e)
	}
	return out
}

func TestDecide(t *testing.T) {
	allowed := []string{"ai.acme.example", "*.tools.example", "build.evil.example", "vcs=github.com", "vcs=*.githubusercontent.com"}
	denied := []string{"pastebin.com", "*.evil.example", "x.tools.example"}
	for _, c := range []struct {
		name            string
		allowed, denied []string
		dflt            string
		host            host.Name
		allow, implied  bool
		rule            string
	}{
		{"nothing", nil, nil, "", "x.example", true, true, "egress.default allow"},
		{"written allow", nil, denied, "allow", "x.example", true, false, "egress.default allow"},
		{"written deny", nil, nil, "deny", "x.example", false, false, "egress.default deny"},
		{"implied deny", allowed, denied, "", "x.example", false, true, "egress.default deny"},
		{"denied only", nil, denied, "", "x.example", true, true, "egress.default allow"},
		{"allowed", allowed, denied, "", "ai.acme.example", true, false, "egress.allowedDomains ai.acme.example"},
		{"wildcard", allowed, denied, "", "a.b.tools.example", true, false, "egress.allowedDomains *.tools.example"},
		{"apex of a wildcard", allowed, denied, "", "tools.example", false, true, "egress.default deny"},
		{"preset", allowed, denied, "", "github.com", true, false, "egress.presets vcs"},
		{"preset wildcard", allowed, denied, "", "raw.githubusercontent.com", true, false, "egress.presets vcs"},
		{"denied", allowed, denied, "", "pastebin.com", false, false, "egress.deniedDomains pastebin.com"},
		{"deny over a more exact allow", allowed, denied, "", "build.evil.example", false, false, "egress.deniedDomains *.evil.example"},
		{"exact deny over a wildcard", allowed, denied, "", "x.tools.example", false, false, "egress.deniedDomains x.tools.example"},
		{"deny over default allow", nil, denied, "allow", "a.evil.example", false, false, "egress.deniedDomains *.evil.example"},
		{"address", allowed, denied, "", "10.1.2.3", false, true, "egress.default deny"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Compile(Rules{Allowed: entries(t, "egress.allowedDomains", c.allowed...), Denied: entries(t, "egress.deniedDomains", c.denied...), Default: c.dflt})
			d := p.Decide(c.host)
			if d.Allow != c.allow || d.Implied != c.implied || d.Rule() != c.rule {
				t.Errorf("%+v", d)
			}
			if open, implied := p.Default(); implied != (c.dflt == "") || open != (c.dflt == "allow" || c.dflt == "" && len(c.allowed) == 0) {
				t.Errorf("default %v, implied %v", open, implied)
			}
		})
	}
}

// TestLaws holds decisions over random rules to the three sentences that define them, and to each other.
func TestLaws(t *testing.T) {
	var names []host.Name
	var texts []string
	for _, a := range []string{"a.z", "b.z", "a.b.z", "b.a.z", "a.a.b.z", "c.z"} {
		names = append(names, host.Name(a))
		texts = append(texts, a, "*."+a)
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	pick := func() []string {
		out := make([]string, rnd.IntN(14))
		for i := range out {
			out[i] = texts[rnd.IntN(len(texts))]
		}
		return out
	}
	for range 2000 {
		allowed, denied := entries(t, "egress.allowedDomains", pick()...), entries(t, "egress.deniedDomains", pick()...)
		dflt := []string{"", "allow", "deny"}[rnd.IntN(3)]
		p := Compile(Rules{Allowed: allowed, Denied: denied, Default: dflt})
		for _, n := range names {
			first := func(es []Entry) int { return slices.IndexFunc(es, func(e Entry) bool { return e.Pattern.Matches(n) }) }
			want := Decision{Allow: dflt == "allow" || dflt == "" && len(allowed) == 0, Field: "egress.default", Entry: "deny", Implied: dflt == ""}
			if want.Allow {
				want.Entry = "allow"
			}
			if i := first(denied); i >= 0 {
				want = Decision{Field: denied[i].Field, Entry: denied[i].Name, Pattern: denied[i].Pattern, Pos: denied[i].Pos}
			} else if i := first(allowed); i >= 0 {
				want = Decision{Allow: true, Field: allowed[i].Field, Entry: allowed[i].Name, Pattern: allowed[i].Pattern, Pos: allowed[i].Pos}
			}
			if got := p.Decide(n); got != want {
				t.Fatalf("%s: %+v, want %+v", n, got, want)
			}
			// The first of all matches is the one that decided, and a denied one comes before all allowed ones.
			ms := p.Matches(n)
			if len(ms) > 0 && (ms[0].Allow != want.Allow || ms[0].Entry.Pos != want.Pos) || len(ms) == 0 && want.Field != "egress.default" {
				t.Fatalf("%s: %+v, decided by %+v", n, ms, want)
			}
			for i, m := range ms {
				if !m.Entry.Pattern.Matches(n) || i > 0 && ms[i-1].Allow && !m.Allow {
					t.Fatalf("%s: %+v", n, ms)
				}
			}
		}
	}
}

func TestLists(t *testing.T) {
	p := Compile(Rules{Allowed: entries(t, "egress.allowedDomains", "b.example", "vcs=*.a.example"), Denied: entries(t, "egress.deniedDomains", "d.example", "c.example")})
	if got := p.AllowedHosts(); !slices.Equal(got, []string{"b.example", "*.a.example"}) {
		t.Error(got)
	}
	if got := p.DeniedHosts(); !slices.Equal(got, []string{"d.example", "c.example"}) {
		t.Error(got)
	}
	if p.AllowSet().Len() != len(p.Allowed()) || p.DenySet().Len() != len(p.Denied()) {
		t.Error("a set has another length than its list")
	}
}

// policyOf makes a policy of n patterns, a tenth of them denied and a third of them wildcards, and hosts that hit and miss it.
func policyOf(t testing.TB, n int) (*Policy, []host.Name) {
	var allowed, denied []string
	for i := range n {
		s := fmt.Sprintf("host-%d.department-%d.acme.example", i, i%97)
		if i%3 == 0 {
			s = "*." + s
		}
		if i%10 == 9 {
			denied = append(denied, s)
		} else {
			allowed = append(allowed, s)
		}
	}
	p := Compile(Rules{Allowed: entries(t, "egress.allowedDomains", allowed...), Denied: entries(t, "egress.deniedDomains", denied...)})
	var names []host.Name
	for i := range 64 {
		k := i * n / 64
		names = append(names, host.Name(fmt.Sprintf("host-%d.department-%d.acme.example", k, k%97)), host.Name(fmt.Sprintf("x.y.host-%d.department-%d.acme.example", k, k%97)),
			host.Name(fmt.Sprintf("unknown-%d.example.org", i)))
	}
	return p, names
}

func TestDecideDoesNotAllocate(t *testing.T) {
	for _, n := range []int{5, 70, 10_000} {
		p, names := policyOf(t, n)
		if allocs := testing.AllocsPerRun(100, func() {
			for _, n := range names {
				p.Decide(n)
			}
		}); allocs != 0 {
			t.Errorf("%d patterns: %v allocations", n, allocs)
		}
	}
}

// twoSets is the yardstick: a hand-written matcher of two sets, where a wildcard is kept as its suffix with the dot. It knows no rule and no place.
type twoSets struct{ allow, deny map[string]struct{} }

func (y *twoSets) decide(name string) bool {
	_, denied := y.deny[name]
	_, allowed := y.allow[name]
	for rest := name; ; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return allowed && !denied
		}
		if _, ok := y.deny[rest[dot:]]; ok {
			denied = true
		}
		if _, ok := y.allow[rest[dot:]]; ok {
			allowed = true
		}
		rest = rest[dot+1:]
	}
}

// BenchmarkDecide has a yardstick beside it. The goal is four times that at most, and 10,000 patterns at most twice as slow as 70.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{70, 10_000} {
		p, names := policyOf(b, n)
		y := twoSets{map[string]struct{}{}, map[string]struct{}{}}
		for set, es := range map[*map[string]struct{}][]Entry{&y.allow: p.Allowed(), &y.deny: p.Denied()} {
			for _, e := range es {
				(*set)[strings.TrimPrefix(e.Pattern.String(), "*")] = struct{}{}
			}
		}
		for _, name := range names {
			if y.decide(string(name)) != p.Decide(name).Allow {
				b.Fatalf("the yardstick decides otherwise about %s", name)
			}
		}
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Decide(names[i%len(names)])
			}
		})
		b.Run(fmt.Sprintf("%d-yardstick", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				y.decide(string(names[i%len(names)]))
			}
		})
	}
}
