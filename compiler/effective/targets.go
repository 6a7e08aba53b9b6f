package effective

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
)

// Target is a ring with a set of units: what one group of devices gets.
type Target struct {
	// ID is RING or RING+UNIT+UNIT with the units sorted.
	ID     string
	Ring   *policy.Ring
	Units  []*policy.Unit
	Policy *Policy
	// Shared is set when Policy was made for another unit with an equal overlay, so that its places are in that unit's document.
	Shared bool
	// Declared is the place that makes this set of several units a target, not valid for a ring alone or with one unit.
	Declared diag.Pos
}

// TargetID returns the id of a ring with units.
func TargetID(ring string, units []string) string {
	if len(units) == 0 {
		return ring
	}
	sorted := slices.Sorted(slices.Values(units))
	return ring + "+" + strings.Join(slices.Compact(sorted), "+")
}

// Applies reports whether a unit applies to a ring: it names the ring, or names none.
func Applies(u *policy.Unit, ring string) bool {
	if !u.Rings.IsSet() {
		return true
	}
	for _, r := range u.Rings.Items {
		if r.V == ring {
			return true
		}
	}
	return false
}

// Targets lists the targets of a repo in the order of ring order, then id: each ring alone, each ring with each unit that applies to it, and the sets that
// halos.yaml lists under combinations or that one named user or a parent creates. Rings whose profile does not resolve have no targets.
func (r *Resolver) Targets() []Target {
	rings := slices.Clone(r.repo.Rings)
	slices.SortStableFunc(rings, func(a, b *policy.Ring) int { return int(a.Order.V - b.Order.V) })
	byRing := map[string][]*policy.Unit{}
	var everywhere []*policy.Unit
	for _, u := range r.repo.Units {
		if !u.Rings.IsSet() {
			everywhere = append(everywhere, u)
			continue
		}
		for _, ring := range u.Rings.Items {
			byRing[ring.V] = append(byRing[ring.V], u)
		}
	}
	sets := r.sets()
	var out []Target
	for _, ring := range rings {
		base := r.Profile(ring.Profile.V)
		if base == nil {
			continue
		}
		first := len(out)
		out = append(out, Target{ID: ring.Name.V, Ring: ring, Policy: base})
		units := append(slices.Clip(everywhere), byRing[ring.Name.V]...)
		for _, u := range units {
			p, fresh := r.shared(base, u)
			out = append(out, Target{ID: ring.Name.V + "+" + u.Name.V, Ring: ring, Units: []*policy.Unit{u}, Policy: p, Shared: !fresh})
		}
		for _, s := range sets {
			if slices.ContainsFunc(s.units, func(u *policy.Unit) bool { return !Applies(u, ring.Name.V) }) {
				continue
			}
			out = append(out, Target{ID: TargetID(ring.Name.V, s.names()), Ring: ring, Units: s.units, Policy: r.With(base, s.units), Declared: s.pos})
		}
		slices.SortStableFunc(out[first:], func(a, b Target) int { return strings.Compare(a.ID, b.ID) })
		out = append(out[:first], slices.CompactFunc(out[first:], func(a, b Target) bool { return a.ID == b.ID })...)
	}
	return out
}

// With returns base with the overlays of several units, in the order of their names.
func (r *Resolver) With(base *Policy, units []*policy.Unit) *Policy {
	for _, u := range units {
		base = r.Overlay(base, u)
	}
	return base
}

// MaxUnits is how many units may apply at once. The overlays of a set are laid one over the other, so that the work of a set grows with its square.
const MaxUnits = 64

type unitSet struct {
	units []*policy.Unit
	pos   diag.Pos
}

func (s unitSet) names() []string {
	out := make([]string, len(s.units))
	for i, u := range s.units {
		out[i] = u.Name.V
	}
	return out
}

// sets lists the declared sets of two and more units, each once.
func (r *Resolver) sets() []unitSet {
	var out []unitSet
	seen := map[string]bool{}
	add := func(pos diag.Pos, units []*policy.Unit) {
		units = slices.Clone(units)
		slices.SortFunc(units, func(a, b *policy.Unit) int { return strings.Compare(a.Name.V, b.Name.V) })
		units = slices.Compact(units)
		s := unitSet{units, pos}
		id := strings.Join(s.names(), "+")
		switch {
		case len(units) > MaxUnits:
			r.Oversized = append(r.Oversized, pos)
		case len(units) > 1 && !seen[id]:
			seen[id] = true
			out = append(out, s)
		}
	}
	if r.repo.Root != nil {
		for _, c := range r.repo.Root.Combinations {
			var units []*policy.Unit
			for _, name := range c.Items {
				if u := r.repo.Unit(name.V); u != nil {
					units = append(units, u)
				}
			}
			if len(units) == len(c.Items) {
				add(c.Pos, units)
			}
		}
	}
	users := map[string][]*policy.Unit{}
	var names []string
	for _, u := range r.repo.Units {
		if u.Parent.IsSet() {
			add(u.Parent.Pos, r.Ancestry(u))
		}
		for _, user := range u.Membership.Users.Items {
			if users[user.V] == nil {
				names = append(names, user.V)
			}
			users[user.V] = append(users[user.V], u)
		}
	}
	for _, name := range names {
		if us := users[name]; len(us) > 1 {
			add(us[len(us)-1].Membership.Users.Pos, us)
		}
	}
	return out
}
