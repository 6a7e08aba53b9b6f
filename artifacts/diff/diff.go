// Package diff says what a change of policy means: for each target whether it got looser, tighter, only different or stayed the same, with a witness for every
// difference. It compares what devices get, never the text of documents.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"halos.dev/halo/compiler/effective"
)

// Verdict says in which direction something changed.
type Verdict string

// The verdicts, worst first. Looser is also the answer when the direction cannot be decided.
const (
	Looser  Verdict = "LOOSER"
	Tighter Verdict = "TIGHTER"
	Changed Verdict = "CHANGED"
	Same    Verdict = "SAME"
)

// rank orders verdicts in a report: what needs a reviewer first.
func (v Verdict) rank() int { return slices.Index([]Verdict{Looser, Changed, Tighter, Same}, v) }

// Report is the answer of Compare. Lists are never nil and have one order for equal input.
type Report struct {
	SchemaVersion int  `json:"schemaVersion"`
	Old           Name `json:"old"`
	New           Name `json:"new"`
	// Verdict is the worst of all groups and moves.
	Verdict Verdict `json:"verdict"`
	// Summary is one sentence for people who will not read the rest.
	Summary string `json:"summary"`
	// Targets counts the targets of each verdict.
	Targets    Counts         `json:"targets"`
	Groups     []Group        `json:"groups"`
	People     []Move         `json:"people"`
	Presets    []ListChange   `json:"presets"`
	Packs      []ValueChange  `json:"packs"`
	Pins       []PinChange    `json:"pins"`
	Exceptions []ListChange   `json:"exceptions"`
	Warnings   WarningChanges `json:"warnings"`
	// Notes say what the comparison could not see.
	Notes []string `json:"notes"`
	// errors counts those of the old and the new policy.
	errors [2]int
}

// Name says what one side is: a directory, a release or a revision, and its digest or commit when it has one.
type Name struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Digest string `json:"digest,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Counts counts targets by verdict.
type Counts struct {
	Looser  int `json:"looser"`
	Tighter int `json:"tighter"`
	Changed int `json:"changed"`
	Same    int `json:"same"`
}

// Group is a change and all targets that have it.
type Group struct {
	Verdict Verdict  `json:"verdict"`
	Targets []string `json:"targets"`
	// Status is "new" or "gone" for targets of one side only; Against is the target of the other side that they are compared with, "" when there is none.
	Status  string       `json:"status,omitempty"`
	Against string       `json:"against,omitempty"`
	Looser  []Difference `json:"looser"`
	Tighter []Difference `json:"tighter"`
	// Changed are the settings that differ without a direction.
	Changed []ValueChange `json:"changed"`
	Gaps    GapChanges    `json:"gaps"`
	Files   []FileChange  `json:"files"`
}

// Difference is one way in which the two sides differ in strictness, shown on one concrete thing.
type Difference struct {
	Field string `json:"field"`
	Entry string `json:"entry,omitempty"`
	// Witness reads from the old side to the new one: "host uploads.example: deny -> allow".
	Witness string `json:"witness"`
	// Undecided is set when halo cannot tell which of the two is stricter.
	Undecided bool    `json:"undecided,omitempty"`
	Places    []Place `json:"places"`
}

// Place is where a value was written.
type Place struct {
	// Side is "old" or "new".
	Side   string `json:"side"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// ValueChange is a value that differs; Old or New is "" where there is none.
type ValueChange struct {
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// ListChange is a list that differs. Status is "new" or "gone" when only one side has it, which for a preset means that only one side uses it.
type ListChange struct {
	Name    string   `json:"name"`
	Status  string   `json:"status,omitempty"`
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

// PinChange is a harness whose pinned version differs on some targets; Old or New is "" where it is not pinned.
type PinChange struct {
	Harness string   `json:"harness"`
	Old     string   `json:"old"`
	New     string   `json:"new"`
	Targets []string `json:"targets"`
}

// GapChanges are the gaps that appeared and went.
type GapChanges struct {
	New  []Gap `json:"new"`
	Gone []Gap `json:"gone"`
}

// Gap is something a target cannot hold on some systems.
type Gap struct {
	Code    string   `json:"code"`
	Harness string   `json:"harness"`
	OS      []string `json:"os"`
	Field   string   `json:"field"`
	Message string   `json:"message"`
}

// FileChange is a rendered file that differs. Change is "new", "gone", "changed" or "mode" when only owner or mode differ; Added and Removed count lines.
type FileChange struct {
	Harness string `json:"harness"`
	OS      string `json:"os"`
	Dest    string `json:"dest"`
	Change  string `json:"change"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// WarningChanges are the warnings beside gaps that appeared and went.
type WarningChanges struct {
	New  []Warning `json:"new"`
	Gone []Warning `json:"gone"`
}

// Warning is a warning about the policy as a whole.
type Warning struct {
	Code    string `json:"code"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	key     string
}

// Move is a change of who is in a ring or unit. Verdict is what it means for those who move; who joins a ring or leaves it comes from or goes to the ring of
// everybody else.
type Move struct {
	Name    string   `json:"name"`
	Verdict Verdict  `json:"verdict"`
	Joined  []string `json:"joined"`
	Left    []string `json:"left"`
	// Witness shows what somebody who moves may do now, when that is more.
	Witness string `json:"witness,omitempty"`
}

// comparison is the work of one Compare.
type comparison struct {
	old, new *Side
	// partial is set when a side is a release, which records egress and files and no other settings.
	partial bool
	pairs   map[pair]*Group
}

// pair identifies what two targets get. Targets share both parts, so that the work is done once for each distinct pair.
type pair struct {
	oldPolicy, newPolicy *effective.Policy
	oldFiles, newFiles   *content
	// kept is set when both have the same id.
	kept bool
}

// Compare compares two sides. A side that is a release is compared by what its manifest records and by its files, which it must be able to read.
func Compare(old, new *Side) (*Report, error) {
	c := &comparison{old: old, new: new, partial: old.manifest != nil || new.manifest != nil, pairs: map[pair]*Group{}}
	r := &Report{SchemaVersion: 1, Old: old.Name, New: new.Name, Presets: lists(old.presets, new.presets), Packs: values(old.packs, new.packs),
		Exceptions: lists(old.exceptions, new.exceptions), Notes: []string{}, errors: [2]int{old.errors, new.errors}}
	if err := c.targets(r); err != nil {
		return nil, err
	}
	r.People = c.people()
	r.Pins = c.pins()
	r.Warnings.New, r.Warnings.Gone = missingWarnings(new.warnings, old.warnings), missingWarnings(old.warnings, new.warnings)
	r.notes(c)
	r.conclude()
	return r, nil
}

func (c *comparison) targets(r *Report) error {
	groups := map[string]*Group{}
	add := func(t *target, status string, against *target) error {
		o, n := against, t
		if status == "gone" {
			o, n = t, against
		}
		g, err := c.pair(o, n, status)
		if err != nil {
			return err
		}
		own := *g
		own.Status = status
		if status != "" && against != nil {
			own.Against = against.id
		}
		key := own.key()
		if at := groups[key]; at != nil {
			at.Targets = append(at.Targets, t.id)
			return nil
		}
		own.Targets = []string{t.id}
		groups[key] = &own
		return nil
	}
	for _, t := range c.new.targets {
		status, against := "", c.old.target(t.id)
		if against == nil {
			status, against = "new", c.old.stands(t)
		}
		if err := add(t, status, against); err != nil {
			return err
		}
	}
	for _, t := range c.old.targets {
		if c.new.target(t.id) != nil {
			continue
		}
		if err := add(t, "gone", c.new.stands(t)); err != nil {
			return err
		}
	}
	r.Groups = []Group{}
	for _, g := range groups {
		r.Groups = append(r.Groups, *g)
	}
	slices.SortFunc(r.Groups, func(a, b Group) int {
		return cmp.Or(a.Verdict.rank()-b.Verdict.rank(), strings.Compare(a.Status, b.Status), slices.Compare(a.Targets, b.Targets))
	})
	return nil
}

// pair compares what two targets get. One of them may be nil: nothing that halo knows of held or holds there.
func (c *comparison) pair(old, new *target, status string) (*Group, error) {
	if old == nil || new == nil {
		g := &Group{Verdict: Looser, Looser: []Difference{}, Tighter: []Difference{}, Changed: []ValueChange{}, Files: []FileChange{}, Gaps: GapChanges{[]Gap{}, []Gap{}}}
		d := Difference{Undecided: true, Places: []Place{}}
		if old == nil {
			d.Field, d.Witness = "ring "+new.ring, "ring "+new.ring+": new; what its people had before is not known"
		} else {
			d.Field, d.Witness = "ring "+old.ring, "ring "+old.ring+": gone; what its people have now is not known"
		}
		g.Looser = append(g.Looser, d)
		return g, nil
	}
	p := pair{old.policy, new.policy, old.content, new.content, status == ""}
	if g := c.pairs[p]; g != nil {
		return g, nil
	}
	g := &Group{Changed: []ValueChange{}}
	var looser, tighter []finding
	if c.partial {
		a, b := old.egressOnly(), new.egressOnly()
		looser, tighter = effectiveLooser(a, b), effectiveLooser(b, a)
	} else {
		looser, tighter = slices.Concat(looserFindings(old, new), undecided(old, new)), looserFindings(new, old)
		g.Changed = changes(old, new, slices.Concat(looser, tighter))
	}
	bad := slices.IndexFunc([]*target{old, new}, func(t *target) bool { return t.policy != nil && t.policy.Bad })
	if bad >= 0 {
		// Nothing is rendered of a policy with errors, so files and gaps say nothing.
		id := []*target{old, new}[bad].id
		looser = append(looser, finding{field: "errors", undecided: true, witness: fmt.Sprintf("policy of %s: known -> not known, because of errors", id)})
		g.Files, g.Gaps = []FileChange{}, GapChanges{[]Gap{}, []Gap{}}
	} else {
		if err := c.files(g, old, new, &looser, &tighter); err != nil {
			return nil, err
		}
		g.Gaps = GapChanges{missingGaps(new.content, old.content, false), missingGaps(old.content, new.content, true)}
	}
	g.Looser, g.Tighter = c.differences(looser, false), c.differences(tighter, true)
	switch {
	case len(g.Looser) > 0:
		g.Verdict = Looser
	case len(g.Tighter) > 0:
		g.Verdict = Tighter
	case len(g.Changed) > 0 || len(g.Files) > 0:
		g.Verdict = Changed
	default:
		g.Verdict = Same
	}
	if status != "" {
		// The files of a target on one side only are all new or all gone, which its status says.
		g.Files = []FileChange{}
	}
	c.pairs[p] = g
	return g, nil
}

// differences puts findings into the form of a report. Those of the backward comparison are turned round, so that every witness reads from old to new.
func (c *comparison) differences(fs []finding, backward bool) []Difference {
	out := []Difference{}
	for _, f := range fs {
		d := Difference{Field: f.field, Entry: f.entry, Witness: f.witness, Undecided: f.undecided, Places: []Place{}}
		at := []Place{c.old.place("old", f.base), c.new.place("new", f.next)}
		if backward {
			d.Witness = reverse(d.Witness)
			at = []Place{c.old.place("old", f.next), c.new.place("new", f.base)}
		}
		for _, p := range at {
			if p.Line > 0 {
				d.Places = append(d.Places, p)
			}
		}
		out = append(out, d)
	}
	return out
}

// reverse turns a witness round.
func reverse(w string) string {
	switch rest, ok := strings.CutSuffix(w, "no longer on the denied list"); {
	case ok:
		return rest + "now on the denied list"
	case strings.HasSuffix(w, ": new ask rule"):
		return strings.TrimSuffix(w, "new ask rule") + "ask rule is gone"
	}
	if before, after, ok := strings.Cut(w, allows); ok {
		return before + allowed + after
	}
	arrow := strings.LastIndex(w, " -> ")
	if arrow < 0 {
		return w
	}
	start := strings.LastIndex(w[:arrow], ": ") + len(": ")
	return w[:start] + w[arrow+len(" -> "):] + " -> " + w[start:arrow]
}

// key is what makes two changes the same.
func (g *Group) key() string {
	var b strings.Builder
	put := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
			b.WriteByte(0)
		}
		b.WriteByte(1)
	}
	put(string(g.Verdict), g.Status, g.Against)
	for _, ds := range [][]Difference{g.Looser, g.Tighter} {
		for _, d := range ds {
			put(d.Field, d.Entry, d.Witness)
		}
		put()
	}
	for _, v := range g.Changed {
		put(v.Name, v.Old, v.New)
	}
	for _, gaps := range [][]Gap{g.Gaps.New, g.Gaps.Gone} {
		put()
		for _, x := range gaps {
			put(x.Code, x.Harness, strings.Join(x.OS, ","), x.Field, x.Message)
		}
	}
	for _, f := range g.Files {
		put(f.Harness, f.OS, f.Dest, f.Change)
	}
	return b.String()
}

// pins compares the pinned versions of the rings; units have those of their ring.
func (c *comparison) pins() []PinChange {
	type key struct{ harness, old, new string }
	at := map[key][]string{}
	for _, t := range c.new.targets {
		old := c.old.target(t.id)
		if old == nil || len(t.units) > 0 {
			continue
		}
		names := maps.Clone(old.pins)
		maps.Copy(names, t.pins)
		for h := range names {
			if old.pins[h] != t.pins[h] {
				k := key{h, old.pins[h], t.pins[h]}
				at[k] = append(at[k], t.id)
			}
		}
	}
	out := []PinChange{}
	for k, targets := range at {
		out = append(out, PinChange{k.harness, k.old, k.new, targets})
	}
	slices.SortFunc(out, func(a, b PinChange) int {
		return cmp.Or(strings.Compare(a.Harness, b.Harness), strings.Compare(a.Old, b.Old), strings.Compare(a.New, b.New))
	})
	return out
}

// lists compares named lists.
func lists(old, new map[string][]string) []ListChange {
	names := map[string]bool{}
	for _, m := range []map[string][]string{old, new} {
		for n := range m {
			names[n] = true
		}
	}
	out := []ListChange{}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		l := ListChange{Name: n, Added: minus(new[n], old[n]), Removed: minus(old[n], new[n])}
		if old[n] == nil {
			l.Status = "new"
		} else if new[n] == nil {
			l.Status = "gone"
		}
		if len(l.Added)+len(l.Removed) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// values compares named values.
func values(old, new map[string]string) []ValueChange {
	names := maps.Clone(old)
	maps.Copy(names, new)
	out := []ValueChange{}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		if old[n] != new[n] {
			out = append(out, ValueChange{n, old[n], new[n]})
		}
	}
	return out
}

// minus returns the items of a that b lacks, sorted.
func minus(a, b []string) []string {
	have := make(map[string]bool, len(b))
	for _, s := range b {
		have[s] = true
	}
	out := []string{}
	for _, s := range a {
		if !have[s] {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// missingWarnings returns the warnings of a that b lacks, each as often as it lacks it.
func missingWarnings(a, b []Warning) []Warning {
	have := make(map[string]int, len(b))
	for _, w := range b {
		have[w.key]++
	}
	out := []Warning{}
	for _, w := range a {
		if have[w.key] > 0 {
			have[w.key]--
			continue
		}
		out = append(out, w)
	}
	return out
}

// missingGaps returns the gaps of a that b lacks, those of several systems as one. What is gone with its harness is not listed.
func missingGaps(a, b *content, gone bool) []Gap {
	have := make(map[lack]bool, len(b.lacks))
	for _, g := range b.lacks {
		have[g.respelled()] = true
	}
	out := []Gap{}
	at := map[lack]int{}
	for _, g := range a.lacks {
		if have[g.respelled()] || gone && g.harness != "" && !b.harnesses[g.harness] {
			continue
		}
		any := g
		any.os = ""
		i, ok := at[any]
		if !ok {
			i = len(out)
			at[any] = i
			out = append(out, Gap{Code: g.code, Harness: g.harness, Field: g.field, Message: g.message})
		}
		out[i].OS = append(out[i].OS, g.os)
	}
	for i := range out {
		slices.Sort(out[i].OS)
		out[i].OS = slices.Compact(out[i].OS)
	}
	slices.SortFunc(out, func(a, b Gap) int {
		return cmp.Or(strings.Compare(a.Harness, b.Harness), strings.Compare(a.Code, b.Code), strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message), slices.Compare(a.OS, b.OS))
	})
	return out
}

func (r *Report) notes(c *comparison) {
	for _, s := range []*Side{c.old, c.new} {
		if s.errors > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s has %s; what they touch is not known", s.Name.Name, count(s.errors, "error")))
		}
		if s.manifest != nil && !s.Judged {
			r.Notes = append(r.Notes, s.Name.Name+" is a release, and nothing of it was verified; halo release verify does that")
		}
	}
	if c.partial {
		r.Notes = append(r.Notes, "a release records its egress rules and its files, and no other setting: a file that changed in more than hosts counts as not known to be stricter",
			"a release does not say who is in a ring or unit")
	}
}
