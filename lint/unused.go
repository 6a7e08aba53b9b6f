package lint

import "halos.dev/halo/compiler/diag"

var unusedDocument = Rule{
	Code: &diag.Code{ID: "HALO2303", Severity: diag.Warning, Title: "document that nothing uses", Since: "0.1.0",
		Text:   "No ring leads to this profile, no policy names this preset, or no Sandbox document names this pack. It reads as if it were in force and is not. Use it or remove it.",
		Before: "kind: Preset\nname: acme-internal\nhosts: [docs.acme.example]", After: "egress: {presets: [acme-internal]}"},
	Find: func(p *Pass) {
		used := map[string]bool{}
		presets := map[string]bool{}
		for _, r := range p.Repo.Rings {
			for name := r.Profile.V; name != "" && !used[name]; {
				used[name] = true
				profile := p.Repo.Profile(name)
				if profile == nil {
					break
				}
				name = profile.Extends.V
			}
		}
		for _, doc := range p.Repo.Profiles {
			if !used[doc.Name.V] {
				p.Report(doc.Name.Pos, "name", "no ring leads to profile %s", doc.Name.V)
			}
			for _, s := range doc.Egress.Presets.Items {
				presets[s.V] = true
			}
		}
		for _, doc := range p.Repo.Units {
			for _, s := range doc.Overlay.Egress.Presets.Items {
				presets[s.V] = true
			}
		}
		for _, doc := range p.Repo.Presets {
			if !presets[doc.Name.V] {
				p.Report(doc.Name.Pos, "name", "no policy names preset %s", doc.Name.V)
			}
		}
	},
}
