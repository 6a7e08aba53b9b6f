package host

import "strings"

// small is the size up to which a set is searched from front to back: building an index costs more than it saves.
const small = 8

// Set is an ordered list of patterns, built once and matched often. It never changes and is safe for concurrent use. A nil Set is empty.
type Set struct {
	patterns []Pattern
	index    map[string]slot // nil for a small set
}

// slot holds, for one name, 1 + the lowest index of the exact pattern and of the wildcard with that name; 0 is none.
type slot struct{ exact, wild int32 }

// NewSet returns the set of patterns in their order. It keeps ps, which must not change afterwards. Invalid patterns match nothing.
func NewSet(ps []Pattern) *Set {
	s := &Set{patterns: ps}
	if len(ps) <= small {
		return s
	}
	s.index = make(map[string]slot, len(ps))
	for i, p := range ps {
		if !p.IsValid() {
			continue
		}
		e := s.index[p.name]
		if p.wild && e.wild == 0 {
			e.wild = int32(i + 1)
		} else if !p.wild && e.exact == 0 {
			e.exact = int32(i + 1)
		}
		s.index[p.name] = e
	}
	return s
}

// Len returns the number of patterns, repetitions counted.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.patterns)
}

// At returns the pattern with the given index.
func (s *Set) At(i int) Pattern { return s.patterns[i] }

// Match returns the lowest index of a pattern that matches n.
func (s *Set) Match(n Name) (first int, ok bool) {
	if s == nil {
		return -1, false
	}
	if s.index != nil {
		e := s.index[string(n)]
		return s.lowest(e.exact, string(n))
	}
	for i, p := range s.patterns {
		if p.Matches(n) {
			return i, true
		}
	}
	return -1, false
}

// MatchAll returns the indexes of all patterns that match n, in list order.
func (s *Set) MatchAll(n Name) []int {
	if s == nil {
		return nil
	}
	var out []int
	for i, p := range s.patterns {
		if p.Matches(n) {
			out = append(out, i)
		}
	}
	return out
}

// Covers returns the lowest index of a pattern that covers p. One pattern is always enough to look for: every wildcard matches more
// names than any number of exact names and narrower wildcards, short of names at the length limit.
func (s *Set) Covers(p Pattern) (int, bool) {
	if s == nil || !p.IsValid() {
		return -1, false
	}
	if s.index != nil {
		e := s.index[p.name]
		if p.wild {
			return s.lowest(e.wild, p.name)
		}
		return s.lowest(e.exact, p.name)
	}
	for i, q := range s.patterns {
		if q.Covers(p) {
			return i, true
		}
	}
	return -1, false
}

// lowest returns the lowest of a slot (1 + index, 0 for none) and of all wildcards above name.
func (s *Set) lowest(best int32, name string) (int, bool) {
	for {
		dot := strings.IndexByte(name, '.')
		if dot < 0 {
			return int(best) - 1, best != 0
		}
		name = name[dot+1:]
		if w := s.index[name].wild; w != 0 && (best == 0 || w < best) {
			best = w
		}
	}
}
