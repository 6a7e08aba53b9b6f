package diff

import (
	"slices"
	"strconv"

	"halos.dev/halo/compiler/policy"
)

// people compares who is in which ring and unit. Who joins a unit had the ring alone before, who leaves one has it afterwards; who joins or leaves a ring
// comes from or goes to the default ring.
func (c *comparison) people() []Move {
	out := []Move{}
	if c.partial {
		return out
	}
	was, is := c.old.compiled.Repo, c.new.compiled.Repo
	for _, ring := range is.Rings {
		old := was.Ring(ring.Name.V)
		if old == nil {
			continue
		}
		m := move("ring "+ring.Name.V, &old.Membership, &ring.Membership)
		if old.Membership.Default.V != ring.Membership.Default.V {
			m.verdict(c, c.old.target(c.old.defaultRing()), c.new.target(c.new.defaultRing()), "people in no other ring")
		}
		if len(m.Joined) > 0 {
			m.verdict(c, c.old.target(c.old.defaultRing()), c.new.target(ring.Name.V), "who joins")
		}
		if len(m.Left) > 0 {
			m.verdict(c, c.old.target(ring.Name.V), c.new.target(c.new.defaultRing()), "who leaves")
		}
		out = m.appendTo(out)
	}
	for _, unit := range is.Units {
		old := was.Unit(unit.Name.V)
		if old == nil {
			continue
		}
		m := move("unit "+unit.Name.V, &old.Membership, &unit.Membership)
		for _, ring := range is.Rings {
			id := ring.Name.V + "+" + unit.Name.V
			if len(m.Joined) > 0 && c.new.target(id) != nil {
				m.verdict(c, c.old.target(ring.Name.V), c.new.target(id), "who joins")
			}
			if len(m.Left) > 0 && c.old.target(id) != nil {
				m.verdict(c, c.old.target(id), c.new.target(ring.Name.V), "who leaves")
			}
		}
		out = m.appendTo(out)
	}
	return out
}

// move lists who joined and left.
func move(name string, old, new *policy.Membership) *Move {
	a, b := members(old), members(new)
	m := &Move{Name: name, Verdict: Same, Joined: minus(b, a), Left: minus(a, b)}
	if p, q := old.Percent.V, new.Percent.V; p != q {
		if q > p {
			m.Joined = append(m.Joined, percent(q))
		}
		if q < p {
			m.Left = append(m.Left, percent(p))
		}
	}
	return m
}

func members(m *policy.Membership) []string {
	var out []string
	for _, u := range m.Users.Items {
		out = append(out, "user "+u.V)
	}
	for _, g := range m.Groups.Items {
		out = append(out, "group "+g.V)
	}
	if m.OptIn.V {
		out = append(out, "people who opt in")
	}
	if m.Default.V {
		out = append(out, "everybody else")
	}
	return out
}

// percent writes hundredths of a percent.
func percent(n int64) string {
	s := strconv.FormatInt(n/100, 10)
	if n%100 != 0 {
		s = strconv.FormatFloat(float64(n)/100, 'f', -1, 64)
	}
	return s + " percent"
}

// verdict makes the verdict of a move the worst of what it was and what it means to go from one target to another.
func (m *Move) verdict(c *comparison, from, to *target, who string) {
	v, witness := Looser, "what they had or have is not known"
	if from != nil && to != nil {
		// Compared targets of two policies read no file, so there is no error.
		g, err := c.pair(from, to, "")
		if err == nil {
			v, witness = g.Verdict, ""
			if len(g.Looser) > 0 {
				witness = g.Looser[0].Witness
			}
		}
	}
	if v.rank() < m.Verdict.rank() {
		m.Verdict = v
	}
	if witness != "" && m.Witness == "" {
		m.Witness = who + ": " + witness
	}
}

func (m *Move) appendTo(out []Move) []Move {
	if len(m.Joined)+len(m.Left) == 0 {
		return out
	}
	return slices.Concat(out, []Move{*m})
}
