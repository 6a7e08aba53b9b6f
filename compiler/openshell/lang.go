package openshell

import (
	"slices"
	"strings"
)

// runeSet is what one step of an automaton accepts.
type runeSet struct {
	class []runeRange
	not   bool
	// bar is a rune that is never accepted, 0 for none: wildcards stop at the separator.
	bar rune
}

func oneRune(r rune) runeSet { return runeSet{class: []runeRange{{r, r}}} }

var anyRune = runeSet{not: true}

func (s runeSet) has(r rune) bool {
	return (s.bar == 0 || r != s.bar) && inClass(s.class, r) != s.not
}

// automaton accepts the texts of one pattern. State 0 is the start, the last state accepts.
type automaton struct{ states []autoState }

type autoState struct {
	step  runeSet // to the next state, when steps
	steps bool
	loop  runeSet // back to this state, when loops
	loops bool
	skip  bool // to the next state without a rune
	skip2 bool // to the state after the next
}

func (a *automaton) read(s runeSet) { a.states = append(a.states, autoState{step: s, steps: true}) }

func (a *automaton) readText(s string) {
	for _, r := range s {
		a.read(oneRune(r))
	}
}

func (a *automaton) star(s runeSet) {
	a.states = append(a.states, autoState{loop: s, loops: true, skip: true})
}

func (a *automaton) end() { a.states = append(a.states, autoState{}) }

// automata returns one automaton per alternative of the pattern.
func (g *glob) automata() []automaton {
	if isLiteral(g) {
		var a automaton
		a.readText(g.literal)
		a.end()
		return []automaton{a}
	}
	inPart := runeSet{not: true, bar: rune(g.sep)}
	out := make([]automaton, len(g.alts))
	for i, alt := range g.alts {
		a := &out[i]
		if alt.everything {
			a.star(anyRune)
		}
		for k, p := range alt.parts {
			if p.kind == partDeep {
				// Zero or more parts, each with the separator in front: nothing, or a separator and anything.
				a.states = append(a.states, autoState{step: oneRune(rune(g.sep)), steps: true, skip2: true})
				a.star(anyRune)
				continue
			}
			if k > 0 {
				a.read(oneRune(rune(g.sep)))
			}
			switch p.kind {
			case partText:
				a.readText(p.text)
			case partAny:
				a.star(inPart)
			case partGlob:
				for _, e := range p.elems {
					switch e.kind {
					case elemText:
						a.readText(e.text)
					case elemStar:
						a.star(inPart)
					case elemOne:
						a.read(inPart)
					case elemClass:
						a.read(runeSet{class: e.class, not: e.not, bar: rune(g.sep)})
					}
				}
			}
		}
		a.end()
	}
	return out
}

// shape says which texts exist at all, so that a search does not end at a host or path nobody can send.
type shape struct {
	sep   rune
	lead  bool // the separator comes first
	trail bool // the separator may come last
	free  bool // any text exists
	dots  bool // a part is never . or ..
}

var (
	hostShape   = shape{sep: '.'}
	binaryShape = shape{sep: '/', lead: true}
	pathShape   = shape{sep: '/', lead: true, trail: true, dots: true}
)

// maxStates bounds a search. An unfinished search counts as "cannot tell".
const maxStates = 6000

// explore walks every set of patterns that one text can match at the same time and calls visit with that set (sorted indexes) and a shortest
// such text, until visit returns false. It reports false when it gave up.
func explore(patterns []*glob, sh shape, visit func(matched []int, witness string) bool) bool {
	automata := make([][]automaton, len(patterns))
	for i, g := range patterns {
		automata[i] = g.automata()
	}
	return exploreAutomata(automata, sh, visit)
}

func exploreAutomata(patterns [][]automaton, sh shape, visit func(matched []int, witness string) bool) bool {
	var e explorer
	for i, alternatives := range patterns {
		for _, a := range alternatives {
			for s := range a.states {
				e.states = append(e.states, a.states[s])
				e.owner = append(e.owner, int32(i))
				e.start = append(e.start, s == 0)
				e.final = append(e.final, s == len(a.states)-1)
			}
		}
	}
	var ok bool
	if e.alphabet, ok = alphabetOf(e.states, sh); !ok {
		return false
	}
	var first []int32
	for s, ok := range e.start {
		if ok {
			first = append(first, int32(s))
		}
	}
	type node struct {
		set    []int32
		parent int
		via    rune
		part   partSoFar
	}
	key := func(set []int32, part partSoFar) string {
		var b strings.Builder
		b.Grow(len(set)*3 + 1)
		b.WriteByte(byte(part))
		for _, s := range set {
			b.WriteByte(byte(s))
			b.WriteByte(byte(s >> 8))
			b.WriteByte(byte(s >> 16))
		}
		return b.String()
	}
	// Before the first rune a leading separator is the only choice, or no choice.
	nodes := []node{{set: e.close(first), parent: -1}}
	seen := map[string]bool{}
	word := func(n int) string {
		var rs []rune
		for ; n > 0; n = nodes[n].parent {
			rs = append(rs, nodes[n].via)
		}
		slices.Reverse(rs)
		return string(rs)
	}
	told := map[string]bool{}
	for n := 0; n < len(nodes); n++ {
		if len(nodes) > maxStates {
			return false
		}
		cur := nodes[n]
		if sh.free || n > 0 && (sh.trail || cur.part != partEmpty) && !(sh.dots && cur.part.isDots()) {
			matched := e.matched(cur.set)
			if k := key(matched32(matched), 0); len(matched) > 0 && !told[k] {
				told[k] = true
				if !visit(matched, word(n)) {
					return true
				}
			}
		}
		for _, r := range e.alphabet {
			isSep := r == sh.sep
			if !sh.free && (n == 0 && sh.lead != isSep || isSep && n > 0 && (cur.part == partEmpty || sh.dots && cur.part.isDots())) {
				continue
			}
			set := e.step(cur.set, r)
			if len(set) == 0 {
				continue
			}
			part := cur.part.next(r, isSep)
			k := key(set, part)
			if seen[k] {
				continue
			}
			seen[k] = true
			nodes = append(nodes, node{set, n, r, part})
		}
	}
	return true
}

// partSoFar is what a search must know of the part it is in.
type partSoFar byte

const (
	partEmpty partSoFar = iota
	partDot
	partDots
	partOther
)

func (p partSoFar) isDots() bool { return p == partDot || p == partDots }

func (p partSoFar) next(r rune, sep bool) partSoFar {
	switch {
	case sep:
		return partEmpty
	case r == '.' && p < partDots:
		return p + 1
	}
	return partOther
}

type explorer struct {
	states   []autoState
	owner    []int32
	start    []bool
	final    []bool
	alphabet []rune
	buf      []int32
}

func matched32(m []int) []int32 {
	out := make([]int32, len(m))
	for i, v := range m {
		out[i] = int32(v)
	}
	return out
}

// close adds the states that are reached without a rune; sets stay sorted.
func (e *explorer) close(set []int32) []int32 {
	slices.Sort(set)
	set = slices.Compact(set)
	for i := 0; i < len(set); i++ {
		s := e.states[set[i]]
		if s.skip {
			set = insert(set, set[i]+1)
		}
		if s.skip2 {
			set = insert(set, set[i]+2)
		}
	}
	return set
}

func insert(set []int32, v int32) []int32 {
	if i, ok := slices.BinarySearch(set, v); !ok {
		return slices.Insert(set, i, v)
	}
	return set
}

func (e *explorer) step(set []int32, r rune) []int32 {
	e.buf = e.buf[:0]
	for _, s := range set {
		st := &e.states[s]
		if st.loops && st.loop.has(r) {
			e.buf = append(e.buf, s)
		}
		if st.steps && st.step.has(r) {
			e.buf = append(e.buf, s+1)
		}
	}
	if len(e.buf) == 0 {
		return nil
	}
	return e.close(slices.Clone(e.buf))
}

func (e *explorer) matched(set []int32) []int {
	var out []int
	for _, s := range set {
		if e.final[s] && (len(out) == 0 || out[len(out)-1] != int(e.owner[s])) {
			out = append(out, int(e.owner[s]))
		}
	}
	return out
}

// alphabetOf returns one rune of each kind that the states can tell apart: every rune they name, its neighbours at the ends of ranges, and one
// that nobody names. It reports false when there is none of the last kind.
func alphabetOf(states []autoState, sh shape) ([]rune, bool) {
	rs := []rune{sh.sep}
	for _, s := range states {
		for _, set := range []runeSet{s.step, s.loop} {
			for _, c := range set.class {
				rs = append(rs, c.lo, c.hi)
				if c.lo != c.hi {
					rs = append(rs, c.lo-1, c.hi+1)
				}
			}
		}
	}
	slices.Sort(rs)
	rs = slices.Compact(rs)
	rs = slices.DeleteFunc(rs, func(r rune) bool { return r <= 0 || sh.dots && !canonicalRune(r) })
	// Letters and digits first, so that witnesses are names people recognise.
	for _, r := range "xyzabcdefghijklmnopqrstuvw0123456789XYZ_~\u0100" {
		if _, named := slices.BinarySearch(rs, r); !named && (!sh.dots || canonicalRune(r)) {
			return append([]rune{r}, rs...), true
		}
	}
	return nil, false
}

// canonicalRune reports whether a rune stands for itself in a canonical request path.
func canonicalRune(r rune) bool { return r == '/' || r < 0x80 && r != ';' && isPathByte(byte(r)) }

// overlap reports whether one text can match both patterns; it says yes when it cannot tell.
func overlap(a, b *glob, sh shape) bool {
	switch {
	case isLiteral(a):
		return b.match(a.literal)
	case isLiteral(b):
		return a.match(b.literal)
	}
	if ta, tb := a.tail(), b.tail(); !strings.HasSuffix(ta, tb) && !strings.HasSuffix(tb, ta) {
		return false
	}
	found := false
	done := explore([]*glob{a, b}, sh, func(m []int, _ string) bool {
		found = len(m) == 2
		return !found
	})
	return found || !done
}

// covers reports whether a matches everything that b matches; it says no when it cannot tell.
func covers(a, b *glob, sh shape) bool {
	switch {
	case isLiteral(b):
		return a.match(b.literal)
	case isLiteral(a):
		return false
	case !strings.HasSuffix(b.tail(), a.tail()) && !a.isEverything():
		return false
	}
	all := true
	done := explore([]*glob{a, b}, sh, func(m []int, _ string) bool {
		all = m[0] == 0 // b alone would come first
		return all
	})
	return all && done
}

// tail returns text that everything the pattern matches ends in.
func (g *glob) tail() string {
	if isLiteral(g) {
		return g.literal
	}
	if len(g.alts) == 1 {
		return g.alts[0].tail
	}
	return ""
}

func (g *glob) isEverything() bool { return len(g.alts) == 1 && g.alts[0].everything }

// representatives returns texts that stand for all texts: whatever set of the patterns a text matches, some representative matches the same set
// or the text matches none. ok is false when the search gave up.
func representatives(patterns []*glob, sh shape) (texts []string, ok bool) {
	in := make([]bool, len(patterns)) // patterns that need the search
	grew := false
	for i, g := range patterns {
		if suffix, deep := suffixForm(g); isLiteral(g) {
			texts = append(texts, g.literal)
		} else if suffix != "" && sh.sep == '.' {
			// Among names and patterns of the forms **.s and *.s a name is told by the longest s it ends in and whether one or more labels
			// stand in front.
			texts = append(texts, freshLabel+suffix)
			if deep {
				texts = append(texts, freshLabel+"."+freshLabel+suffix)
			}
		} else {
			in[i], grew = true, true
		}
	}
	for grew {
		grew = false
		for i, g := range patterns {
			for j := 0; j < len(patterns) && !in[i]; j++ {
				if in[j] && !isLiteral(patterns[j]) && overlap(g, patterns[j], sh) {
					in[i], grew = true, true
				}
			}
		}
	}
	var chosen []*glob
	for i, g := range patterns {
		if in[i] {
			chosen = append(chosen, g)
		}
	}
	ok = true
	if len(chosen) > 0 {
		ok = explore(chosen, sh, func(_ []int, w string) bool {
			texts = append(texts, w)
			return true
		})
	}
	slices.Sort(texts)
	return slices.Compact(texts), ok
}

// freshLabel is a label that no policy names.
const freshLabel = "any-name-0"

// suffixForm returns .s for the patterns *.s and **.s.
func suffixForm(g *glob) (suffix string, deep bool) {
	if len(g.alts) != 1 || g.alts[0].everything {
		return "", false
	}
	parts := g.alts[0].parts
	i := 0
	switch {
	case len(parts) > 2 && parts[0].kind == partAny && parts[1].kind == partDeep:
		i, deep = 2, true
	case len(parts) > 1 && parts[0].kind == partGlob && len(parts[0].elems) == 1 && parts[0].elems[0].kind == elemStar:
		i = 1
	default:
		return "", false
	}
	for _, p := range parts[i:] {
		if p.kind != partText {
			return "", false
		}
		suffix += "." + p.text
	}
	return suffix, deep
}
