// Package effective computes what a device really gets: a ring's profile with everything it extends, and the overlays of units on top. Every value keeps
// the place it came from.
package effective

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/egress"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

// Policy is an effective policy. It shares parts with the policies it was made from and is never changed after it is made.
type Policy struct {
	// Profile is the name of the leaf profile.
	Profile string
	// Units are the names of the units whose overlays were applied, in the order of application.
	Units []string
	// Body has the merged values; every leaf has the place it was written at.
	policy.Body
	// Hosts answers for egress: presets expanded, the default decided.
	Hosts *egress.Policy
	// Box is the Sandbox document that sandbox.policy names, nil when it names none.
	Box *policy.Sandbox
	// Parent is the policy before the last layer, nil for a profile that extends nothing. Own is what the last layer wrote, in Doc.
	Parent *Policy
	Own    *policy.Body
	Doc    *policy.Header
	// Depth is the number of profiles that this one extends, one over the other.
	Depth int
	// Bad is set when a document that contributed has errors: the policy is not rendered.
	Bad bool
}

// Sandboxed reports whether commands run in a sandbox: a mode other than off, or no mode and something only a sandbox can hold.
func (p *Policy) Sandboxed() bool {
	if p.Sandbox.Mode.IsSet() {
		return p.Sandbox.Mode.V != policy.ModeOff
	}
	return p.EgressRules() || len(p.Sandbox.ProtectedPaths.Items) > 0 || len(p.Sandbox.WritableRoots.Items) > 0 || p.Permissions.SandboxRequired.V
}

// Mode is the sandbox mode that is rendered: the one written, or workspace-write when a sandbox is needed, or off.
func (p *Policy) Mode() string {
	switch {
	case p.Sandbox.Mode.IsSet():
		return p.Sandbox.Mode.V
	case p.Sandboxed():
		return policy.ModeWorkspaceWrite
	}
	return policy.ModeOff
}

// Unfit reports whether the policy or one that it was made from has errors.
func (p *Policy) Unfit() bool {
	for ; p != nil; p = p.Parent {
		if p.Bad {
			return true
		}
	}
	return false
}

// EgressRules reports whether egress is restricted at all: something allowed or denied, or an explicit default of deny.
func (p *Policy) EgressRules() bool {
	e := &p.Egress
	return len(e.AllowedDomains.Items) > 0 || len(e.Presets.Items) > 0 || len(e.DeniedDomains.Items) > 0 || e.Default.V == "deny"
}

// Pin returns the pin of a harness, or nil when the policy does not enable it.
func (p *Policy) Pin(harness string) *policy.Pin {
	i := slices.IndexFunc(p.Harnesses, func(x policy.Pin) bool { return x.Harness.V == harness })
	if i < 0 {
		return nil
	}
	return &p.Harnesses[i]
}

// MaxDepth is how many profiles a profile may extend, one over the other.
const MaxDepth = 256

// Resolver makes effective policies from a repo. It is not safe for concurrent use until Profiles was called.
type Resolver struct {
	repo     *policy.Repo
	presets  map[string][]host.Pattern
	profiles map[string]*Policy
	open     Policy
	overlaid map[overlayKey]*Policy
	scratch  writer
	// Oversized are the places that make sets of more than MaxUnits units, which are not compiled. Targets fills it.
	Oversized []diag.Pos
}

type overlayKey struct {
	base    *Policy
	overlay [sha256.Size]byte
}

// NewResolver returns a resolver for a repo.
func NewResolver(repo *policy.Repo) *Resolver {
	r := &Resolver{repo: repo, presets: map[string][]host.Pattern{}, profiles: make(map[string]*Policy, len(repo.Profiles))}
	for _, b := range policy.Builtin {
		r.presets[b.Name], _ = policy.BuiltinPatterns(b.Name)
	}
	for _, p := range repo.Presets {
		if _, builtin := r.presets[p.Name.V]; builtin {
			continue
		}
		ps := make([]host.Pattern, len(p.Hosts))
		for i, h := range p.Hosts {
			ps[i] = h.Pattern
		}
		r.presets[p.Name.V] = ps
	}
	r.open.Hosts = egress.Compile(egress.Rules{})
	for _, p := range repo.Profiles {
		r.Profile(p.Name.V)
	}
	return r
}

// Preset returns the hosts of a built-in preset or of one of the repo.
func (r *Resolver) Preset(name string) ([]host.Pattern, bool) {
	ps, ok := r.presets[name]
	return ps, ok
}

// PresetNames lists the presets that can be named, sorted.
func (r *Resolver) PresetNames() []string { return slices.Sorted(maps.Keys(r.presets)) }

// Profile returns the effective policy of a profile, or nil when there is none of that name, an ancestor is missing or the chain is a cycle.
func (r *Resolver) Profile(name string) *Policy {
	var chain []*policy.Profile
	var base *Policy
	for name != "" {
		if done, ok := r.profiles[name]; ok {
			if done == nil {
				r.fail(chain)
				return nil
			}
			base = done
			break
		}
		p := r.repo.Profile(name)
		if p == nil {
			r.fail(chain)
			return nil
		}
		chain = append(chain, p)
		// Marking the profile before its ancestors are done makes a cycle end here.
		r.profiles[name] = nil
		name = p.Extends.V
	}
	for i, p := range slices.Backward(chain) {
		if base != nil && base.Depth >= MaxDepth {
			// Lists grow along a chain, so the work and memory of one without a bound would grow with its square.
			r.fail(chain[:i+1])
			return nil
		}
		if p.Base != nil {
			base = r.layer(base, p.Base)
		}
		base = r.layer(base, p)
		r.profiles[p.Name.V] = base
	}
	return base
}

func (r *Resolver) fail(chain []*policy.Profile) {
	for _, p := range chain {
		r.profiles[p.Name.V] = nil
	}
}

func (r *Resolver) layer(parent *Policy, p *policy.Profile) *Policy {
	next := &Policy{Profile: p.Name.V, Parent: parent, Own: &p.Body, Doc: &p.Header, Bad: p.Bad}
	base := &r.open
	if parent != nil {
		base = parent
		next.Depth = parent.Depth + 1
		next.Bad = next.Bad || parent.Bad
	}
	r.merge(next, base, &p.Body)
	return next
}

// Overlay returns base with the overlay of a unit, after those of the unit's ancestors.
func (r *Resolver) Overlay(base *Policy, u *policy.Unit) *Policy {
	for _, step := range r.Ancestry(u) {
		if slices.Contains(base.Units, step.Name.V) {
			continue
		}
		next := &Policy{Profile: base.Profile, Units: append(slices.Clip(base.Units), step.Name.V), Parent: base, Own: &step.Overlay, Doc: &step.Header, Bad: base.Bad || step.Bad}
		r.merge(next, base, &step.Overlay)
		if len(base.Units) > 0 {
			r.intersect(next, base)
		}
		base = next
	}
	return base
}

// Written returns what the overlay that made p says by itself of the policy below it, where p has taken back what units before it took.
func (r *Resolver) Written(p *Policy) *Policy {
	out := &Policy{Profile: p.Profile, Units: p.Units, Parent: p.Parent, Own: p.Own, Doc: p.Doc, Bad: p.Bad}
	r.merge(out, p.Parent, p.Own)
	return out
}

// shared returns base with the overlay of a unit without ancestors, made once for all units of equal overlay; fresh is false when an earlier unit's policy is
// answered, whose places are those of that unit.
func (r *Resolver) shared(base *Policy, u *policy.Unit) (p *Policy, fresh bool) {
	if u.Parent.IsSet() || u.Bad {
		return r.Overlay(base, u), true
	}
	r.scratch.buf = r.scratch.buf[:0]
	key := overlayKey{base, overlayDigest(&u.Overlay, &r.scratch)}
	if p, ok := r.overlaid[key]; ok {
		return p, false
	}
	if r.overlaid == nil {
		r.overlaid = map[overlayKey]*Policy{}
	}
	p = r.Overlay(base, u)
	r.overlaid[key] = p
	return p, true
}

// Ancestry returns a unit with its ancestors, root first. A cycle or a missing parent ends it.
func (r *Resolver) Ancestry(u *policy.Unit) []*policy.Unit {
	if !u.Parent.IsSet() {
		return []*policy.Unit{u}
	}
	var out []*policy.Unit
	for u != nil && !slices.Contains(out, u) {
		out = append(out, u)
		u = r.repo.Unit(u.Parent.V)
	}
	slices.Reverse(out)
	return out
}

// merge sets next to what own makes of base.
func (r *Resolver) merge(next, base *Policy, own *policy.Body) {
	next.Body = Merge(&base.Body, own)
	if next.Box = base.Box; own.Sandbox.Policy.IsSet() {
		next.Box = r.repo.Sandbox(own.Sandbox.Policy.V)
	}
	if !own.Egress.Written() {
		next.Hosts = base.Hosts
		return
	}
	e := &next.Egress
	rules := egress.Rules{Default: e.Default.V, DefaultPos: e.Default.Pos}
	rules.Allowed = make([]egress.Entry, 0, len(e.AllowedDomains.Items)+8*len(e.Presets.Items))
	for _, h := range e.AllowedDomains.Items {
		rules.Allowed = append(rules.Allowed, egress.Entry{Pattern: h.Pattern, Field: "egress.allowedDomains", Name: h.Pattern.String(), Pos: h.Pos})
	}
	for _, name := range e.Presets.Items {
		for _, p := range r.presets[name.V] {
			rules.Allowed = append(rules.Allowed, egress.Entry{Pattern: p, Field: "egress.presets", Name: name.V, Pos: name.Pos})
		}
	}
	rules.Denied = make([]egress.Entry, 0, len(e.DeniedDomains.Items))
	for _, h := range e.DeniedDomains.Items {
		rules.Denied = append(rules.Denied, egress.Entry{Pattern: h.Pattern, Field: "egress.deniedDomains", Name: h.Pattern.String(), Pos: h.Pos})
	}
	next.Hosts = egress.Compile(rules)
}

// intersect takes back what the overlay of a second unit would give back of what an earlier one took: overlays merge by replacing lists, and units that apply
// together allow only what each of them allows by itself, in any order. An overlay by itself is compared with its ring before, so that nothing is hidden here.
func (r *Resolver) intersect(next, base *Policy) {
	if rank(next.Sandbox.Mode.V) < rank(base.Sandbox.Mode.V) {
		next.Sandbox.Mode, next.Sandbox.ModeField = base.Sandbox.Mode, base.Sandbox.ModeField
	}
	if base.Box != nil && (next.Box == nil || looserBox(base.Box, next.Box) != "") {
		// Neither of two that cannot be ranked would be right for both units; Boxes reports that.
		next.Box, next.Sandbox.Policy = base.Box, base.Sandbox.Policy
	}
	if base.Permissions.SandboxRequired.V {
		next.Permissions.SandboxRequired = base.Permissions.SandboxRequired
	}
	if next.Own.Sandbox.WritableRoots.IsSet() {
		next.Sandbox.WritableRoots.Items = narrower(next.Sandbox.WritableRoots.Items, base.Sandbox.WritableRoots.Items,
			func(a, b policy.FilePath) bool { return fspath.Covers(a.Path, b.Path) }, pathKey)
	}
	if !next.Own.Egress.Written() {
		return
	}
	ring := base
	for len(ring.Units) > 0 {
		ring = ring.Parent
	}
	var alone Policy
	r.merge(&alone, ring, next.Own)
	baseOpen, _ := base.Hosts.Default()
	aloneOpen, _ := alone.Hosts.Default()
	rules := next.Hosts.Rules()
	switch {
	case baseOpen && aloneOpen:
		return
	case baseOpen:
		rules.Allowed = alone.Hosts.Allowed()
	case aloneOpen:
		rules.Allowed = base.Hosts.Allowed()
	default:
		rules.Allowed = narrower(alone.Hosts.Allowed(), base.Hosts.Allowed(), func(a, b egress.Entry) bool { return a.Pattern.Covers(b.Pattern) },
			func(e egress.Entry) host.Pattern { return e.Pattern })
	}
	if next.Egress.Default.V != "deny" {
		// Written out, because an empty intersection must not turn the implied default.
		next.Egress.Default = source.Str{V: "deny", Pos: next.Doc.Pos}
	}
	rules.Default, rules.DefaultPos = "deny", next.Egress.Default.Pos
	next.Egress.AllowedDomains.Items, next.Egress.Presets.Items = nil, nil
	for _, e := range rules.Allowed {
		if e.Field == "egress.presets" {
			next.Egress.Presets.Items = union(next.Egress.Presets.Items, []source.Str{{V: e.Name, Pos: e.Pos}}, strKey)
			continue
		}
		next.Egress.AllowedDomains.Items = append(next.Egress.AllowedDomains.Items, policy.Host{Pattern: e.Pattern, Pos: e.Pos})
	}
	next.Hosts = egress.Compile(rules)
}

// narrower returns what two lists both cover: of each pair in which one entry covers the other, the narrower one.
func narrower[T any, K comparable](a, b []T, covers func(wide, narrow T) bool, key func(T) K) []T {
	inside := func(xs, of []T) []T {
		var out []T
		for _, x := range xs {
			if slices.ContainsFunc(of, func(y T) bool { return covers(y, x) }) {
				out = append(out, x)
			}
		}
		return out
	}
	return union(inside(a, b), inside(b, a), key)
}

// Merge returns what a child makes of its parent: scalars and most lists are replaced when the child writes them, the lists that only ever deny or
// protect are united, maps are merged key by key. Nothing in the result is shared in a way that a later change could show.
func Merge(parent, child *policy.Body) policy.Body {
	m := *parent
	m.Harnesses = mergePins(parent.Harnesses, child.Harnesses)
	pick(&m.Models.Default, child.Models.Default)
	replace(&m.Models.Allowed, child.Models.Allowed)
	pickBool(&m.Models.Enforce, child.Models.Enforce)

	pick(&m.Permissions.Mode, child.Permissions.Mode)
	replace(&m.Permissions.Allow, child.Permissions.Allow)
	replace(&m.Permissions.Ask, child.Permissions.Ask)
	unite(&m.Permissions.Deny, child.Permissions.Deny)
	pickBool(&m.Permissions.DisableBypass, child.Permissions.DisableBypass)
	pickBool(&m.Permissions.SandboxRequired, child.Permissions.SandboxRequired)

	if child.Sandbox.Mode.IsSet() {
		m.Sandbox.Mode, m.Sandbox.ModeField = child.Sandbox.Mode, child.Sandbox.ModeField
	}
	if child.Sandbox.WritableRoots.IsSet() {
		m.Sandbox.WritableRoots = policy.FilePaths{Items: union(nil, child.Sandbox.WritableRoots.Items, pathKey), Pos: child.Sandbox.WritableRoots.Pos}
	}
	if child.Sandbox.ProtectedPaths.IsSet() {
		m.Sandbox.ProtectedPaths = policy.FilePaths{Items: union(m.Sandbox.ProtectedPaths.Items, child.Sandbox.ProtectedPaths.Items, pathKey), Pos: child.Sandbox.ProtectedPaths.Pos}
	}
	pick(&m.Sandbox.Policy, child.Sandbox.Policy)

	pick(&m.Egress.Default, child.Egress.Default)
	if child.Egress.AllowedDomains.IsSet() {
		m.Egress.AllowedDomains = policy.Hosts{Items: union(nil, child.Egress.AllowedDomains.Items, hostKey), Pos: child.Egress.AllowedDomains.Pos}
	}
	replace(&m.Egress.Presets, child.Egress.Presets)
	if child.Egress.DeniedDomains.IsSet() {
		m.Egress.DeniedDomains = policy.Hosts{Items: union(m.Egress.DeniedDomains.Items, child.Egress.DeniedDomains.Items, hostKey), Pos: child.Egress.DeniedDomains.Pos}
	}

	pickBool(&m.MCP.ManagedOnly, child.MCP.ManagedOnly)
	if child.MCP.ServersPos.IsValid() {
		m.MCP.Servers, m.MCP.ServersPos = child.MCP.Servers, child.MCP.ServersPos
	}
	unite(&m.MCP.Denied, child.MCP.Denied)

	pickBool(&m.Hooks.ManagedOnly, child.Hooks.ManagedOnly)
	if child.Hooks.Pos.IsValid() {
		m.Hooks.Items, m.Hooks.Pos = union(m.Hooks.Items, child.Hooks.Items, hookKey), child.Hooks.Pos
	}

	pickBool(&m.Telemetry.Enabled, child.Telemetry.Enabled)
	pick(&m.Telemetry.OTLPEndpoint, child.Telemetry.OTLPEndpoint)
	pick(&m.Telemetry.Protocol, child.Telemetry.Protocol)
	pickBool(&m.Telemetry.LogPrompts, child.Telemetry.LogPrompts)
	m.Telemetry.Attributes = mergePairs(m.Telemetry.Attributes, child.Telemetry.Attributes)

	pick(&m.Instructions, child.Instructions)
	m.Env = mergePairs(m.Env, child.Env)
	m.Require = union(m.Require, child.Require, requireKey)
	return m
}

func pick(into *source.Str, s source.Str) {
	if s.IsSet() {
		*into = s
	}
}

func pickBool(into *source.Bool, b source.Bool) {
	if b.IsSet() {
		*into = b
	}
}

func replace(into *source.Strs, l source.Strs) {
	if l.IsSet() {
		*into = source.Strs{Items: union(nil, l.Items, strKey), Pos: l.Pos}
	}
}

func unite(into *source.Strs, l source.Strs) {
	if l.IsSet() {
		*into = source.Strs{Items: union(into.Items, l.Items, strKey), Pos: l.Pos}
	}
}

func strKey(s source.Str) string         { return s.V }
func hostKey(h policy.Host) host.Pattern { return h.Pattern }
func pathKey(p policy.FilePath) string   { return p.Path.String() }

func hookKey(h policy.Hook) [3]string { return [3]string{h.Event.V, h.Matcher.V, h.Command.V} }

func requireKey(r policy.Requirement) string {
	k := r.Concept.V + "\x00" + r.Harness.V + "\x00" + r.Grade.V
	for _, os := range r.OS.Items {
		k += "\x00" + os.V
	}
	return k
}

// union returns a and what b adds to it, in order, without repetitions. Short lists are compared pairwise; a set costs more than it saves there.
func union[T any, K comparable](a, b []T, key func(T) K) []T {
	if len(a) > 0 && len(b) == 0 {
		return a
	}
	out := make([]T, 0, len(a)+len(b))
	if len(a)+len(b) <= 32 {
		for _, l := range [2][]T{a, b} {
			for _, x := range l {
				k := key(x)
				if !slices.ContainsFunc(out, func(y T) bool { return key(y) == k }) {
					out = append(out, x)
				}
			}
		}
		return out
	}
	seen := make(map[K]bool, len(a)+len(b))
	for _, l := range [2][]T{a, b} {
		for _, x := range l {
			if k := key(x); !seen[k] {
				seen[k] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// mergePairs merges maps of texts by key and keeps the order of first mention.
func mergePairs(parent, child []source.Pair) []source.Pair {
	if len(child) == 0 {
		return parent
	}
	out := slices.Clone(parent)
	at := make(map[string]int, len(parent)+len(child))
	for i, p := range out {
		at[p.Key.V] = i
	}
	for _, p := range child {
		if i, ok := at[p.Key.V]; ok {
			out[i] = p
			continue
		}
		at[p.Key.V] = len(out)
		out = append(out, p)
	}
	return out
}

// mergePins merges pins harness by harness and field by field.
func mergePins(parent, child []policy.Pin) []policy.Pin {
	if len(child) == 0 {
		return parent
	}
	out := slices.Clone(parent)
	for _, c := range child {
		i := slices.IndexFunc(out, func(p policy.Pin) bool { return p.Harness.V == c.Harness.V })
		if i < 0 {
			out = append(out, c)
			continue
		}
		p := &out[i]
		p.Harness = c.Harness
		pick(&p.Version, c.Version)
		pick(&p.Model, c.Model)
		if c.OverridesPos.IsValid() {
			merged := maps.Clone(p.Overrides)
			if merged == nil {
				merged = make(map[string]any, len(c.Overrides))
			}
			maps.Copy(merged, c.Overrides)
			p.Overrides, p.OverridesPos = merged, c.OverridesPos
			p.OverrideKeys = mergePairs(p.OverrideKeys, c.OverrideKeys)
		}
	}
	slices.SortFunc(out, func(a, b policy.Pin) int { return strings.Compare(a.Harness.V, b.Harness.V) })
	return out
}
