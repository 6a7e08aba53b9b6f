package check

import (
	"slices"
	"time"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
)

// permitted reports whether an exception permits a loosening in a target, and records it. An expired exception permits nothing.
func (c *checker) permitted(t effective.Target, units []*policy.Unit, l effective.Loosening) bool {
	for _, e := range c.Repo.Exceptions {
		switch {
		case e.Field.V != l.Field || e.Entry.V != l.Entry || e.Bad:
			continue
		case e.Ring.IsSet() && (e.Ring.V != t.Ring.Name.V || len(units) > 0):
			continue
		case e.Unit.IsSet() && !slices.ContainsFunc(units, func(u *policy.Unit) bool { return u.Name.V == e.Unit.V }):
			continue
		}
		c.used[e] = true
		if c.past(e) {
			continue
		}
		c.permits = append(c.permits, Permit{e, t.ID, l})
		return true
	}
	return false
}

func (c *checker) past(e *policy.Exception) bool { return c.Now.Unix() >= e.Expires.Unix }

func (c *checker) exceptions() {
	for _, e := range c.Repo.Exceptions {
		if e.Unit.IsSet() && c.Repo.Unit(e.Unit.V) == nil {
			d := diag.New(codeReference, e.Unit.Pos, "unit", "there is no unit %q", e.Unit.V)
			d.Hint = c.nearest(e.Unit.V, unitNames(c.Repo))
			c.add(d)
			continue
		}
		if e.Ring.IsSet() && c.Repo.Ring(e.Ring.V) == nil {
			d := diag.New(codeReference, e.Ring.Pos, "ring", "there is no ring %q", e.Ring.V)
			d.Hint = c.nearest(e.Ring.V, ringNames(c.Repo))
			c.add(d)
			continue
		}
		if e.Bad {
			continue
		}
		switch {
		case c.past(e):
			c.add(diag.New(codeExpired, e.Expires.Pos, "expires", "the exception expired on %s", e.Expires.V))
		case c.Now.Unix() >= e.Expires.Unix-int64(14*24*time.Hour/time.Second):
			c.add(diag.New(codeExpires, e.Expires.Pos, "expires", "the exception expires on %s", e.Expires.V))
		}
		if !c.used[e] {
			c.add(diag.New(codeUnused, e.Name.Pos, "name", "the exception permits nothing: no such loosening is there"))
		}
	}
}
