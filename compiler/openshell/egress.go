package openshell

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// Egress is the egress policy of a target, resolved: deny wins, then allow, then the default. Patterns are those of a profile: a name, or *.name
// for every depth below it.
type Egress struct {
	// DeniedOnly compares the sources with Denied only and adds no rule (egress: none).
	DeniedOnly bool
	Allowed    []Host
	Denied     []Host
	// DefaultAllow says that a host on neither list is allowed.
	DefaultAllow bool
	// Permit lists hosts that sources may use although they are denied by default.
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

type hostGlob struct {
	Host
	g *glob
}

type egress struct {
	in                      *Egress
	fs                      *findings
	gaps                    *[]Gap
	allowed, denied, permit []hostGlob
	ports                   []uint16
}

func newEgress(in *Egress, fs *findings, gaps *[]Gap) *egress {
	if in == nil {
		return nil
	}
	eg := &egress{in: in, fs: fs, gaps: gaps, allowed: hostGlobs(in.Allowed), denied: hostGlobs(in.Denied), permit: hostGlobs(in.Permit)}
	if eg.ports = slices.Clone(in.Ports); len(eg.ports) == 0 {
		eg.ports = []uint16{80, 443}
	}
	slices.Sort(eg.ports)
	eg.ports = slices.Compact(eg.ports)
	for _, p := range eg.permit {
		if d := eg.coveredBy(eg.denied, p.g); d != nil {
			f := fs.compose(codePermit, p.Pos, p.Path, "remove it here, or remove the entry from deniedDomains", "permit lists %q, which %s on deniedDomains denies", clip(p.Text), d.Text)
			f.Diagnostic = f.WithRelated(d.Pos, "denied here")
		}
	}
	return eg
}

// hostGlobs translates a profile's patterns: its *.x is every depth, which OpenShell writes **.x.
func hostGlobs(hs []Host) []hostGlob {
	out := make([]hostGlob, 0, len(hs))
	for _, h := range hs {
		if g, err := hostPattern(openshellHost(h.Text)); err == nil {
			out = append(out, hostGlob{h, g})
		}
	}
	return out
}

func openshellHost(profile string) string {
	if rest, ok := strings.CutPrefix(profile, "*."); ok {
		return "**." + lower(rest)
	}
	return lower(profile)
}

func (eg *egress) coveredBy(list []hostGlob, g *glob) *hostGlob {
	for i := range list {
		if covers(list[i].g, g, hostShape) {
			return &list[i]
		}
	}
	return nil
}

func (eg *egress) overlapping(list []hostGlob, g *glob) *hostGlob {
	for i := range list {
		if overlap(list[i].g, g, hostShape) {
			return &list[i]
		}
	}
	return nil
}

// writesRule reports whether a rule of its own comes out.
func (eg *egress) writesRule() bool { return !eg.in.DeniedOnly && len(eg.allowed) > 0 }

// filter holds the endpoints of a rule against the egress policy: what it denies is removed from a built-in rule, with a gap, and an error in any
// other.
func (eg *egress) filter(r *Rule, builtin bool) {
	r.Endpoints = slices.DeleteFunc(r.Endpoints, func(e Endpoint) bool {
		pattern := strings.TrimRight(e.Host, ".")
		if pattern == "" {
			pattern = "**" // allowed_ips alone: any host
		}
		g, err := hostPattern(pattern)
		if err != nil {
			return false // Check reports the pattern
		}
		d := eg.overlapping(eg.denied, g)
		if d == nil && (eg.in.DeniedOnly || eg.in.DefaultAllow || eg.coveredBy(eg.allowed, g) != nil || eg.coveredBy(eg.permit, g) != nil) {
			return false
		}
		why, hint := "by default", "allow it in the profile, or list it under permit"
		var related diag.Pos
		if d != nil {
			why, hint, related = "with "+d.Text+" on deniedDomains", "remove it here, or remove the entry from deniedDomains", d.Pos
		}
		if builtin {
			eg.gap(GapRemoved, "none", r.Slug, e.Host, codeRemoved, related, hint, "%s of %s is denied %s and was left out", e.selector(), r.Origin, why)
			return true
		}
		f := eg.fs.compose(codeDenied, e.At("host"), e.Place.Path, hint, "rule %q of %s allows %s, which the egress policy denies %s", clip(r.Slug), r.Origin, e.selector(), why)
		f.Diagnostic = f.WithRelated(related, "denied here")
		return false
	})
}

func (eg *egress) gap(name, grade, slug, host string, code *diag.Code, pos diag.Pos, hint, format string, args ...any) {
	var fs findings
	f := fs.compose(code, pos, "", hint, format, args...)
	*eg.gaps = append(*eg.gaps, Gap{name, slug, host, grade, *f})
}

// addRule writes the allowed hosts as a rule for the agent and the workspace's executables.
func (eg *egress) addRule(out *Policy, forBinaries []string) {
	if eg.in.DeniedOnly {
		return
	}
	if eg.in.DefaultAllow {
		eg.gap(GapDefaultAllow, "none", "", "", codeGap, diag.Pos(0), "list the hosts under allowedDomains",
			"the egress policy allows every host it does not deny, a sandbox reaches listed hosts only")
	}
	r := Rule{Slug: EgressSlug, Name: "halo-egress", Origin: "the profile's egress policy", Binaries: binaries(forBinaries...)}
	endpoint := func(h hostGlob) Endpoint {
		e := Endpoint{Place: Place{Pos: h.Pos, Path: h.Path}, Host: openshellHost(h.Text)}
		if len(eg.ports) == 1 {
			e.Port = eg.ports[0]
		} else {
			e.Ports = slices.Clone(eg.ports)
		}
		return e
	}
	written := map[string]bool{}
	var wildcards []hostGlob
	for _, a := range eg.allowed {
		host := openshellHost(a.Text)
		if written[host] || eg.coveredBy(eg.denied, a.g) != nil {
			continue
		}
		written[host] = true
		if host == "localhost" {
			eg.gap(GapLoopback, "none", EgressSlug, host, codeGap, a.Pos, "name "+localMachine+" in the sandbox's own policy", "localhost is allowed by the egress policy and cannot be reached from a sandbox")
			continue
		}
		if !isLiteral(a.g) {
			wildcards = append(wildcards, a)
		}
		r.Endpoints = append(r.Endpoints, endpoint(a))
	}
	for _, d := range eg.denied {
		host := openshellHost(d.Text)
		if written[host] || eg.overlapping(wildcards, d.g) == nil {
			continue
		}
		written[host] = true
		e := endpoint(d)
		e.Protocol, e.Enforcement, e.Access = "rest", "enforce", "read-only"
		e.DenyRules = []L7Rule{{Method: "*", Path: "**"}}
		r.Endpoints = append(r.Endpoints, e)
		eg.gap(GapDenyByRequest, "enforced", EgressSlug, host, codeGap, d.Pos, "list the allowed hosts by name instead of the wildcard",
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
func (eg *egress) inspectedGaps(out *Policy) {
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
			if err != nil || eg.overlapping(eg.allowed, g) == nil || !overlapAny(binaryGlobs(r), ourBinaries) {
				continue
			}
			eg.gap(GapInspected, "none", r.Slug, e.Host, codeGap, e.Pos, "replace the rule "+r.Slug+", or leave it: the sandbox is stricter than the profile",
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
