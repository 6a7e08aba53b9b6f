package openshell

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/host"
)

// Egress is what the egress policy of a target means for its sandboxes.
type Egress struct {
	// Policy is the target's resolved policy; it decides every host. A *.name of it stands for every depth, which OpenShell writes **.name.
	Policy *egress.Policy
	// DeniedOnly compares the sources with the denied list only and adds no rule (egress: none).
	DeniedOnly bool
	// Permit lists hosts and profile patterns that sources may use although they are denied by default.
	Permit []Host
	// Ports are those of the added rule; none means 80 and 443.
	Ports []uint16
}

// Gap is a place where policy.yaml differs from the egress policy. OpenShell is then stricter, or holds it by other means.
type Gap struct {
	// Name is one of the Gap constants.
	Name string
	// Slug and Host say where. Slug is empty for a whole policy.
	Slug, Host string
	// Grade is "enforced" when the egress policy holds in another way, "none" when something it allows is not reachable.
	Grade   string
	Finding Finding
}

// Names of gaps.
const (
	// GapRemoved: a host of a built-in source is denied and was left out.
	GapRemoved = "openshell-builtin-removed"
	// GapDefaultAllow: OpenShell has no form for "every host but these".
	GapDefaultAllow = "openshell-default-allow"
	// GapDenyByRequest: a denied host inside an allowed wildcard is held by refusing every request to it; a connection is still opened.
	GapDenyByRequest = "openshell-deny-by-request"
	// GapInspected: another rule limits what may be asked of an allowed host.
	GapInspected = "openshell-inspected"
	// GapLoopback: localhost is allowed and no sandbox can reach it.
	GapLoopback = "openshell-loopback"
)

const originEgress = "the profile's egress policy"

// hostGlob is a profile's pattern in OpenShell's form.
type hostGlob struct {
	Host
	openshell string
	g         *glob
	pattern   host.Pattern // of an entry of the egress policy
}

type egressFilter struct {
	in                      *Egress
	fs                      *findings
	gaps                    *[]Gap
	allowed, denied, permit []hostGlob
	open                    bool
	ports                   []uint16
}

func newEgressFilter(in *Egress, fs *findings, gaps *[]Gap) *egressFilter {
	if in == nil {
		return nil
	}
	eg := &egressFilter{in: in, fs: fs, gaps: gaps, allowed: entryGlobs(in.Policy.Allowed()), denied: entryGlobs(in.Policy.Denied())}
	eg.open, _ = in.Policy.Default()
	if eg.ports = slices.Clone(in.Ports); len(eg.ports) == 0 {
		eg.ports = []uint16{80, 443}
	}
	slices.Sort(eg.ports)
	eg.ports = slices.Compact(eg.ports)
	for _, h := range in.Permit {
		if _, problem := host.ParsePattern(h.Text); problem != nil {
			fs.compose(codePermit, h.Pos, h.Path, "write a host name, or *. and a name", "permit lists %q, which %s", clip(h.Text), problem.Reason)
			continue
		}
		p := hostGlob{Host: h, openshell: openshellHost(h.Text)}
		var err error
		if p.g, err = hostPattern(p.openshell); err != nil {
			fs.compose(codePermit, h.Pos, h.Path, "write a host name, or *. and a name", "permit lists %q, which OpenShell cannot match", clip(h.Text))
			continue
		}
		eg.permit = append(eg.permit, p)
		if d := coveredBy(eg.denied, p.g); d != nil {
			f := fs.compose(codePermit, p.Pos, p.Path, "remove it here, or remove the entry from deniedDomains", "permit lists %q, which %s on deniedDomains denies", clip(p.Text), d.Text)
			f.Diagnostic = f.WithRelated(d.Pos, "denied here")
		}
	}
	return eg
}

func entryGlobs(entries []egress.Entry) []hostGlob {
	out := make([]hostGlob, 0, len(entries))
	for _, e := range entries {
		h := hostGlob{Host: Host{Text: e.Pattern.String(), Pos: e.Pos, Path: e.Field}, pattern: e.Pattern}
		h.openshell = openshellHost(h.Text)
		if g, err := hostPattern(h.openshell); err == nil {
			h.g = g
			out = append(out, h)
		}
	}
	return out
}

// openshellHost translates a profile's pattern.
func openshellHost(profile string) string {
	if rest, ok := strings.CutPrefix(profile, "*."); ok {
		return "**." + lower(rest)
	}
	return lower(profile)
}

func coveredBy(list []hostGlob, g *glob) *hostGlob {
	for i := range list {
		if covers(list[i].g, g, hostShape) {
			return &list[i]
		}
	}
	return nil
}

func overlapping(list []hostGlob, g *glob) *hostGlob {
	for i := range list {
		if overlap(list[i].g, g, hostShape) {
			return &list[i]
		}
	}
	return nil
}

// verdict says whether a source may name a host, and which entry of the denied list is against it.
func (eg *egressFilter) verdict(text string, g *glob) (denied *hostGlob, ok bool) {
	if name, err := host.ParseName(text); err == nil && isLiteral(g) && string(name) == g.literal {
		if i, hit := eg.in.Policy.DenySet().Match(name); hit {
			return &eg.denied[i], false
		}
		return nil, eg.in.DeniedOnly || eg.in.Policy.Decide(name).Allow || coveredBy(eg.permit, g) != nil
	}
	if d := overlapping(eg.denied, g); d != nil {
		return d, false
	}
	return nil, eg.in.DeniedOnly || eg.open || coveredBy(eg.allowed, g) != nil || coveredBy(eg.permit, g) != nil
}

// writesRule reports whether a rule of its own comes out.
func (eg *egressFilter) writesRule() bool { return !eg.in.DeniedOnly && len(eg.allowed) > 0 }

// filter holds the endpoints of a rule against the egress policy: what it denies is removed from a built-in rule, with a gap, and an error in any
// other.
func (eg *egressFilter) filter(r *Rule, builtin bool) {
	r.Endpoints = slices.DeleteFunc(r.Endpoints, func(e Endpoint) bool {
		pattern := strings.TrimRight(e.Host, ".")
		if pattern == "" {
			pattern = "**" // allowed_ips alone: any host
		}
		g, err := hostPattern(pattern)
		if err != nil {
			return false // Check reports the pattern
		}
		d, ok := eg.verdict(pattern, g)
		if ok {
			return false
		}
		why, hint := "by default", "allow it in the profile, or list it under permit"
		var related diag.Pos
		if d != nil {
			why, hint, related = "with "+d.Text+" on deniedDomains", "remove it here, or remove the entry from deniedDomains", d.Pos
		}
		if builtin {
			eg.gap(GapRemoved, "none", r.Slug, e.Host, r.Origin, codeRemoved, related, hint, "%s of %s is denied %s and was left out", e.selector(), r.Origin, why)
			return true
		}
		f := eg.fs.compose(codeDenied, e.At("host"), e.Place.Path, hint, "rule %q of %s allows %s, which the egress policy denies %s", clip(r.Slug), r.Origin, e.selector(), why)
		f.Diagnostic = f.WithRelated(related, "denied here")
		f.Origin = r.Origin
		return false
	})
}

func (eg *egressFilter) gap(name, grade, slug, host, origin string, code *diag.Code, pos diag.Pos, hint, format string, args ...any) {
	var fs findings
	f := fs.compose(code, pos, "", hint, format, args...)
	f.Origin = origin
	*eg.gaps = append(*eg.gaps, Gap{name, slug, host, grade, *f})
}

// addRule writes the allowed hosts as a rule for the agent and the workspace's executables.
func (eg *egressFilter) addRule(out *Policy, forBinaries []string) {
	if eg.in.DeniedOnly {
		return
	}
	if eg.open {
		eg.gap(GapDefaultAllow, "none", "", "", "", codeGap, eg.in.Policy.Rules().DefaultPos, "list the hosts under allowedDomains",
			"the egress policy allows every host it does not deny, a sandbox reaches listed hosts only")
	}
	r := Rule{Slug: EgressSlug, Name: "halo-egress", Origin: originEgress, Binaries: binaries(forBinaries...)}
	endpoint := func(h hostGlob) Endpoint {
		e := Endpoint{Place: Place{Pos: h.Pos, Path: h.Path}, Host: h.openshell}
		if len(eg.ports) == 1 {
			e.Port = eg.ports[0]
		} else {
			e.Ports = slices.Clone(eg.ports)
		}
		return e
	}
	written := map[string]bool{}
	var wildcards []host.Pattern
	for _, a := range eg.allowed {
		name := a.openshell
		if written[name] {
			continue
		}
		if _, denied := eg.in.Policy.DenySet().Covers(a.pattern); denied {
			continue
		}
		written[name] = true
		if name == "localhost" {
			eg.gap(GapLoopback, "none", EgressSlug, name, originEgress, codeGap, a.Pos, "name "+localMachine+" in the sandbox's own policy", "localhost is allowed by the egress policy and cannot be reached from a sandbox")
			continue
		}
		if a.pattern.Wildcard() {
			wildcards = append(wildcards, a.pattern)
		}
		r.Endpoints = append(r.Endpoints, endpoint(a))
	}
	// An entry that covers an allowed wildcard took it out above, so what is left of the denied list lies inside or outside of each.
	inside := host.NewSet(wildcards)
	for _, d := range eg.denied {
		name := d.openshell
		if _, ok := inside.Covers(d.pattern); !ok || written[name] {
			continue
		}
		written[name] = true
		e := endpoint(d)
		e.Protocol, e.Enforcement, e.Access = "rest", "enforce", "read-only"
		e.DenyRules = []L7Rule{{Method: "*", Path: "**"}}
		r.Endpoints = append(r.Endpoints, e)
		eg.gap(GapDenyByRequest, "enforced", EgressSlug, name, originEgress, codeGap, d.Pos, "list the allowed hosts by name instead of the wildcard",
			"%s is denied inside an allowed wildcard: OpenShell opens the connection and refuses every request on it", d.Text)
	}
	if len(r.Endpoints) == 0 {
		return
	}
	slices.SortStableFunc(r.Endpoints, func(a, b Endpoint) int { return strings.Compare(a.Host, b.Host) })
	r.Place = r.Endpoints[0].Place
	out.Rules = append(out.Rules, r)
}

// inspectedGaps reports where another rule limits requests to a host that the egress policy allows as a whole. OpenShell then applies the
// limit to every process both rules are for: a plain endpoint does not switch inspection off.
func (eg *egressFilter) inspectedGaps(out *Policy) {
	ours := out.Rule(EgressSlug)
	if ours == nil {
		return
	}
	ourBinaries := binaryGlobs(ours)
	for i := range out.Rules {
		r := &out.Rules[i]
		if r.Slug == EgressSlug {
			continue
		}
		for k := range r.Endpoints {
			e := &r.Endpoints[k]
			if !e.inspected() || !e.enforced() || e.Access == "full" && len(e.DenyRules) == 0 ||
				!slices.ContainsFunc(e.EffectivePorts(), func(p uint16) bool { return slices.Contains(eg.ports, p) }) {
				continue
			}
			g, err := hostPattern(e.Host)
			if err != nil || overlapping(eg.allowed, g) == nil || !overlapAny(binaryGlobs(r), ourBinaries) {
				continue
			}
			eg.gap(GapInspected, "none", r.Slug, e.Host, r.Origin, codeGap, e.Pos, "replace the rule "+r.Slug+", or leave it: the sandbox is stricter than the profile",
				"the egress policy allows %s as a whole, rule %s limits what its binaries may ask there", e.Host, r.Slug)
		}
	}
}

func binaryGlobs(r *Rule) []*glob {
	var out []*glob
	for _, b := range r.Binaries {
		if g, err := binaryPattern(b.Path); err == nil {
			out = append(out, g)
		}
	}
	return out
}

func overlapAny(a, b []*glob) bool {
	return slices.ContainsFunc(a, func(x *glob) bool {
		return slices.ContainsFunc(b, func(y *glob) bool { return overlap(x, y, binaryShape) })
	})
}
