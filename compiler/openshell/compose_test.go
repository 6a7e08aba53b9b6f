package openshell

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/host"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func hosts(names ...string) []Host {
	var out []Host
	for i, n := range names {
		out = append(out, Host{Text: n, Pos: diag.NewPos(9, i+1, 1)})
	}
	return out
}

// resolved compiles an egress policy from patterns as a profile has them.
func resolved(def string, allowed, denied []Host) *egress.Policy {
	entries := func(field string, read func(string) (host.Pattern, *host.Problem), hs []Host) (out []egress.Entry) {
		for _, h := range hs {
			p, problem := read(h.Text)
			if problem != nil {
				panic(h.Text + " " + problem.Reason)
			}
			out = append(out, egress.Entry{Pattern: p, Field: field, Name: h.Text, Pos: h.Pos})
		}
		return out
	}
	return egress.Compile(egress.Rules{Default: def, Allowed: entries("egress.allowedDomains", host.ParsePattern, allowed), Denied: entries("egress.deniedDomains", host.ParseDenyPattern, denied)})
}

func parsed(t testing.TB, file int, text string) *Policy {
	t.Helper()
	p, fs := Parse(file, []byte(text))
	if HasErrors(fs) {
		t.Fatal(show(fs))
	}
	return p
}

func TestGolden(t *testing.T) {
	for name, in := range map[string]Input{
		"base":          {},
		"claude":        {Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}, Hosts: hosts("registry.internal.example.com")},
		"opencode":      {Agent: Host{Text: "opencode"}, Provider: Host{Text: "ollama"}, BaseURL: Host{Text: "http://localhost:9999/v1"}},
		"claude-egress": {Agent: Host{Text: "claude"}, Egress: &Egress{Policy: resolved("deny", hosts("github.com", "api.github.com", "*.example.com", "platform.claude.com"), hosts("secret.example.com", "*.int.example.com"))}},
	} {
		t.Run(name, func(t *testing.T) {
			out := Compose(in)
			if fs := append(out.Findings, Check(out.Policy)...); len(fs) > 0 {
				t.Error(show(fs))
			}
			got := Print(out.Policy)
			file := "testdata/" + name + ".policy.yaml"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs (run with -update):\n%s", file, got)
			}
		})
	}
}

func TestSlugConflicts(t *testing.T) {
	fragment := parsed(t, 3, "version: 1\nnetwork_policies:\n  claude_code:\n    endpoints: [{host: a.example.com, port: 443}]\n    binaries: [{path: /usr/bin/curl}]\n")
	in := Input{Agent: Host{Text: "claude"}, Fragments: []Fragment{{"openshell/claude.yaml", fragment}}}
	out := Compose(in)
	if len(out.Findings) != 1 || out.Findings[0].Code != codeSlug || out.Findings[0].Pos != diag.NewPos(3, 3, 3) {
		t.Fatalf("findings %s", show(out.Findings))
	}
	in.Replace = hosts("claude_code", "nothing")
	out = Compose(in)
	if len(out.Findings) != 1 || out.Findings[0].Code != codeReplace {
		t.Fatalf("findings %s", show(out.Findings))
	}
	if e := out.Policy.Rule("claude_code").Endpoints; len(e) != 1 || e[0].Host != "a.example.com" {
		t.Errorf("endpoints %+v", e)
	}
}

func TestPlacesSurviveComposing(t *testing.T) {
	fragment := parsed(t, 4, "version: 1\nnetwork_policies:\n  mine:\n    binaries: [{path: /usr/bin/curl}]\n    endpoints:\n      - {host: a.example.com, port: 443, protocol: rest, access: full, tls: terminate}\n")
	out := Compose(Input{Fragments: []Fragment{{"f.yaml", fragment}}})
	var got []diag.Pos
	for _, f := range Check(out.Policy) {
		got = append(got, f.Pos)
		if f.Path != "network_policies.mine.endpoints[0].enforcement" || f.Code != codeAudit {
			t.Errorf("%s: %s", f.Path, f.Message)
		}
	}
	if !slices.Equal(got, []diag.Pos{diag.NewPos(4, 6, 9)}) {
		t.Errorf("places %v", got)
	}
	if strings.Contains(string(Print(out.Policy)), "tls") {
		t.Error("the composed policy carries tls")
	}
}

func TestEgressRules(t *testing.T) {
	fragment := func(hosts ...string) []Fragment {
		var b strings.Builder
		b.WriteString("version: 1\nnetwork_policies:\n  mine:\n    binaries: [{path: /usr/bin/curl}]\n    endpoints:\n")
		for _, h := range hosts {
			b.WriteString("      - {host: '" + h + "', port: 443}\n")
		}
		return []Fragment{{"mine.yaml", parsed(t, 2, b.String())}}
	}
	for _, c := range []struct {
		name     string
		in       Input
		findings []*diag.Code
		gaps     []string // name and host
	}{
		{"built-in hosts are removed", Input{Egress: &Egress{Policy: resolved("deny", hosts("example.com"), nil), Permit: hosts("github.com")}}, nil, []string{GapRemoved + " api.github.com"}},
		{"repo hosts are errors", Input{Egress: &Egress{Policy: resolved("deny", hosts("*.example.com", "github.com", "api.github.com"), nil)}, Fragments: fragment("a.example.com", "example.com", "*.example.com", "**.example.com", "**.org.example.net")},
			[]*diag.Code{codeDenied, codeDenied}, []string{GapInspected + " api.github.com", GapInspected + " github.com"}},
		{"denied inside a pattern of the repo", Input{Egress: &Egress{Policy: resolved("allow", nil, hosts("x.example.com"))}, Fragments: fragment("**.example.com", "example.com")},
			[]*diag.Code{codeDenied}, []string{GapDefaultAllow + " "}},
		{"denied cannot be permitted", Input{Egress: &Egress{Policy: resolved("deny", nil, hosts("*.example.com")), Permit: hosts("a.example.com", "github.com", "api.github.com")}, Fragments: fragment("a.example.com")},
			[]*diag.Code{codeDenied, codePermit}, nil},
		{"only the denied list counts", Input{Egress: &Egress{Policy: resolved("deny", nil, hosts("api.github.com")), DeniedOnly: true}, Fragments: fragment("anything.example.com")}, nil, []string{GapRemoved + " api.github.com"}},
		{"a base URL is the repo's own", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "anthropic"}, BaseURL: Host{Text: "https://ai.example.com"}, Egress: &Egress{Policy: resolved("deny", hosts("platform.claude.com", "raw.githubusercontent.com"), nil)}},
			[]*diag.Code{codeDenied}, []string{GapRemoved + " api.github.com", GapRemoved + " github.com", GapRemoved + " api.github.com"}},
		{"localhost", Input{Egress: &Egress{Policy: resolved("deny", hosts("localhost", "github.com", "api.github.com"), nil)}}, nil, []string{GapLoopback + " localhost", GapInspected + " api.github.com", GapInspected + " github.com"}},
		{"the slug is ours", Input{Egress: &Egress{Policy: resolved("deny", hosts("github.com", "api.github.com", "a.example.com"), nil)}, Replace: hosts("halo_egress"),
			Fragments: []Fragment{{"f.yaml", &Policy{Version: 1, Rules: []Rule{{Slug: "halo_egress"}}}}}}, []*diag.Code{codeSlug, codeReplace}, []string{GapInspected + " api.github.com", GapInspected + " github.com"}},
		{"a removed wildcard of a provider", Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "vertexai"}, Egress: &Egress{Policy: resolved("deny", nil, hosts("us-aiplatform.googleapis.com")), DeniedOnly: true}}, nil, []string{GapRemoved + " *-aiplatform.googleapis.com"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := Compose(c.in)
			var codes []*diag.Code
			for _, f := range out.Findings {
				codes = append(codes, f.Code)
			}
			slices.SortFunc(codes, func(a, b *diag.Code) int { return strings.Compare(a.ID, b.ID) })
			slices.SortFunc(c.findings, func(a, b *diag.Code) int { return strings.Compare(a.ID, b.ID) })
			if !slices.Equal(codes, c.findings) {
				t.Errorf("findings %s", show(out.Findings))
			}
			var gaps []string
			for _, g := range out.Gaps {
				gaps = append(gaps, g.Name+" "+g.Host)
			}
			if !slices.Equal(gaps, c.gaps) {
				t.Errorf("gaps %q, want %q", gaps, c.gaps)
			}
		})
	}
}

// TestEgressLaw: what the egress policy denies and no permit names is allowed for no binary, port, method or path; what it allows, and no gap
// names, is allowed for the agent's binary on 443.
func TestEgressLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	names := []string{"github.com", "api.github.com", "registry.npmjs.org", "api.anthropic.com", "us-aiplatform.googleapis.com", "oauth2.googleapis.com"}
	labels := []string{"a", "b", "int"}
	for _, d := range []string{"example.com", "example.net", "googleapis.com"} {
		names = append(names, d)
		for _, x := range labels {
			names = append(names, x+"."+d)
			for _, y := range labels {
				names = append(names, y+"."+x+"."+d)
			}
		}
	}
	patterns := slices.Clone(names)
	for _, d := range []string{"example.com", "example.net", "a.example.com", "int.example.com", "b.int.example.com", "googleapis.com", "github.com"} {
		patterns = append(patterns, "*."+d)
	}
	denials := append(slices.Clone(patterns), "*.com", "*.net", "*.dev")
	checked, allowed, refused := 0, 0, 0
	for range 400 {
		def, allow, deny := pick(r, []string{"deny", "", "allow"}), hosts(some(r, patterns, 5)...), hosts(some(r, denials, 3)...)
		if def == "allow" {
			allow = nil
		}
		permit := some(r, patterns, 2)
		eg := &Egress{Policy: resolved(def, allow, deny), Permit: hosts(permit...), DeniedOnly: r.IntN(5) == 0}
		open, _ := eg.Policy.Default()
		var permits []host.Pattern
		for _, p := range permit {
			pattern, problem := host.ParsePattern(p)
			if problem != nil {
				t.Fatal(p, problem)
			}
			permits = append(permits, pattern)
		}
		input := Input{Agent: Host{Text: pick(r, Agents())}, Egress: eg, Hosts: hosts(some(r, names, 3)...)}
		input.Provider.Text = pick(r, Providers(input.Agent.Text))
		if r.IntN(2) == 0 {
			input.Fragments = []Fragment{{"f.yaml", &Policy{Version: 1, Rules: []Rule{{Slug: "f", Binaries: binaries("/usr/bin/**"), Endpoints: []Endpoint{
				inspect(pick(r, []string{"*.example.com", "**.int.example.com", "a.example.net", "*.b.googleapis.com", "**.googleapis.com"}), "full")}}}}}}
		}
		out := Build(input)
		if HasErrors(out.Findings) {
			refused++
			// The errors say what the law would find. Without the sources at fault it holds.
			input.Hosts, input.Fragments = nil, nil
			if out = Build(input); slices.ContainsFunc(out.Findings, func(f Finding) bool { return f.Code == codeDenied }) {
				t.Fatal(show(out.Findings))
			}
		}
		if ok := !HasErrors(out.Findings); ok != (len(out.Data) > 0) || ok && !bytes.Equal(out.Data, Print(out.Policy)) {
			t.Fatalf("%s\n%s", show(out.Findings), out.Data)
		}
		d := NewDecider(parsed(t, 0, string(Print(out.Policy))))
		for _, name := range names {
			decision := eg.Policy.Decide(host.Name(name))
			denied := !decision.Allow
			permitted := denied && decision.Field == "egress.default" && (eg.DeniedOnly || slices.ContainsFunc(permits, func(p host.Pattern) bool { return p.Matches(host.Name(name)) }))
			gap := open || eg.DeniedOnly || slices.ContainsFunc(out.Gaps, func(g Gap) bool {
				p, err := hostPattern(g.Host)
				return err == nil && p.match(name)
			})
			for _, bin := range []string{AgentBinary(input.Agent.Text), "/usr/bin/git", "/usr/bin/gh", "/usr/bin/curl", "/opt/x"} {
				for _, port := range []uint16{443, 80, 11434, 22} {
					for _, method := range []string{"", "GET", "POST", "DELETE"} {
						q := Request{Binary: bin, Host: name, Port: port, Method: method, Path: "/x/y"}
						got := d.Decide(&q)
						checked++
						if denied && !permitted && got.Answer != Deny {
							t.Fatalf("%+v is denied by egress and %s: %s\n%s", q, got.Answer, got.By, Print(out.Policy))
						}
						if !denied && !gap && port == 443 && bin == AgentBinary(input.Agent.Text) && method != "" {
							if allowed++; got.Answer != Allow {
								t.Fatalf("%+v is allowed by egress and %s: %s %s\n%s", q, got.Answer, got.Reason, got.By, Print(out.Policy))
							}
						}
					}
				}
			}
		}
	}
	if allowed < 2000 || refused < 20 || refused > 380 {
		t.Errorf("%d requests, %d of them allowed, %d policies refused", checked, allowed, refused)
	}
}

func TestEgressOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	allowed, denied := hosts("*.example.com", "b.example.com", "github.com", "api.github.com"), hosts("x.example.com", "*.y.example.com")
	want := Print(Compose(Input{Egress: &Egress{Policy: resolved("deny", allowed, denied), Ports: []uint16{443, 8443}}}).Policy)
	for range 20 {
		r.Shuffle(len(allowed), func(i, j int) { allowed[i], allowed[j] = allowed[j], allowed[i] })
		r.Shuffle(len(denied), func(i, j int) { denied[i], denied[j] = denied[j], denied[i] })
		if got := Print(Compose(Input{Egress: &Egress{Policy: resolved("deny", allowed, denied), Ports: []uint16{8443, 443}}}).Policy); !bytes.Equal(got, want) {
			t.Fatalf("%s\n%s", got, want)
		}
	}
}

// TestLooserOfComposed: a unit that denies more or drops a host is not looser, one that adds a host is.
func TestLooserOfComposed(t *testing.T) {
	compose := func(allowed, denied []string, extra ...string) *Policy {
		return Compose(Input{Agent: Host{Text: "claude"}, Provider: Host{Text: "vertexai"}, Hosts: hosts(extra...), Egress: &Egress{Policy: resolved("deny", hosts(allowed...), hosts(denied...)),
			Permit: hosts("*.googleapis.com", "github.com", "api.github.com", "platform.claude.com", "raw.githubusercontent.com")}}).Policy
	}
	base := compose([]string{"*.example.com", "example.org"}, []string{"x.example.com"})
	for _, c := range []struct {
		name   string
		next   *Policy
		looser bool
	}{
		{"same", compose([]string{"*.example.com", "example.org"}, []string{"x.example.com"}), false},
		{"less", compose([]string{"*.example.com"}, []string{"x.example.com"}), false},
		{"more denied", compose([]string{"*.example.com"}, []string{"x.example.com", "*.y.example.com"}), false},
		{"less denied", compose([]string{"*.example.com"}, nil), true},
		{"more allowed", compose([]string{"*.example.com", "example.net"}, []string{"x.example.com"}), true},
		{"apex", compose([]string{"*.example.com", "example.com"}, []string{"x.example.com"}), true},
		{"a name of the wildcard", compose([]string{"a.example.com"}, nil), false},
		{"deeper", compose([]string{"*.a.example.com"}, nil), false},
		{"workspace", compose([]string{"*.example.com", "example.org"}, []string{"x.example.com"}, "example.org"), false},
	} {
		w, looser := Looser(base, c.next)
		if looser != c.looser {
			t.Errorf("%s: looser %v (%s), want %v", c.name, looser, w, c.looser)
		}
		if looser && (w.What == "" || strings.HasPrefix(w.What, "cannot")) {
			t.Errorf("%s: witness %s", c.name, w)
		}
	}
}

func TestLooserSections(t *testing.T) {
	base := Compose(Input{}).Policy
	for _, c := range []struct {
		change string
		do     func(*Policy)
		looser bool
	}{
		{"nothing", func(p *Policy) {}, false},
		{"fewer writable", func(p *Policy) { p.Filesystem.ReadWrite = []string{"/tmp/x"} }, false},
		{"more writable", func(p *Policy) { p.Filesystem.ReadWrite = append(p.Filesystem.ReadWrite, "/usr/local") }, true},
		{"more readable", func(p *Policy) { p.Filesystem.ReadOnly = append(p.Filesystem.ReadOnly, "/root") }, true},
		{"no section", func(p *Policy) { p.Filesystem = nil }, false},
		{"other user", func(p *Policy) { p.Process.RunAsUser = "1000" }, true},
		{"middleware gone or new", func(p *Policy) { p.Middlewares = []Middleware{{Key: "a"}} }, true},
		{"hard landlock", func(p *Policy) { p.Landlock.Compatibility = "hard_requirement" }, false},
	} {
		next := Compose(Input{}).Policy
		c.do(next)
		if w, looser := Looser(base, next); looser != c.looser {
			t.Errorf("%s: %v (%s)", c.change, looser, w)
		}
	}
}
