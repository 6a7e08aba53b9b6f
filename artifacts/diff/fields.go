package diff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/policy"
)

// finding is a way in which a policy, next, is looser than another, base.
type finding struct {
	field, entry, witness string
	undecided             bool
	// base and next are places in the two repos.
	base, next diag.Pos
}

// effectiveLooser is the order of effective policies.
func effectiveLooser(base, next *effective.Policy) []finding {
	var out []finding
	for _, l := range effective.Loosenings(base, next) {
		out = append(out, finding{field: l.Field, entry: l.Entry, witness: l.Witness, base: l.Base, next: l.Pos})
	}
	return out
}

// looserFindings adds to that order what only a change over time can do: take a harness, its version or its oversight away.
func looserFindings(base, next *target) []finding {
	out := effectiveLooser(base.policy, next.policy)
	b, n := base.policy, next.policy
	for i := range b.Harnesses {
		pin := &b.Harnesses[i]
		to := n.Pin(pin.Harness.V)
		if to == nil {
			out = append(out, finding{field: "harnesses." + pin.Harness.V, witness: "harness " + pin.Harness.V + ": managed -> not managed", base: pin.Harness.Pos})
			continue
		}
		out = append(out, downgrade(base, pin, to)...)
	}
	if len(b.Harnesses) > 0 && len(n.Harnesses) > 0 && base.side.gateway != "" && next.side.gateway == "" {
		out = append(out, finding{field: "gateway", witness: "gateway: " + base.side.gateway + " -> none"})
	}
	if exports(b) && !exports(n) {
		out = append(out, finding{field: "telemetry.enabled", witness: "telemetry: sent -> not sent", base: b.Telemetry.Enabled.Pos, next: n.Telemetry.Enabled.Pos})
	}
	if !b.Telemetry.LogPrompts.V && n.Telemetry.LogPrompts.V {
		out = append(out, finding{field: "telemetry.logPrompts", witness: "prompts in telemetry: left out -> included", base: b.Telemetry.LogPrompts.Pos, next: n.Telemetry.LogPrompts.Pos})
	}
	return out
}

func exports(p *effective.Policy) bool {
	return p.Telemetry.Enabled.V && p.Telemetry.OTLPEndpoint.V != ""
}

// downgrade lists the concepts that the policy uses and a harness holds less of at another version.
func downgrade(base *target, from, to *policy.Pin) []finding {
	if from.Version.V == to.Version.V {
		return nil
	}
	h := base.side.compiled.Harness(from.Harness.V)
	v, okFrom := harness.ParseVersion(from.Version.V)
	w, okTo := harness.ParseVersion(to.Version.V)
	if h == nil || !okFrom || !okTo {
		return nil
	}
	var out []finding
	used := gap.Fields(base.policy, h.ID)
	for i, f := range used {
		if slices.ContainsFunc(used[:i], func(x gap.Field) bool { return x.Concept == f.Concept }) {
			continue
		}
		at := map[string][]string{}
		for _, os := range policy.OSes {
			if a, b := h.Capability(f.Concept, os, v).Grade, h.Capability(f.Concept, os, w).Grade; b < a {
				change := a.String() + " -> " + b.String()
				at[change] = append(at[change], os)
			}
		}
		for _, change := range slices.Sorted(maps.Keys(at)) {
			out = append(out, finding{field: "harnesses." + h.ID + ".version", entry: to.Version.V, base: from.Version.Pos, next: to.Version.Pos,
				witness: fmt.Sprintf("%s of %s on %s: %s", f.Concept, h.ID, strings.Join(at[change], ", "), change)})
		}
	}
	return out
}

// undecidable are the settings whose change has no direction that halo could tell: they run code, redirect data or go to a harness as they are.
var undecidable = []string{"hooks.items", "env.", "telemetry.otlpEndpoint"}

func isUndecidable(field string) bool {
	return strings.HasPrefix(field, "harnesses.") && strings.Contains(field, ".overrides.") ||
		slices.ContainsFunc(undecidable, func(u string) bool {
			return field == u || strings.HasSuffix(u, ".") && strings.HasPrefix(field, u)
		})
}

// undecided lists the differences that have no direction; each counts as looser both ways.
func undecided(old, new *target) []finding {
	var out []finding
	add := func(field, what, from, to string, base, next diag.Pos) {
		out = append(out, finding{field: field, witness: fmt.Sprintf("%s: %s -> %s", what, short(from), short(to)), undecided: true, base: base, next: next})
	}
	if a, b := old.side.gateway, new.side.gateway; a != b && a != "" && b != "" && len(new.policy.Harnesses) > 0 {
		add("gateway", "gateway", a, b, 0, 0)
	}
	a, b := leaves(old.policy), leaves(new.policy)
	for _, field := range union(a, b) {
		x, y := a[field], b[field]
		if !isUndecidable(field) || slices.Equal(x.items, y.items) {
			continue
		}
		if field == "telemetry.otlpEndpoint" && !(exports(old.policy) && exports(new.policy)) {
			continue // has a direction: see looserFindings
		}
		if h, _, ok := strings.Cut(strings.TrimPrefix(field, "harnesses."), ".overrides."); ok && strings.HasPrefix(field, "harnesses.") && (old.policy.Pin(h) == nil || new.policy.Pin(h) == nil) {
			continue // the harness itself is new or gone
		}
		if field == "hooks.items" {
			for _, hook := range minus(y.items, x.items) {
				add(field, field+" "+short(hook), "none", "run", x.pos, y.pos)
			}
			for _, hook := range minus(x.items, y.items) {
				add(field, field+" "+short(hook), "run", "none", x.pos, y.pos)
			}
			if slices.Equal(slices.Sorted(slices.Values(x.items)), slices.Sorted(slices.Values(y.items))) {
				add(field, "order of hooks", x.text(), y.text(), x.pos, y.pos)
			}
			continue
		}
		add(field, field, cmp.Or(x.text(), "none"), cmp.Or(y.text(), "none"), x.pos, y.pos)
	}
	if x, y := old.policy.Box, new.policy.Box; unresolved(x, y) {
		add("sandbox.policy", "sandbox "+y.Name.V, "known", "not known", old.policy.Sandbox.Policy.Pos, new.policy.Sandbox.Policy.Pos)
	}
	return out
}

// unresolved reports whether two different Sandbox documents have blocks of DefenseClaw that nobody can resolve here.
func unresolved(x, y *policy.Sandbox) bool {
	return x != nil && y != nil && x.Digest != y.Digest && (x.Resolved == nil && (x.Block != nil || x.Pack.IsSet()) || y.Resolved == nil && (y.Block != nil || y.Pack.IsSet()))
}

// leaf is a setting: its items, one for a value that is no list.
type leaf struct {
	items []string
	list  bool
	pos   diag.Pos
}

func (l leaf) text() string { return strings.Join(l.items, ", ") }

// leaves lists what a policy sets. Lists whose order means nothing are sorted; a switch that is off and an empty list are as good as absent.
func leaves(p *effective.Policy) map[string]leaf {
	out := map[string]leaf{}
	last := ""
	for _, v := range effective.Values(p) {
		if v.Value == "[]" || v.Value == "false" || strings.HasSuffix(v.Key, ".overrides") {
			continue
		}
		field, rest, isItem := strings.Cut(v.Key, "[")
		if !isItem {
			out[field] = leaf{items: []string{v.Value}, pos: v.Pos}
			continue
		}
		index, sub, _ := strings.Cut(rest, "]")
		text := v.Value
		if sub != "" {
			text = strings.TrimPrefix(sub, ".") + "=" + v.Value
		}
		l := out[field]
		l.list = true
		if at := field + "[" + index; at == last {
			l.items[len(l.items)-1] += " " + text
		} else {
			last = at
			l.items = append(l.items, text)
			l.pos = cmp.Or(l.pos, v.Pos)
		}
		out[field] = l
	}
	for _, pin := range p.Harnesses {
		flatten("harnesses."+pin.Harness.V+".overrides", pin.Overrides, func(key, value string) { out[key] = leaf{items: []string{value}, pos: pin.OverridesPos} })
	}
	for field, l := range out {
		if field != "hooks.items" {
			slices.Sort(l.items)
		}
	}
	return out
}

// flatten lists the leaves of override values.
func flatten(at string, v any, add func(key, value string)) {
	if m, ok := v.(map[string]any); ok {
		for k, x := range m {
			flatten(at+"."+k, x, add)
		}
		return
	}
	// Override values are plain data that encoding/json always writes.
	b, _ := json.Marshal(v)
	add(at, string(b))
}

func union(a, b map[string]leaf) []string {
	names := make(map[string]bool, len(a)+len(b))
	for k := range a {
		names[k] = true
	}
	for k := range b {
		names[k] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// changes lists the settings that differ and that no difference in strictness explains.
func changes(old, new *target, explained []finding) []ValueChange {
	a, b := leaves(old.policy), leaves(new.policy)
	if sameEgress(old.policy, new.policy) {
		for _, m := range []map[string]leaf{a, b} {
			maps.DeleteFunc(m, func(field string, _ leaf) bool { return strings.HasPrefix(field, "egress.") })
		}
	}
	if opens(old.policy) == opens(new.policy) {
		delete(a, "egress.default")
		delete(b, "egress.default")
	}
	out := []ValueChange{}
	if old.policy.Profile != new.policy.Profile {
		out = append(out, ValueChange{"profile", old.policy.Profile, new.policy.Profile})
	}
	for _, field := range union(a, b) {
		x, y := a[field], b[field]
		h, _, _ := strings.Cut(strings.TrimPrefix(field, "harnesses."), ".")
		switch {
		case slices.Equal(x.items, y.items):
			continue
		case strings.HasPrefix(field, "harnesses.") && (old.policy.Pin(h) == nil || new.policy.Pin(h) == nil):
			continue // the harness itself is new or gone
		case field == "sandbox.mode":
			continue // the mode that counts may be implied; the comparator looks at that one
		}
		left := func(l, other leaf) string {
			rest := slices.DeleteFunc(minus(l.items, other.items), func(item string) bool {
				return slices.ContainsFunc(explained, func(f finding) bool { return f.explains(field, item, l.list) })
			})
			return short(strings.Join(rest, ", "))
		}
		if v := (ValueChange{field, left(x, y), left(y, x)}); v.Old != v.New {
			out = append(out, v)
		}
	}
	return out
}

// explains reports whether a finding says what there is to say about an item of a setting.
func (f finding) explains(field, item string, list bool) bool {
	return f.field == field && (!list || f.entry == "" || f.entry == item || strings.HasPrefix(item, "name="+f.entry+" "))
}

// opens reports whether a policy allows hosts on no list.
func opens(p *effective.Policy) bool {
	allow, _ := p.Hosts.Default()
	return allow
}

// sameEgress reports whether two policies allow and deny the same patterns, in whatever words.
func sameEgress(a, b *effective.Policy) bool {
	set := func(l []string) []string {
		slices.Sort(l)
		return slices.Compact(l)
	}
	return opens(a) == opens(b) && slices.Equal(set(a.Hosts.AllowedHosts()), set(b.Hosts.AllowedHosts())) && slices.Equal(set(a.Hosts.DeniedHosts()), set(b.Hosts.DeniedHosts()))
}

// maxShown is how many characters of a value are shown.
const maxShown = 120

// short makes a value fit a line.
func short(s string) string {
	if strings.ContainsAny(s, "\n\r\t") {
		s = strconv.Quote(s)
	}
	if rs := []rune(s); len(rs) > maxShown {
		return string(rs[:maxShown-3]) + "..."
	}
	return s
}
