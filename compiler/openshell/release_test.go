package openshell

import (
	"bytes"
	"slices"
	"testing"

	"halos.dev/halo/compiler/diag"
)

func at(text string, line int, path string) Host { return Host{text, diag.NewPos(1, line, 3), path} }

// TestBuildPlaces: every finding and gap has a place, also one about a source that no file holds.
func TestBuildPlaces(t *testing.T) {
	mine := parsed(t, 2, "version: 1\nnetwork_policies:\n  mine:\n    endpoints: [{host: api.anthropic.com, port: 443, protocol: rest, access: full}]\n    binaries: [{path: /usr/bin/curl}]\n")
	in := Input{Agent: at("claude", 5, "policy.agents[0]"), Provider: at("anthropic", 6, "policy.inference.provider"), At: at("", 4, "policy"),
		Fragments: []Fragment{{"openshell/mine.yaml", mine}},
		Egress:    &Egress{Policy: resolved("deny", hosts("api.anthropic.com"), nil)}}
	out := Build(in)
	var got []string
	for _, f := range out.Findings {
		got = append(got, f.Code.ID+" "+f.Path+" from "+f.Origin)
		if f.Pos.File() != 2 || f.Pos.Line() != 4 || f.Severity != diag.Error {
			t.Errorf("at %d:%d", f.Pos.File(), f.Pos.Line())
		}
	}
	if want := []string{
		"HALO2211 network_policies.mine.endpoints[0] from openshell/mine.yaml",
		"HALO2220 network_policies.mine.endpoints[0].enforcement from openshell/mine.yaml",
	}; !slices.Equal(got, want) || out.Data != nil {
		t.Errorf("findings %q, data %q", got, out.Data)
	}
	lines := map[string]int{}
	for _, g := range out.Gaps {
		if g.Finding.Pos.File() != 1 && g.Name == GapRemoved {
			t.Errorf("%+v", g)
		}
		lines[g.Host+" "+g.Finding.Path] = g.Finding.Pos.Line()
	}
	for want, line := range map[string]int{"statsig.anthropic.com policy.inference.provider": 6, "platform.claude.com policy.agents[0]": 5, "github.com policy": 4} {
		if lines[want] != line {
			t.Errorf("%s on line %d, want %d: %v", want, lines[want], line, lines)
		}
	}
}

// TestBuildKeepsInputs: one parsed file serves many targets, and the same input gives the same bytes.
func TestBuildKeepsInputs(t *testing.T) {
	base := BuiltinBase()
	base.Rules = append(base.Rules, Rule{Slug: "mine", Binaries: binaries("/usr/bin/curl"), Endpoints: []Endpoint{{Host: "a.example.com", Port: 443, TLS: "terminate"}, {Host: "b.example.com", Port: 443}}})
	before := Print(base)
	in := Input{Base: &Fragment{"openshell/base.yaml", base}, Agent: Host{Text: "opencode"}, Provider: Host{Text: "openai"},
		Egress: &Egress{Policy: resolved("deny", hosts("*.example.com", "github.com", "api.github.com"), hosts("x.example.com")), Ports: []uint16{443}}}
	first := Build(in)
	if len(first.Findings) > 0 || len(first.Gaps) == 0 {
		t.Fatal(show(first.Findings))
	}
	narrow := in
	narrow.Egress = &Egress{Policy: resolved("deny", hosts("a.example.com", "b.example.com", "github.com", "api.github.com"), nil), Ports: []uint16{443}}
	second := Build(narrow)
	if w, looser := Looser(first.Policy, second.Policy); looser || len(second.Findings) > 0 {
		t.Errorf("narrower egress is looser: %s %s", w, show(second.Findings))
	}
	if w, looser := Looser(second.Policy, first.Policy); !looser {
		t.Errorf("wider egress is not looser: %s", w)
	}
	if again := Build(in); !bytes.Equal(again.Data, first.Data) {
		t.Error("the second build differs")
	}
	if !bytes.Equal(Print(base), before) || base.Rules[2].Endpoints[0].TLS != "terminate" {
		t.Error("the base was changed")
	}
}
