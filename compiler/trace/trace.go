// Package trace walks from a line of a rendered file back to what produced it. It asks the renderer itself: a line depends on a part of the policy when the
// file rendered without that part does not say what the line says. So no renderer keeps books, and none can keep wrong ones.
package trace

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness"
)

// Input is what was rendered and how.
type Input struct {
	Target harness.Target
	// Harness is the id of the harness, whose pinned version is a part like any other.
	Harness string
	Render  func(harness.Target) ([]harness.File, []harness.Gap)
	// Beside are the parts of a rendering that are not in the effective policy.
	Beside []Beside
}

// Beside is a part of a rendering that is not in the effective policy, such as the gateway. Drop takes it out of a target, whose policy is a copy.
type Beside struct {
	Key, Value string
	Pos        diag.Pos
	Drop       func(*harness.Target)
}

// Cause is a part that a line depends on.
type Cause struct {
	// Key names the field or the entry, Value is what it says, empty for a whole list.
	Key, Value string
	// Pos are the places it was written at: one, or for a whole list the first in each document.
	Pos []diag.Pos
	// Field and Entry name the part in the model; Entry is -1 for a whole field.
	Field string
	Entry int
}

// Part is what a line says, or one of the things it says, with what that depends on.
type Part struct {
	// Texts are the values, keys or lines with these causes, Pointer the place in the document.
	Texts   []string
	Pointer string
	// Needs are the causes without each of which the line would not say so.
	Needs []Cause
	// AnyOf is set when Needs are not enough: each of these sets is, together with them.
	AnyOf [][]Cause
	// Constant is set when the line says so whatever the policy says. Whole is set when several causes are each enough, and the same as for the file itself: the line is in
	// every rendering of the file.
	Constant, Whole bool
}

// Line is a line of a rendered file. A blank line has no parts. Closes is the number of the line that opened the object or list that this line closes, else 0.
type Line struct {
	Number int
	Text   string
	Closes int
	Parts  []Part
}

// File is a rendered file, traced.
type File struct {
	Dest  string
	Lines []Line
}

// Lines traces the lines of the rendered files for which want answers true; the others are left out.
func Lines(in Input, want func(dest string, number int, text string) bool) []File {
	t := newTracer(in)
	files, _ := in.Render(in.Target)
	out := make([]File, len(files))
	byLine := make([]map[int][]fact, len(files))
	for i, f := range files {
		out[i].Dest = f.Dest
		byLine[i] = map[int][]fact{}
		for _, x := range facts(f) {
			byLine[i][x.line] = append(byLine[i][x.line], x)
		}
		for n, text := range strings.Split(strings.TrimSuffix(string(f.Content), "\n"), "\n") {
			if len(f.Content) == 0 || !want(f.Dest, n+1, text) {
				continue
			}
			out[i].Lines = append(out[i].Lines, Line{Number: n + 1, Text: text})
			t.ask(f.Dest)
			for _, x := range byLine[i][n+1] {
				t.ask(x.id)
			}
		}
	}
	if len(t.asked) == 0 {
		return out
	}
	t.findNeeds()
	for i := range out {
		if len(out[i].Lines) == 0 {
			continue
		}
		file := t.part(fact{id: out[i].Dest})
		for j := range out[i].Lines {
			l := &out[i].Lines[j]
			for _, x := range byLine[i][l.Number] {
				l.Closes = max(l.Closes, x.closes)
				p := t.part(x)
				p.Whole = len(p.AnyOf) > 0 && p.sameCauses(&file)
				l.add(p)
			}
		}
	}
	return out
}

// ask makes a fact one that is asked for.
func (t *tracer) ask(id string) {
	if _, ok := t.asked[id]; !ok {
		t.asked[id] = len(t.asked)
	}
}

// add adds a part to a line; parts with the same causes are one.
func (l *Line) add(p Part) {
	for i := range l.Parts {
		q := &l.Parts[i]
		if q.Pointer == p.Pointer && q.Constant == p.Constant && q.sameCauses(&p) {
			q.Texts = append(q.Texts, p.Texts...)
			return
		}
	}
	l.Parts = append(l.Parts, p)
}

func (p *Part) sameCauses(q *Part) bool {
	same := func(a, b []Cause) bool {
		return slices.EqualFunc(a, b, func(x, y Cause) bool { return x.Key == y.Key })
	}
	return same(p.Needs, q.Needs) && slices.EqualFunc(p.AnyOf, q.AnyOf, same)
}

// field is a part of the input that can be left out, with the values of its entries.
type field struct {
	key    string
	values []effective.Value
	// entries is the number of entries, 0 for what has none.
	entries int
	drop    func(*harness.Target)
}

// tracer answers for the facts that are asked for, by their number.
type tracer struct {
	in     Input
	fields []field
	// index has the number of a field by its key.
	index map[string]int
	asked map[string]int
	// answers remembers which asked facts are said without a set of parts.
	answers map[string][]bool
	// needs are the fields that each fact needs, and entries the entry of a field that a fact needs.
	needs   [][]int
	entries []map[int]int
}

func newTracer(in Input) *tracer {
	t := &tracer{in: in, index: map[string]int{}, asked: map[string]int{}, answers: map[string][]bool{}}
	own := "harnesses." + in.Harness + "."
	for _, v := range effective.Values(in.Target.Policy) {
		if strings.HasPrefix(v.Field, "harnesses.") && !strings.HasPrefix(v.Field, own) {
			continue
		}
		if n := len(t.fields); n == 0 || t.fields[n-1].key != v.Field {
			t.fields = append(t.fields, field{key: v.Field})
		}
		f := &t.fields[len(t.fields)-1]
		f.values = append(f.values, v)
		f.entries = max(f.entries, v.Entry+1)
	}
	for i := range t.fields {
		f := &t.fields[i]
		if f.key == own+"overrides" {
			// The entries of overrides are their keys, by their dotted path.
			f.values = nil
			for j, k := range in.Target.Policy.Pin(in.Harness).OverrideKeys {
				f.values = append(f.values, effective.Value{Key: f.key + "." + k.Key.V, Value: k.Value.V, Pos: k.Key.Pos, Field: f.key, Entry: j})
			}
			f.entries = len(f.values)
		}
		if f.key == own+"version" {
			// The version is rendered, and it decides which keys are.
			f.drop = func(t *harness.Target) { t.Version.Patch++ }
		}
	}
	for _, b := range in.Beside {
		t.fields = append(t.fields, field{key: b.Key, values: []effective.Value{{Key: b.Key, Value: b.Value, Pos: b.Pos, Field: b.Key, Entry: -1}}, drop: b.Drop})
	}
	for i := range t.fields {
		t.index[t.fields[i].key] = i
	}
	return t
}

// half is a set of entries of one field: those whose index has a bit set, or has not. The zero value is none.
type half struct {
	field, bit, side int
	on               bool
}

func (h half) has(field, entry int) bool {
	return h.on && field == h.field && entry>>h.bit&1 == h.side
}

// said tells which asked facts the files say that are rendered without some whole fields and some entries of one field.
func (t *tracer) said(gone []bool, h half) []bool {
	key := make([]byte, len(gone), len(gone)+16)
	for i, g := range gone {
		key[i] = '.'
		if g {
			key[i] = 'x'
		}
	}
	if h.on {
		key = fmt.Appendf(key, "%d %d %d", h.field, h.bit, h.side)
	}
	if s, ok := t.answers[string(key)]; ok {
		return s
	}
	target := t.in.Target
	target.Policy = target.Policy.Without(func(key string, entry int) bool {
		i, ok := t.index[key]
		return ok && (entry < 0 && gone[i] || entry >= 0 && h.has(i, entry))
	})
	for i := range t.fields {
		if f := &t.fields[i]; f.drop != nil && gone[i] {
			f.drop(&target)
		}
	}
	files, _ := t.in.Render(target)
	s := make([]bool, len(t.asked))
	say := func(id string) {
		if i, ok := t.asked[id]; ok {
			s[i] = true
		}
	}
	for _, f := range files {
		// That there is a file is a fact too, by its destination.
		say(f.Dest)
		for _, x := range facts(f) {
			say(x.id)
		}
	}
	t.answers[string(key)] = s
	return s
}

// findNeeds finds the fields that each asked fact needs, and the entry of a list where one entry is what it needs.
func (t *tracer) findNeeds() {
	t.needs, t.entries = make([][]int, len(t.asked)), make([]map[int]int, len(t.asked))
	gone := make([]bool, len(t.fields))
	for f := range t.fields {
		gone[f] = true
		said := t.said(gone, half{})
		gone[f] = false
		var lost []int
		for i, ok := range said {
			if !ok {
				t.needs[i] = append(t.needs[i], f)
				lost = append(lost, i)
			}
		}
		if len(lost) == 0 {
			continue
		}
		for i, entry := range t.needed(f, gone, lost) {
			if t.entries[i] == nil {
				t.entries[i] = map[int]int{}
			}
			t.entries[i][f] = entry
		}
	}
}

// needed finds the one entry of a list that each fact needs, with some fields gone. It leaves out the half of the entries whose index has a bit set, then the half
// whose index has not, for every bit: a fact that needs one entry is lost in one of the two, and the bits spell the index. A fact that needs none by itself, or
// several, is not answered for.
func (t *tracer) needed(f int, gone []bool, ids []int) map[int]int {
	n := t.fields[f].entries
	if n == 0 {
		return nil
	}
	found := make(map[int]int, len(ids))
	for _, id := range ids {
		found[id] = 0
	}
	if n == 1 {
		said := t.said(gone, half{field: f, on: true})
		maps.DeleteFunc(found, func(id, _ int) bool { return said[id] })
		return found
	}
	for b := range bits.Len(uint(n - 1)) {
		unset, set := t.said(gone, half{f, b, 0, true}), t.said(gone, half{f, b, 1, true})
		for id := range found {
			if unset[id] == set[id] {
				delete(found, id)
			} else if !set[id] {
				found[id] |= 1 << b
			}
		}
	}
	maps.DeleteFunc(found, func(_, entry int) bool { return entry >= n })
	return found
}

// part says what a fact depends on.
func (t *tracer) part(x fact) Part {
	p := Part{Texts: []string{x.text}, Pointer: x.pointer}
	id := t.asked[x.id]
	needs := t.needs[id]
	for _, f := range needs {
		entry, ok := t.entries[id][f]
		p.Needs = append(p.Needs, t.cause(f, entry, ok, x.text))
	}
	if len(needs) > 0 && t.said(t.allBut(needs), half{})[id] {
		return p
	}
	// What is needed is not enough, or nothing is: sets that are enough together with it are taken away one after the other until nothing says it any more.
	gone := make([]bool, len(t.fields))
	for t.said(gone, half{})[id] {
		kept := t.enough(id, gone)
		alone := t.allBut(kept)
		kept = slices.DeleteFunc(kept, func(f int) bool { return slices.Contains(needs, f) })
		if len(kept) == 0 {
			p.Constant = len(p.Needs) == 0 && len(p.AnyOf) == 0
			break
		}
		var set []Cause
		for _, f := range kept {
			entry, ok := t.needed(f, alone, []int{id})[id]
			set = append(set, t.cause(f, entry, ok, x.text))
			gone[f] = true
		}
		p.AnyOf = append(p.AnyOf, set)
	}
	return p
}

// allBut is every field but some.
func (t *tracer) allBut(kept []int) []bool {
	gone := slices.Repeat([]bool{true}, len(t.fields))
	for _, f := range kept {
		gone[f] = false
	}
	return gone
}

// enough returns a set of fields, of those that are not gone, that is enough for a fact and of which no field can be left out.
func (t *tracer) enough(id int, gone []bool) []int {
	without := slices.Clone(gone)
	var kept []int
	for again := true; again; {
		again = t.shrink(id, without, 0, len(t.fields))
		kept = kept[:0]
		for f := range t.fields {
			if !without[f] {
				kept = append(kept, f)
			}
		}
	}
	return kept
}

// shrink leaves out what it can of the fields in a range, all at once or else half by half, the last ones first, and reports whether it left out any.
func (t *tracer) shrink(id int, without []bool, from, to int) bool {
	left := make([]int, 0, to-from)
	for f := from; f < to; f++ {
		if !without[f] {
			left = append(left, f)
			without[f] = true
		}
	}
	if len(left) == 0 {
		return false
	}
	if t.said(without, half{})[id] {
		return true
	}
	for _, f := range left {
		without[f] = false
	}
	if to-from == 1 {
		return false
	}
	middle := (from + to) / 2
	last := t.shrink(id, without, middle, to)
	return t.shrink(id, without, from, middle) || last
}

// cause names a field, or the entry of it that counts. text is what the line says: of the values of an entry, the one that it says is named.
func (t *tracer) cause(f, entry int, isEntry bool, text string) Cause {
	x := &t.fields[f]
	if x.entries == 0 || !isEntry {
		c := Cause{Key: x.key, Field: x.key, Entry: -1}
		if x.entries == 0 {
			c.Value = x.values[0].Value
		}
		for _, v := range x.values {
			if !slices.ContainsFunc(c.Pos, func(p diag.Pos) bool { return p.File() == v.Pos.File() }) {
				c.Pos = append(c.Pos, v.Pos)
			}
		}
		return c
	}
	// Values are in the order of their entries.
	from, _ := slices.BinarySearchFunc(x.values, entry, func(v effective.Value, entry int) int { return v.Entry - entry })
	to := from + 1
	for to < len(x.values) && x.values[to].Entry == entry {
		to++
	}
	v := x.values[from]
	if own := x.values[from:to]; len(own) > 1 {
		v.Key = x.key + "[" + strconv.Itoa(entry) + "]"
		said := 0
		for _, o := range own {
			if n := len(o.Value); n > said && strings.Contains(text, o.Value) {
				v, said = o, n
			}
		}
	}
	return Cause{Key: v.Key, Value: v.Value, Pos: []diag.Pos{v.Pos}, Field: x.key, Entry: entry}
}
