package compiler

import (
	"maps"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/trace"
)

// Trace walks from the lines of a rendering of a policy back to what produced them, for the lines that want answers true for.
func (c *Compiled) Trace(p *effective.Policy, r *Rendering, want func(dest string, number int, text string) bool) []trace.File {
	org, gatewayURL, models := c.gateway()
	in := trace.Input{Target: harness.Target{Policy: p, OS: r.OS, Version: r.Version, Org: org, GatewayURL: gatewayURL, Models: models}, Harness: r.Harness.ID, Render: r.Harness.Render}
	if doc := c.Repo.Profile(p.Profile); doc != nil {
		// Some harnesses show the name of the profile; any other name shows which lines those are.
		in.Beside = append(in.Beside, trace.Beside{Key: "profile", Value: p.Profile, Pos: doc.Name.Pos, Drop: func(t *harness.Target) { t.Policy.Profile += "-" }})
	}
	if org != "" {
		in.Beside = append(in.Beside, trace.Beside{Key: "org", Value: org, Pos: c.Repo.Root.Org.Pos, Drop: func(t *harness.Target) { t.Org = "" }})
	}
	if g := c.Repo.Gateway; g != nil {
		in.Beside = append(in.Beside, trace.Beside{Key: "gateway.baseURL", Value: gatewayURL, Pos: g.BaseURL.Pos, Drop: func(t *harness.Target) { t.GatewayURL = "" }})
		for _, m := range g.Models {
			in.Beside = append(in.Beside, trace.Beside{Key: "gateway.models." + m.Alias.V, Value: m.Alias.V, Pos: m.Alias.Pos, Drop: func(t *harness.Target) {
				t.Models = maps.Clone(t.Models)
				delete(t.Models, m.Alias.V)
			}})
		}
	}
	return trace.Lines(in, want)
}
