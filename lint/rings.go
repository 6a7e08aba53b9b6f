package lint

import (
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

var emptyRing = Rule{
	Code: &diag.Code{ID: "HALO2304", Severity: diag.Warning, Title: "ring or unit without people", Since: "0.1.0",
		Text:   "Nobody can be in it: it lists no users and no groups, and a ring has neither a percentage nor is it the default. Its targets are built for nobody.",
		Before: "kind: Ring\nname: ring0\norder: 0\nprofile: base", After: "kind: Ring\nname: ring0\norder: 0\nprofile: base\nmembership: {groups: [platform]}"},
	Find: func(p *Pass) {
		for _, r := range p.Repo.Rings {
			m := &r.Membership
			if !m.Default.V && !m.OptIn.V && m.Percent.V == 0 && len(m.Users.Items)+len(m.Groups.Items) == 0 {
				d := p.about(r.Name.Pos, "membership", "ring %s has no users, groups or percentage and is not the default", r.Name.V)
				if p.Repo.Files.Name(r.Name.Pos) == policy.RootFile {
					d.Hint = "write team: and the groups or users of the first ring"
				}
				p.diags.Add(d)
			}
		}
		for _, u := range p.Repo.Units {
			if len(u.Membership.Users.Items)+len(u.Membership.Groups.Items) == 0 {
				p.Report(u.Name.Pos, "membership", "unit %s has no users and no groups", u.Name.V)
			}
		}
	},
}

var farPins = Rule{
	Code: &diag.Code{ID: "HALO2305", Severity: diag.Warning, Title: "pins of a harness far apart", Since: "0.1.0",
		Text: "Two rings pin versions of one harness that differ in the first number, or by many minor versions. What is proven in the early ring says little about the late one: their files may " +
			"hold different things. Move the older pin up.",
		Before: "harnesses: {claude-code: {version: 1.0.20}}", After: "harnesses: {claude-code: {version: 2.1.332}}"},
	Find: func(p *Pass) {
		type seen struct {
			ring *policy.Ring
			v    harness.Version
		}
		lowest, highest := map[string]seen{}, map[string]seen{}
		for _, r := range p.Repo.Rings {
			eff := p.Resolver.Profile(r.Profile.V)
			if eff == nil {
				continue
			}
			for _, pin := range eff.Harnesses {
				v, ok := harness.ParseVersion(pin.Version.V)
				if !ok {
					continue
				}
				if l, have := lowest[pin.Harness.V]; !have || v.Less(l.v) {
					lowest[pin.Harness.V] = seen{r, v}
				}
				if h, have := highest[pin.Harness.V]; !have || h.v.Less(v) {
					highest[pin.Harness.V] = seen{r, v}
				}
			}
		}
		for _, id := range policy.Harnesses {
			l, h := lowest[id], highest[id]
			if l.ring == nil || l.v.Major == h.v.Major && h.v.Minor-l.v.Minor < minorGap {
				continue
			}
			pin := p.Resolver.Profile(l.ring.Profile.V).Pin(id)
			p.Report(pin.Version.Pos, "harnesses."+id+".version", "ring %s pins %s %s and ring %s pins %s", l.ring.Name.V, id, l.v, h.ring.Name.V, h.v)
		}
	},
}

// minorGap is how many minor versions apart two pins may be.
const minorGap = 20

var untestedDenial = Rule{
	Code: &diag.Code{ID: "HALO2306", Severity: diag.Info, Title: "denied host without a policy test", Since: "0.1.0",
		Text:  "No policy test expects this host to be denied, so that nothing fails when the entry is lost in an edit.",
		After: "kind: PolicyTest\nname: egress\ntests:\n  - {host: pastebin.com, expect: deny}"},
	Find: func(p *Pass) {
		outcomes, err := p.RunTests()
		if err != nil {
			return
		}
		tested := map[string]bool{}
		for _, o := range outcomes {
			// A wildcard beside its apex is one decision to people: either name tests both.
			tested[o.Rule] = true
			if field, entry, ok := strings.Cut(o.Rule, " "); ok {
				tested[field+" *."+entry] = true
				if apex, wild := strings.CutPrefix(entry, "*."); wild {
					tested[field+" "+apex] = true
				}
			}
		}
		// One finding for a list, at its first entry without a test: a list of a hundred would otherwise bury the rest.
		report := func(l policy.Hosts, path string) {
			first, untested := 0, 0
			for i, h := range l.Items {
				if tested["egress.deniedDomains "+h.Pattern.String()] {
					continue
				}
				if untested == 0 {
					first = i
				}
				untested++
			}
			more := ""
			switch untested {
			case 0:
				return
			case 1:
			case 2:
				more = " and one more entry of the list"
			default:
				more = " and " + strconv.Itoa(untested-1) + " more entries of the list"
			}
			h := l.Items[first]
			p.Report(h.Pos, indexed(path, first), "no policy test expects %s%s to be denied", h.Pattern, more)
		}
		for _, doc := range p.Repo.Layers() {
			report(doc.Egress.DeniedDomains, "egress.deniedDomains")
		}
		for _, doc := range p.Repo.Units {
			report(doc.Overlay.Egress.DeniedDomains, "overlay.egress.deniedDomains")
		}
	},
}
