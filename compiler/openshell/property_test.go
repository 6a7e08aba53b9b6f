package openshell

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func some[T any](r *rand.Rand, from []T, most int) []T {
	var out []T
	for range 1 + r.IntN(most) {
		out = append(out, pick(r, from))
	}
	return out
}

var (
	genHosts = []string{"example.com", "api.example.com", "*.example.com", "**.example.com", "*.api.example.com", "API.example.com", "*-x.example.com",
		"a*.example.com", "x.*.example.com", "**.deep.example.com", "other.org", "*.*.com", "*.s3.*.aws.com", ""}
	askHosts = []string{"example.com", "api.example.com", "a.api.example.com", "b-x.example.com", "-x.example.com", "x.y.example.com", "a.b.c.example.com",
		"a.deep.example.com", "deep.example.com", "OTHER.org", "a.b.com", "b.s3.eu.aws.com", "unrelated.net", "example.com.", "ab.example.com"}
	genBinaries = []string{"/usr/bin/git", "/usr/bin/*", "/usr/bin/**", "/opt/**/tool", "/bin/**", "/usr/*/git", "**/curl", "/sandbox/.local/bin/claude", "/srv/x*y", "relative"}
	askBinaries = []string{"/usr/bin/git", "/usr/bin/curl", "/usr/bin/x/curl", "/opt/tool", "/opt/a/b/tool", "/bin/sh", "/sandbox/.local/bin/claude", "/srv/xy", "/srv/xzzy", "/none"}
	genPaths    = []string{"", "**", "/", "/a", "/a/*", "/a/**", "/**/b", "/a*/b", "/*/c/*", "/**", "/a/**/z", "/?", "/%20*", "/a/b"}
	askPaths    = []string{"", "/", "/a", "/a/", "/a/b", "/a/b/c", "/x/b", "/b", "/ab/b", "/x/c/y", "/a/z", "/a/q/r/z", "/a/./b", "/a/../b", "/..", "//a//b", "/a;v=1/b", "/%61", "/%20x", "/x?q=1",
		"/a?q=v1&q=v2", "/a/b?q=v1&t=x.y", "/a?t=v1", "/..;/b", "/%2e%2e/b", "/b?q=a+b", "/a\x01", "/é"}
	genMethods = []string{"GET", "POST", "*", "get", "HEAD", "DELETE", ""}
	askMethods = []string{"GET", "HEAD", "POST", "OPTIONS", "PATCH", "DELETE", "get", "BREW"}
	genQueries = []string{"v*", "**", "*", "x.y", "v1", "a b"}
)

func genPort(r *rand.Rand) uint16 { return pick(r, []uint16{443, 80, 8443}) }

func genRule(r *rand.Rand) L7Rule {
	rule := L7Rule{Method: pick(r, genMethods), Path: pick(r, genPaths)}
	for _, name := range []string{"q", "t"} {
		if r.IntN(6) == 0 {
			m := &Match{Globs: []string{pick(r, genQueries)}}
			if r.IntN(3) == 0 {
				m = &Match{Any: true, Globs: some(r, genQueries, 3)}
			}
			rule.Query = append(rule.Query, Param{Name: name, Match: m})
		}
	}
	return rule
}

func genEndpoint(r *rand.Rand) Endpoint {
	e := Endpoint{Host: pick(r, genHosts), Port: genPort(r)}
	if r.IntN(4) == 0 {
		e.Port, e.Ports = 0, []uint16{443, 80}
	}
	if e.Host == "" || r.IntN(12) == 0 {
		e.AllowedIPs = []string{"10.0.0.0/8"}
	}
	if r.IntN(12) == 0 {
		e.TLS = "skip"
	}
	switch r.IntN(6) {
	case 0, 1:
	default:
		e.Protocol, e.Enforcement = "rest", pick(r, []string{"enforce", "enforce", ""})
		e.Path = pick(r, []string{"", "", "", "/a", "/a/**", "/**/b"})
		if r.IntN(2) == 0 {
			e.Access = pick(r, []string{"read-only", "read-write", "full"})
		} else {
			for range 1 + r.IntN(3) {
				e.Rules = append(e.Rules, genRule(r))
			}
		}
		for range r.IntN(3) {
			e.DenyRules = append(e.DenyRules, genRule(r))
		}
	}
	return e
}

func genPolicy(r *rand.Rand, rules int) *Policy {
	p := &Policy{Version: 1}
	for i := range 1 + r.IntN(rules) {
		rule := Rule{Slug: fmt.Sprintf("r%d", i), Binaries: binaries(some(r, genBinaries, 3)...)}
		for range 1 + r.IntN(3) {
			rule.Endpoints = append(rule.Endpoints, genEndpoint(r))
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

func genRequest(r *rand.Rand) Request {
	q := Request{Binary: pick(r, askBinaries), Host: pick(r, askHosts), Port: genPort(r), Method: pick(r, askMethods), Path: pick(r, askPaths)}
	if r.IntN(3) == 0 {
		q.Ancestors = some(r, askBinaries, 2)
	}
	return q
}

// Ambiguous policies have no one answer in OpenShell, so where endpoints disagree the two implementations may, too.
func ambiguous(p *Policy) bool {
	return slices.ContainsFunc(Check(p), func(f Finding) bool { return slices.Contains(f.Kinds, KindEndpointAmbiguity) })
}

func TestDecideAgreesWithReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	asked, by := 0, map[string]int{}
	for range 1500 {
		p := genPolicy(r, 3)
		if ambiguous(p) {
			continue
		}
		d := NewDecider(p)
		for range 40 {
			q := genRequest(r)
			got, want := d.Decide(&q), naiveDecide(p, q)
			asked++
			by[want]++
			if got.Answer.String() != want {
				t.Fatalf("%+v\n%s\n%s because %s %s, the reference says %s", q, Print(p), got.Answer, got.Reason, got.By, want)
			}
			if got.Answer == Allow && got.Policy == "" {
				t.Fatalf("%+v: allowed by no policy", q)
			}
		}
	}
	if asked < 10000 || by["allow"] < 500 || by["audit"] < 50 {
		t.Errorf("the universe is too thin: %d requests, %v", asked, by)
	}
}

func TestGlobAgreesWithReference(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	letters := []string{"a", "b", "*", "**", "/", "/", "?", "a*", "/**/", "/**"}
	for range 60000 {
		pattern := strings.Join(some(r, letters, 6), "")
		text := strings.Join(some(r, []string{"a", "b", "/", "/", "ab", "."}, 6), "")
		g, err := compileGlob(pattern, '/')
		if err != nil {
			t.Fatal(err)
		}
		// Two whole ** in a row are not in the facts and neither side claims them.
		if strings.Contains(pattern, "**/**") || strings.Contains(pattern, "***") {
			continue
		}
		want := naiveGlob(pattern, "/", text)
		if got := g.match(text); got != want {
			t.Fatalf("%q against %q: %v, the reference says %v", pattern, text, got, want)
		}
		accepts := slices.ContainsFunc(g.automata(), func(a automaton) bool { return a.accepts(text) })
		if accepts != want {
			t.Fatalf("%q against %q: the automaton says %v, the reference %v", pattern, text, accepts, want)
		}
	}
}

func TestGlobSyntax(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{"/a{b,c}d", "/abd /acd", "/ad /abcd"},
		{"/x[a-c]", "/xa /xc", "/xd /x"},
		{"/x[!a-c]", "/xd", "/xa /x"},
		{`/\*`, "/*", "/a"},
		{"/[]]", "/]", "/a"},
		{"/{a,b/**}", "/a /b/c/d", "/b /c"},
		{"/**/x", "/x /a/x /a/b/x", "/ax"},
		{"/a/**", "/a/ /a/b /a/b/c", "/a /ab"},
	} {
		g, err := compileGlob(c.pattern, '/')
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for s := range strings.FieldsSeq(c.yes) {
			if !g.match(s) {
				t.Errorf("%s does not match %s", c.pattern, s)
			}
		}
		for s := range strings.FieldsSeq(c.no) {
			if g.match(s) {
				t.Errorf("%s matches %s", c.pattern, s)
			}
		}
	}
	for _, bad := range []string{"/[a", "/{a", "/a}", `/a*\`, "/[z-a]*", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"} {
		if _, err := compileGlob(bad, '/'); err == nil {
			t.Errorf("%s compiles", bad)
		}
	}
}

// clean drops the places, which print does not keep.
func clean(p *Policy) *Policy {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				f := v.Field(i)
				switch v.Type().Field(i).Name {
				case "Place", "Pos":
					f.SetZero()
				default:
					walk(f)
				}
			}
		}
	}
	walk(reflect.ValueOf(p))
	return p
}

func TestPrintParses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	yes := true
	for i := range 2000 {
		p := genPolicy(r, 4)
		p.Rules[0].Name = pick(r, []string{"true", "a: b", "# x", "", "é\u2028\n", "123", "~", "- a", "plain-word"})
		p.Rules[0].Slug = pick(r, []string{"r0", "", "~", "a b", "null"})
		e := &p.Rules[0].Endpoints[0]
		if r.IntN(2) == 0 {
			e.MCP = &MCP{StrictToolNames: &yes}
			e.JSONRPC = &JSONRPC{}
			e.GraphQLPersistedQueries = []PersistedQuery{{ID: "q", OperationType: "query", Fields: []string{"a"}}}
			e.CredentialBinding = &CredentialBinding{Provider: "p"}
			e.Rules = []L7Rule{{}, {Tool: &Match{Globs: []string{"1"}}, Params: []Param{{Name: "a", Nested: []Param{{Name: "b", Match: &Match{Any: true}}}}, {Name: "n"}}}}
		}
		if r.IntN(2) == 0 {
			p.Filesystem = &Filesystem{ReadOnly: []string{"/usr"}}
			p.Landlock, p.Process = &Landlock{}, &Process{RunAsUser: "1500"}
			p.Middlewares = []Middleware{{Key: "m", Middleware: "openshell/regex", Order: -3, Endpoints: &Selector{Include: []string{"**"}},
				Config: []Value{{Key: "a", Kind: Sequence, Items: []Value{{Kind: Plain, Text: "1.0"}, {Text: "1.0"}, {Kind: Map}, {Kind: Sequence}}}}}}
		}
		slices.SortFunc(p.Rules, func(a, b Rule) int { return strings.Compare(a.Slug, b.Slug) })
		text := Print(p)
		back, fs := Parse(0, text)
		if len(fs) > 0 {
			t.Fatalf("%d: %s\n%s", i, show(fs), text)
		}
		if !reflect.DeepEqual(clean(back), clean(p)) {
			t.Fatalf("%d: not the same policy:\n%s\nagain:\n%s\n%+v\n%+v", i, text, Print(back), back, p)
		}
		if again := Print(back); string(again) != string(text) {
			t.Fatalf("%d: not the same bytes:\n%s\n%s", i, text, again)
		}
	}
}

// TestOverlapAndCovers compares the automata with matching over a universe of names.
func TestOverlapAndCovers(t *testing.T) {
	var names []string
	labels := []string{"a", "b", "x", "a-x", "b-x", "example"}
	for _, x := range labels {
		for _, y := range labels {
			names = append(names, x+"."+y, x)
			for _, z := range labels {
				names = append(names, x+"."+y+"."+z, "q."+x+"."+y+"."+z)
			}
		}
	}
	patterns := []string{"a", "a.b", "*.b", "**.b", "*-x.b", "a.*.b", "*.a.b", "**.a.b", "*.*", "a*.b", "x.*.example", "**", "*.example", "**.example"}
	for _, s := range patterns {
		for _, u := range patterns {
			a, _ := hostPattern(s)
			b, _ := hostPattern(u)
			both, only := false, false
			for _, n := range names {
				both = both || a.match(n) && b.match(n)
				only = only || b.match(n) && !a.match(n)
			}
			if got := overlap(a, b, hostShape); got != both {
				t.Errorf("overlap(%s, %s) = %v", s, u, got)
			}
			if got := covers(a, b, hostShape); got == only {
				t.Errorf("covers(%s, %s) = %v", s, u, got)
			}
		}
	}
}

func TestLooser(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	looser, not := 0, 0
	for range 700 {
		base := genPolicy(r, 3)
		if ambiguous(base) {
			continue
		}
		if w, ok := Looser(base, base); ok && !strings.HasPrefix(w.What, "cannot") {
			t.Fatalf("looser than itself: %s\n%s", w, Print(base))
		}
		next := genPolicy(r, 3)
		if r.IntN(2) == 0 { // a small change of base finds more pairs that are not looser
			next, _ = Parse(0, Print(base))
			rule := &next.Rules[r.IntN(len(next.Rules))]
			switch e := &rule.Endpoints[r.IntN(len(rule.Endpoints))]; r.IntN(5) {
			case 0:
				e.DenyRules = append(e.DenyRules, L7Rule{Method: "*", Path: "**"})
			case 1:
				rule.Binaries = rule.Binaries[:1]
			case 2:
				e.Enforcement = "enforce"
			case 3:
				e.Host = "api.example.com"
			case 4:
				rule.Endpoints = rule.Endpoints[:1]
			}
		}
		if ambiguous(next) {
			continue
		}
		w, ok := Looser(base, next)
		if ok {
			looser++
			if w.Request != nil && strings.HasPrefix(w.What, "deny -> ") && w.Request.Method != "" && !strings.Contains(string(Print(base))+string(Print(next)), "query:") {
				if naiveDecide(base, *w.Request) != "deny" || naiveDecide(next, *w.Request) == "deny" {
					t.Fatalf("witness %s is none:\n%s\n%s", w, Print(base), Print(next))
				}
			}
			continue
		}
		not++
		for range 300 {
			q := genRequest(r)
			if naiveDecide(next, q) != "deny" && naiveDecide(base, q) == "deny" {
				t.Fatalf("%+v passes under the policy that is not looser\nbase:\n%s\nnext:\n%s", q, Print(base), Print(next))
			}
		}
	}
	if looser < 50 || not < 30 {
		t.Errorf("the universe is too thin: %d looser, %d not", looser, not)
	}
}
