// Package check finds what stops a build and what its author should know: contradictions in a policy, guardrails that no organization can switch off,
// references to nothing, and overlays that loosen.
package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Input is what the checks run on.
type Input struct {
	Repo     *policy.Repo
	Resolver *effective.Resolver
	Targets  []effective.Target
	// Overrides are the override keys that each harness accepts.
	Overrides map[string][]string
	// Now is the instant at which expiry is judged.
	Now time.Time
	// Partial says that documents were left out because a question does not need them, so that a reference to one is no finding.
	Partial bool
}

// Permit records an exception that permits a loosening in some target.
type Permit struct {
	Exception *policy.Exception
	Target    string
	Loosening effective.Loosening
}

type checker struct {
	Input
	diags *diag.List
	// presetNames is made when the first unknown preset is found.
	presetNames []string
	used        map[*policy.Exception]bool
	permits     []Permit
	// count counts findings, to tell whether a check had any.
	count int
}

// Repo checks everything before rendering and returns the loosenings that exceptions permit.
func Repo(in Input, diags *diag.List) []Permit {
	c := &checker{Input: in, diags: diags, used: map[*policy.Exception]bool{}}
	c.gateway()
	for _, p := range in.Repo.Presets {
		hosts := policy.Hosts{Items: p.Hosts}
		c.repeated(hosts, "hosts")
		c.shared(hosts, "hosts")
	}
	for _, p := range in.Repo.Profiles {
		c.profile(p)
	}
	c.rings()
	c.units()
	if !in.Partial {
		c.combinations()
		c.tests()
	}
	c.targets()
	if !in.Partial {
		c.exceptions()
	}
	return c.permits
}

// add reports a finding; the document is the one that pos lies in.
func (c *checker) add(d diag.Diagnostic) {
	c.Repo.Locate(&d)
	c.count++
	c.diags.Add(d)
}

// fail reports a finding that makes a policy unfit for rendering.
func (c *checker) fail(p *effective.Policy, d diag.Diagnostic) {
	p.Bad = true
	c.add(d)
}

func (c *checker) profile(p *policy.Profile) {
	eff := c.Resolver.Profile(p.Name.V)
	if eff == nil {
		c.extends(p)
	}
	before := c.diags.Errors()
	if p.Base != nil {
		c.own(&p.Base.Body, "")
	}
	c.own(&p.Body, "")
	if eff == nil {
		return
	}
	eff.Bad = eff.Bad || c.diags.Errors() > before
	if eff.Parent != nil {
		c.emptyUnions(&p.Body, "")
		parent := "its parent " + p.Extends.V
		if p.Base != nil {
			c.effective(eff.Parent, "")
			parent = "what halos.yaml makes of it in simple mode"
		}
		for _, l := range effective.Loosenings(eff.Parent, eff) {
			c.widens(p, eff, parent, l)
		}
	}
	c.effective(eff, "")
}

func (c *checker) extends(p *policy.Profile) {
	chain := []string{p.Name.V}
	seen := map[string]bool{p.Name.V: true}
	for at := p; ; {
		next := at.Extends.V
		if next == "" {
			if len(chain) == effective.MaxDepth+2 {
				c.add(diag.New(codeExtends, p.Extends.Pos, "extends", "the profile extends more than %d profiles, one over the other", effective.MaxDepth))
			}
			return
		}
		chain = append(chain, next)
		if seen[next] {
			if next == p.Name.V {
				c.add(diag.New(codeExtends, p.Extends.Pos, "extends", "the profile extends itself: %s", strings.Join(chain, " -> ")))
			}
			return
		}
		seen[next] = true
		if len(chain) > effective.MaxDepth+2 {
			return // the profile where the chain became too long is reported
		}
		parent := c.Repo.Profile(next)
		if parent == nil {
			if at != p {
				return // the profile that names the missing parent is reported
			}
			d := diag.New(codeExtends, p.Extends.Pos, "extends", "there is no profile %q", next)
			d.Hint = c.nearest(next, c.profileNames())
			c.add(d)
			return
		}
		at = parent
	}
}

func (c *checker) profileNames() []string {
	out := make([]string, len(c.Repo.Profiles))
	for i, p := range c.Repo.Profiles {
		out[i] = p.Name.V
	}
	return out
}

func (c *checker) nearest(word string, names []string) string {
	if near := diag.Nearest(word, names); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// widens reports that a profile is wider than its parent, unless an exception for every ring that uses it says so.
func (c *checker) widens(p *policy.Profile, eff *effective.Policy, parent string, l effective.Loosening) {
	if l.Field == "egress.default" && eff.Own.Egress.Default.V == "" {
		return // the flip of an implied default is an error of its own
	}
	pos := l.Pos
	if !pos.IsValid() {
		pos = p.Name.Pos
	}
	rings, permitted := 0, 0
	for _, t := range c.Targets {
		if len(t.Units) > 0 || t.Ring.Profile.V != p.Name.V {
			continue
		}
		rings++
		if c.permitted(t, nil, l) {
			permitted++
		}
	}
	if rings > 0 && permitted == rings {
		return
	}
	d := diag.New(codeWidens, pos, c.indexed(pos, l), "the profile is wider than %s: %s (%s)", parent, l.Message, l.Witness)
	d.Document = p.ID()
	c.add(d.WithRelated(l.Base, "the parent's value"))
}

// emptyUnions reports [] on lists that only ever grow.
func (c *checker) emptyUnions(b *policy.Body, prefix string) {
	warn := func(pos diag.Pos, n int, field string) {
		if pos.IsValid() && n == 0 {
			c.add(diag.New(codeUnionEmpty, pos, prefix+field, "an empty list drops nothing that is inherited; remove the key"))
		}
	}
	warn(b.Egress.DeniedDomains.Pos, len(b.Egress.DeniedDomains.Items), "egress.deniedDomains")
	warn(b.Sandbox.ProtectedPaths.Pos, len(b.Sandbox.ProtectedPaths.Items), "sandbox.protectedPaths")
	warn(b.Permissions.Deny.Pos, len(b.Permissions.Deny.Items), "permissions.deny")
	warn(b.MCP.Denied.Pos, len(b.MCP.Denied.Items), "mcp.denied")
	warn(b.Hooks.Pos, len(b.Hooks.Items), "hooks.items")
}

func (c *checker) gateway() {
	g := c.Repo.Gateway
	if g == nil {
		d := diag.New(codeNoGateway, 0, "", "there is no Gateway document: model traffic is not routed and egress is not checked against its host")
		d.File = policy.RootFile
		c.add(d)
		return
	}
	names := make([]string, len(g.Upstreams))
	for i, u := range g.Upstreams {
		names[i] = u.Name.V
	}
	for _, m := range g.Models {
		for i, t := range m.Targets {
			if t.Upstream.IsSet() && !slices.Contains(names, t.Upstream.V) {
				path := "models." + m.Alias.V + ".upstream"
				if len(m.Targets) > 1 {
					path = "models." + m.Alias.V + ".targets[" + strconv.Itoa(i) + "].upstream"
				}
				d := diag.New(codeReference, t.Upstream.Pos, path, "there is no upstream %q", t.Upstream.V)
				d.Hint = c.nearest(t.Upstream.V, names)
				c.add(d)
			}
		}
	}
}

func (c *checker) rings() {
	if len(c.Repo.Rings) == 0 {
		if c.diags.Errors() == 0 {
			d := diag.New(codeNoRing, 0, "", "there is no Ring document, so nothing would be built")
			d.File = policy.RootFile
			c.add(d)
		}
		return
	}
	orders := map[int64]*policy.Ring{}
	users := map[string]source.Str{}
	var dflt *policy.Ring
	var percent int64
	for _, r := range c.Repo.Rings {
		if r.Order.IsSet() {
			if first, ok := orders[r.Order.V]; ok {
				c.add(diag.New(codeRing, r.Order.Pos, "order", "order %d is also that of ring %s", r.Order.V, first.Name.V).WithRelated(first.Order.Pos, "the other ring"))
			} else {
				orders[r.Order.V] = r
			}
		}
		m := &r.Membership
		if m.Default.V {
			if dflt != nil {
				c.add(diag.New(codeRing, m.Default.Pos, "membership.default", "ring %s is the default ring already", dflt.Name.V).WithRelated(dflt.Membership.Default.Pos, "the other ring"))
			} else {
				dflt = r
			}
			if m.Percent.IsSet() {
				c.add(diag.New(codeRing, m.Percent.Pos, "membership.percent", "the default ring takes everybody who is left and has no percentage"))
			}
		}
		if percent += m.Percent.V; percent > 100_00 && percent-m.Percent.V <= 100_00 {
			c.add(diag.New(codeRing, m.Percent.Pos, "membership.percent", "the percentages of the rings sum to more than 100"))
		}
		for i, u := range m.Users.Items {
			if first, ok := users[u.V]; ok {
				c.add(diag.New(codeRing, u.Pos, "membership.users["+strconv.Itoa(i)+"]", "user %s is listed in a ring already", u.V).WithRelated(first.Pos, "listed here"))
			} else {
				users[u.V] = u
			}
		}
		if r.Release.IsSet() && !isDigest(r.Release.V) {
			c.add(diag.New(codeRelease, r.Release.Pos, "release", "%q is not a release digest", r.Release.V).WithHint("sha256: and 64 hexadecimal digits"))
		}
		c.ringProfile(r)
	}
	if dflt == nil {
		r := c.Repo.Rings[0]
		c.add(diag.New(codeRing, r.Name.Pos, "membership.default", "no ring is the default ring; set membership.default: true on the ring that takes everybody else"))
	}
}

func isDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func (c *checker) ringProfile(r *policy.Ring) {
	if !r.Profile.IsSet() {
		return
	}
	p := c.Repo.Profile(r.Profile.V)
	if p == nil && slices.Contains(c.Repo.Left, r.Profile.V) {
		return
	}
	if p == nil {
		d := diag.New(codeRingProfile, r.Profile.Pos, "profile", "there is no profile %q", r.Profile.V)
		d.Hint = c.nearest(r.Profile.V, c.profileNames())
		c.add(d)
		return
	}
	eff := c.Resolver.Profile(r.Profile.V)
	if eff == nil {
		return
	}
	if len(eff.Harnesses) == 0 && !eff.Unfit() {
		c.fail(eff, diag.New(codeRingProfile, r.Profile.Pos, "profile", "profile %s enables no harness, so ring %s would get nothing", p.Name.V, r.Name.V).
			WithHint("add to the profile: harnesses: {claude-code: {version: 2.1.332}}"))
	}
	for _, pin := range eff.Harnesses {
		if !pin.Version.IsSet() && !eff.Unfit() {
			c.fail(eff, diag.New(codeRingProfile, pin.Harness.Pos, "harnesses."+pin.Harness.V+".version", "harness %s has no version, and ring %s needs an exact one", pin.Harness.V, r.Name.V))
		}
	}
	isDefault := r.Membership.Default.V
	if !eff.Permissions.DisableBypass.V {
		pos := cmp.Or(eff.Permissions.DisableBypass.Pos, p.Name.Pos)
		c.fail(eff, diag.New(codeDisableBypass, pos, "permissions.disableBypass", "a ring uses this profile, and it does not set permissions.disableBypass: true").
			WithRelated(r.Profile.Pos, "ring %s uses it", r.Name.V))
	}
	if !eff.Telemetry.Enabled.V {
		c.add(diag.New(codeTelemetry, cmp.Or(eff.Telemetry.Enabled.Pos, p.Name.Pos), "telemetry.enabled", "a ring uses this profile, and it does not enable telemetry"))
	}
	if eff.Permissions.SandboxRequired.V && len(eff.Hosts.Allowed()) == 0 {
		if open, _ := eff.Hosts.Default(); !open || !eff.Egress.Written() {
			c.fail(eff, diag.New(codeRequiredEgress, eff.Permissions.SandboxRequired.Pos, "permissions.sandboxRequired", "the sandbox is required and no host is allowed"))
		}
	}
	if !isDefault {
		return
	}
	if eff.Permissions.Mode.V == "auto" {
		c.add(diag.New(codeAuto, eff.Permissions.Mode.Pos, "permissions.mode", "permission mode auto reaches everybody through the default ring %s", r.Name.V))
	}
	if eff.Telemetry.LogPrompts.V {
		c.add(diag.New(codeLogPrompts, eff.Telemetry.LogPrompts.Pos, "telemetry.logPrompts", "prompts of everybody are logged through the default ring %s", r.Name.V))
	}
	if len(eff.Hooks.Items) > 0 && !eff.Hooks.ManagedOnly.V {
		c.fail(eff, diag.New(codeHooks, eff.Hooks.Pos, "hooks.managedOnly", "the default ring %s ships hooks and does not set hooks.managedOnly: true", r.Name.V))
	}
}

func (c *checker) units() {
	for _, pos := range c.Resolver.Oversized {
		c.add(diag.New(codeUnit, pos, "", "this makes a set of more than %d units that apply at once; put the common overlay into one unit", effective.MaxUnits))
	}
	for _, u := range c.Repo.Units {
		if u.Rings.IsSet() && len(u.Rings.Items) == 0 {
			c.add(diag.New(codeUnit, u.Rings.Pos, "rings", "the unit applies to no ring, so its overlay would never hold").WithHint("remove the key for every ring, or name the rings"))
		}
		for i, name := range u.Rings.Items {
			if c.Repo.Ring(name.V) == nil {
				d := diag.New(codeUnit, name.Pos, "rings["+strconv.Itoa(i)+"]", "there is no ring %q", name.V)
				d.Hint = c.nearest(name.V, ringNames(c.Repo))
				c.add(d)
			}
		}
		if u.Parent.IsSet() {
			c.parent(u)
		}
		c.own(&u.Overlay, "overlay.")
		c.looseEmpty(u)
	}
}

func ringNames(r *policy.Repo) []string {
	out := make([]string, len(r.Rings))
	for i, g := range r.Rings {
		out[i] = g.Name.V
	}
	return out
}

func unitNames(r *policy.Repo) []string {
	out := make([]string, len(r.Units))
	for i, u := range r.Units {
		out[i] = u.Name.V
	}
	return out
}

func sandboxNames(r *policy.Repo) []string {
	out := make([]string, len(r.Sandboxes))
	for i, s := range r.Sandboxes {
		out[i] = s.Name.V
	}
	return out
}

func (c *checker) parent(u *policy.Unit) {
	seen := []string{u.Name.V}
	for at := u; at.Parent.IsSet(); {
		next := c.Repo.Unit(at.Parent.V)
		if next == nil {
			if at == u {
				d := diag.New(codeUnit, u.Parent.Pos, "parent", "there is no unit %q", u.Parent.V)
				d.Hint = c.nearest(u.Parent.V, unitNames(c.Repo))
				c.add(d)
			}
			return
		}
		seen = append(seen, next.Name.V)
		if next == u {
			c.add(diag.New(codeUnit, u.Parent.Pos, "parent", "the unit is its own ancestor: %s", strings.Join(seen, " -> ")))
			return
		}
		if slices.Contains(seen[:len(seen)-1], next.Name.V) {
			return
		}
		at = next
	}
}

// looseEmpty refuses [] in an overlay on the lists that only grow: it reads as if it dropped what the ring denies.
func (c *checker) looseEmpty(u *policy.Unit) {
	b := &u.Overlay
	refuse := func(pos diag.Pos, n int, field string) {
		if pos.IsValid() && n == 0 {
			c.add(diag.New(codeLoosens, pos, "overlay."+field, "the empty list loosens what the unit's rings get: an overlay cannot drop what is denied or protected").WithHint("remove the key"))
		}
	}
	refuse(b.Egress.DeniedDomains.Pos, len(b.Egress.DeniedDomains.Items), "egress.deniedDomains")
	refuse(b.Sandbox.ProtectedPaths.Pos, len(b.Sandbox.ProtectedPaths.Items), "sandbox.protectedPaths")
	refuse(b.Permissions.Deny.Pos, len(b.Permissions.Deny.Items), "permissions.deny")
	refuse(b.MCP.Denied.Pos, len(b.MCP.Denied.Items), "mcp.denied")
}

func (c *checker) combinations() {
	if c.Repo.Root == nil {
		return
	}
	for i, set := range c.Repo.Root.Combinations {
		for j, name := range set.Items {
			if c.Repo.Unit(name.V) == nil {
				d := diag.New(codeReference, name.Pos, "combinations["+strconv.Itoa(i)+"]["+strconv.Itoa(j)+"]", "there is no unit %q", name.V)
				d.Hint = c.nearest(name.V, unitNames(c.Repo))
				c.add(d)
			}
		}
	}
}

func (c *checker) tests() {
	for _, doc := range c.Repo.Tests {
		for i, t := range doc.Tests {
			at := "tests[" + strconv.Itoa(i) + "]."
			if t.Ring.IsSet() && c.Repo.Ring(t.Ring.V) == nil {
				d := diag.New(codeReference, t.Ring.Pos, at+"ring", "there is no ring %q", t.Ring.V)
				d.Hint = c.nearest(t.Ring.V, ringNames(c.Repo))
				c.add(d)
			}
			if t.Sandbox.IsSet() && c.Repo.Sandbox(t.Sandbox.V) == nil {
				d := diag.New(codeReference, t.Sandbox.Pos, at+"sandbox", "there is no Sandbox document %q", t.Sandbox.V)
				d.Hint = c.nearest(t.Sandbox.V, sandboxNames(c.Repo))
				c.add(d)
			}
			for j, u := range t.Units.Items {
				if c.Repo.Unit(u.V) == nil {
					d := diag.New(codeReference, u.Pos, at+"units["+strconv.Itoa(j)+"]", "there is no unit %q", u.V)
					d.Hint = c.nearest(u.V, unitNames(c.Repo))
					c.add(d)
				}
			}
		}
	}
}

// targets checks what overlays make of each ring: never looser, and free of contradictions. A policy that several units share is checked once; when it has
// findings, each unit is checked by itself so that each gets findings at its own lines.
func (c *checker) targets() {
	found := map[*effective.Policy]bool{}
	for i := range c.Targets {
		t := &c.Targets[i]
		if len(t.Units) == 0 {
			continue
		}
		if t.Shared {
			if !found[t.Policy] {
				continue
			}
			t.Policy = c.Resolver.With(c.Resolver.Profile(t.Ring.Profile.V), t.Units)
		}
		before := c.count
		c.overlaid(*t)
		found[t.Policy] = c.count > before
	}
}

func (c *checker) overlaid(t effective.Target) {
	base := c.Resolver.Profile(t.Ring.Profile.V)
	loosens := func(l effective.Loosening, doc *policy.Header, what, before, hint string) {
		pos := cmp.Or(l.Pos, doc.Name.Pos)
		d := diag.New(codeLoosens, pos, c.indexed(pos, l), "the overlay loosens what %s, which is not allowed: %s (%s)", what, l.Message, l.Witness)
		d.Hint = hint
		t.Policy.Bad = true
		c.add(d.WithRelated(l.Base, "%s", before))
	}
	for _, l := range effective.Loosenings(base, t.Policy) {
		if c.permitted(t, t.Units, l) {
			c.count++
			continue
		}
		loosens(l, &t.Units[len(t.Units)-1].Header, "its rings get", "what ring "+t.Ring.Name.V+" has",
			"tighten the overlay, move the change to a profile, or permit it with an Exception document")
	}
	for p := t.Policy; p != base; p = p.Parent {
		c.effective(p, "overlay.")
		if len(t.Units) == 1 && len(p.Units) > 1 {
			// A unit with a parent: what its parent took, it cannot give back.
			parent := p.Units[len(p.Units)-2]
			for _, l := range effective.Loosenings(p.Parent, c.Resolver.Written(p)) {
				loosens(l, p.Doc, "its parent "+parent+" leaves", "what unit "+parent+" has", "tighten the overlay, or take less in unit "+parent)
			}
		}
	}
}

// indexed returns the key path of a loosening in the document that pos lies in, with the index of the list entry and the overlay's prefix.
func (c *checker) indexed(pos diag.Pos, l effective.Loosening) string {
	prefix := ""
	if h := c.Repo.DocumentAt(pos); h != nil && h.Kind == "Unit" {
		prefix = "overlay."
	}
	if i := c.index(pos, l.Field); i >= 0 {
		return prefix + l.Field + "[" + strconv.Itoa(i) + "]"
	}
	return prefix + l.Field
}

// index returns the index of the list entry written at pos, or -1.
func (c *checker) index(pos diag.Pos, field string) int {
	h := c.Repo.DocumentAt(pos)
	if h == nil {
		return -1
	}
	var b *policy.Body
	switch h.Kind {
	case "Profile":
		if p := c.Repo.Profile(h.Name.V); p != nil {
			b = &p.Body
		}
	case "Unit":
		if u := c.Repo.Unit(h.Name.V); u != nil {
			b = &u.Overlay
		}
	}
	if b == nil {
		return -1
	}
	host := func(x policy.Host) bool { return x.Pos == pos }
	path := func(x policy.FilePath) bool { return x.Pos == pos }
	str := func(x source.Str) bool { return x.Pos == pos }
	switch field {
	case "egress.allowedDomains":
		return slices.IndexFunc(b.Egress.AllowedDomains.Items, host)
	case "egress.deniedDomains":
		return slices.IndexFunc(b.Egress.DeniedDomains.Items, host)
	case "egress.presets":
		return slices.IndexFunc(b.Egress.Presets.Items, str)
	case "sandbox.writableRoots":
		return slices.IndexFunc(b.Sandbox.WritableRoots.Items, path)
	case "sandbox.protectedPaths":
		return slices.IndexFunc(b.Sandbox.ProtectedPaths.Items, path)
	case "permissions.allow":
		return slices.IndexFunc(b.Permissions.Allow.Items, str)
	case "permissions.ask":
		return slices.IndexFunc(b.Permissions.Ask.Items, str)
	case "models.allowed":
		return slices.IndexFunc(b.Models.Allowed.Items, str)
	}
	return -1
}
