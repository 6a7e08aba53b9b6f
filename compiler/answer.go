package compiler

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
)

// Who is a ring, "" for the default ring, with units.
type Who struct {
	Ring  string
	Units []string
}

// Resolve returns the policy of a ring with units. Any set of units is answered for; the error names what does not exist.
func (c *Compiled) Resolve(w Who) (effective.Target, error) {
	ring := c.Repo.DefaultRing()
	if w.Ring != "" {
		if ring = c.Repo.Ring(w.Ring); ring == nil {
			return effective.Target{}, unknown("ring", w.Ring, names(c.Repo.Rings, func(r *policy.Ring) string { return r.Name.V }))
		}
	}
	if ring == nil {
		return effective.Target{}, fmt.Errorf("no ring was named and there is no default ring")
	}
	base := c.Resolver.Profile(ring.Profile.V)
	if base == nil {
		return effective.Target{}, fmt.Errorf("the profile %q of ring %s does not resolve", ring.Profile.V, ring.Name.V)
	}
	t := effective.Target{Ring: ring}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(w.Units))) {
		u := c.Repo.Unit(name)
		if u == nil {
			return effective.Target{}, unknown("unit", name, names(c.Repo.Units, func(u *policy.Unit) string { return u.Name.V }))
		}
		if !effective.Applies(u, ring.Name.V) {
			return effective.Target{}, fmt.Errorf("unit %s does not apply to ring %s", name, ring.Name.V)
		}
		t.Units = append(t.Units, u)
	}
	t.ID = effective.TargetID(ring.Name.V, w.Units)
	t.Policy = c.Resolver.With(base, t.Units)
	return t, nil
}

func names[T any](docs []T, name func(T) string) []string {
	out := make([]string, len(docs))
	for i, d := range docs {
		out[i] = name(d)
	}
	return out
}

func unknown(kind, name string, known []string) error {
	err := fmt.Errorf("there is no %s %q", kind, name)
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	if len(known) > 0 && len(known) <= 20 {
		return fmt.Errorf("%w; there are %s", err, strings.Join(known, ", "))
	}
	return err
}

// Renderings renders one policy for one operating system, without reading the files back.
func (c *Compiled) Renderings(p *effective.Policy, os string) []*Rendering {
	org, gatewayURL, models := c.gateway()
	var out []*Rendering
	for i := range p.Harnesses {
		pin := &p.Harnesses[i]
		h := c.Harness(pin.Harness.V)
		v, ok := harness.ParseVersion(pin.Version.V)
		if h == nil || !ok {
			continue
		}
		r := &Rendering{Harness: h, Pin: pin, OS: os, Version: v}
		r.Files, r.Gaps = h.Render(harness.Target{Policy: p, OS: os, Version: v, Org: org, GatewayURL: gatewayURL, Models: models})
		out = append(out, r)
	}
	return out
}

// Egress is the answer for one host: the decision, the rule, and what each harness makes of it.
type Egress struct {
	Input string
	Host  host.Name
	// Port is what Input says of a port, and no part of the decision.
	Port     string
	Target   effective.Target
	OS       string
	Decision egress.Decision
	Matches  []egress.Match
	Lines    []HarnessLine
}

// HarnessLine says how far one harness holds the egress policy on the operating system asked about.
type HarnessLine struct {
	Harness, Version string
	// Status is enforced, overridable, default or none; Verified is false when the grade was read and not observed.
	Status   harness.Grade
	Verified bool
	How      string
	Caveats  []string
}

// egressLines says how far renderings of a policy hold the decision about a host.
func egressLines(p *effective.Policy, rs []*Rendering, d egress.Decision, matches []egress.Match) []HarnessLine {
	none := ""
	if !p.EgressRules() {
		none = "the policy restricts no host"
	}
	return lines(rs, harness.Egress, none, d.Allow, func(g harness.Gap) bool {
		return slices.ContainsFunc(matches, func(m egress.Match) bool { return g.Entry == m.Entry.Name || g.Entry == m.Entry.Pattern.String() })
	}, harness.Fetch)
}

// PathLines says how far each harness of a policy holds that a path is denied; there is nothing to hold for one that is not.
func (c *Compiled) PathLines(p *effective.Policy, os string, d PathDecision) []HarnessLine {
	if d.Allow {
		return nil
	}
	return lines(c.Renderings(p, os), harness.ProtectedPaths, "", false, func(g harness.Gap) bool {
		return slices.ContainsFunc(d.Matches, func(m policy.FilePath) bool { return g.Entry == m.Path.String() })
	})
}

// lists are the keys whose gaps name an entry that is held less than the others.
var lists = []string{"egress.allowedDomains", "egress.deniedDomains", "egress.presets", "sandbox.protectedPaths"}

// lines says how far each rendering holds a decision about a concept, with the gaps that are about it and about the concepts beside it. none says why there is
// nothing to hold, or is empty. What is denied stays so when an entry that does not match it is held less, since no harness gets a looser entry than the policy's:
// gaps of other entries do not count then.
func lines(rs []*Rendering, concept harness.Concept, none string, allow bool, matches func(harness.Gap) bool, beside ...harness.Concept) []HarnessLine {
	var out []HarnessLine
	for _, r := range rs {
		row := r.Harness.Capability(concept, r.OS, r.Version)
		l := HarnessLine{Harness: r.Harness.ID, Version: r.Version.String(), Status: row.Grade, Verified: row.Verified, How: row.How}
		if none != "" {
			l.Status, l.Verified, l.How = harness.None, true, none
			out = append(out, l)
			continue
		}
		counts := func(g harness.Gap) bool {
			return allow || g.Entry == "" || !slices.Contains(lists, g.Field) || matches(g)
		}
		for _, g := range r.Gaps {
			if g.Concept == concept && counts(g) {
				l.Status = min(l.Status, g.Grade)
			}
		}
		caveat := func(text string) {
			if !strings.HasPrefix(text, r.Harness.ID+":") {
				text = r.Harness.ID + ": " + text
			}
			if !slices.Contains(l.Caveats, text) {
				l.Caveats = append(l.Caveats, text)
			}
		}
		for _, g := range r.Gaps {
			about := g.Concept == concept || slices.Contains(beside, g.Concept) || g.Concept == harness.Sandbox && l.Status < harness.Enforced
			if about && counts(g) {
				caveat(g.Reason)
			}
		}
		if row.Limit != "" && l.Status > harness.None {
			caveat(row.Limit)
		}
		out = append(out, l)
	}
	return out
}

// Egress decides about a host or URL for a target whose renderings for the operating system are rs.
func (c *Compiled) Egress(t effective.Target, os, input string, rs []*Rendering) (Egress, error) {
	n, port, err := host.ParseNamePort(input)
	if err != nil {
		return Egress{}, err
	}
	e := Egress{Input: input, Host: n, Port: port, Target: t, OS: os, Decision: t.Policy.Hosts.Decide(n), Matches: t.Policy.Hosts.Matches(n)}
	e.Lines = egressLines(t.Policy, rs, e.Decision, e.Matches)
	return e, nil
}

// PathDecision is the answer for one path: denied when a protected path covers it.
type PathDecision struct {
	Allow bool
	Rule  string
	Pos   diag.Pos
	// Matches are the protected paths that cover it, the one that decides first; Roots the writable roots that do.
	Matches, Roots []policy.FilePath
}

// Places that stand for a user's home and workspace when a policy is asked about a path without a device.
const (
	someHome      = "/home/user"
	someWorkspace = "/home/user/workspace"
)

// Path decides whether sandboxed commands and file tools may see a path: absolute, below ~/, or relative to the workspace. The home of any user is ~. The error
// says why a path cannot be asked about.
func (c *Compiled) Path(p *effective.Policy, path string) (PathDecision, error) {
	covers, err := PathMatcher(path)
	if err != nil {
		return PathDecision{}, err
	}
	matching := func(l policy.FilePaths) []policy.FilePath {
		var out []policy.FilePath
		for _, f := range l.Items {
			if covers(f.Path) {
				out = append(out, f)
			}
		}
		return out
	}
	d := PathDecision{Allow: true, Rule: "sandbox.protectedPaths none", Matches: matching(p.Sandbox.ProtectedPaths), Roots: matching(p.Sandbox.WritableRoots)}
	if len(d.Matches) > 0 {
		f := d.Matches[0]
		d.Allow, d.Rule, d.Pos = false, "sandbox.protectedPaths "+f.Path.String(), f.Pos
	}
	return d, nil
}

// PathMatcher tells which paths of a policy cover one that is asked about, as Path decides it.
func PathMatcher(path string) (func(fspath.Path) bool, error) {
	q, problem := fspath.ParseQuery(path)
	if problem != nil {
		return nil, fmt.Errorf("path %q %s", path, problem.Reason)
	}
	full, home := q.String(), someHome
	if q.Kind() == fspath.Relative {
		full = someWorkspace + "/" + full
	} else if h, ok := fspath.HomeOf(q); ok {
		home = h
	}
	return func(p fspath.Path) bool { return fspath.Matches(p, full, someWorkspace, home) }, nil
}

// Recheck reads the files of a rendering back with the harness's strict reader.
func (c *Compiled) Recheck(p *effective.Policy, r *Rendering) []harness.Finding {
	org, gatewayURL, models := c.gateway()
	return r.Harness.Check(harness.Target{Policy: p, OS: r.OS, Version: r.Version, Org: org, GatewayURL: gatewayURL, Models: models}, r.Files)
}

// Coverage returns the coverage matrix of one policy: its harnesses at their pins, each capability lowered to what the policy's gaps leave.
func (c *Compiled) Coverage(p *effective.Policy) *coverage.Matrix {
	byOS := map[string][]*Rendering{}
	for _, os := range policy.OSes {
		byOS[os] = c.Renderings(p, os)
	}
	m := &coverage.Matrix{SchemaVersion: 1}
	for i, r := range byOS[policy.OSes[0]] {
		m.Add(r.Harness, r.Version, func(concept harness.Concept, os string) (harness.Grade, bool) {
			g, _ := byOS[os][i].Grade(concept)
			return g, true
		})
	}
	plan := c.plans[p]
	if plan == nil {
		plan = c.sandboxed(p)
		plan.openshell()
	}
	m.Sandboxes = plan.sandboxCoverage()
	return m
}
