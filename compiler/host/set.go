package host

import (
	"slices"
	"strings"
)

// Set is a compiled list of patterns. The zero-length set matches nothing.
//
// Short lists are scanned: building a map for a handful of patterns costs more than it saves, and thousands of small sets are compiled in one run.
type Set struct {
	patterns []Pattern
	exact    map[string]int32
	wild     map[string]int32
}

const scanned = 8

// NewSet compiles patterns; indexes in answers are those of ps, which the set keeps.
func NewSet(ps []Pattern) *Set {
	s := &Set{patterns: ps}
	if len(ps) <= scanned {
		return s
	}
	s.exact = make(map[string]int32, len(ps))
	s.wild = make(map[string]int32, 8)
	for i, p := range ps {
		m := s.exact
		if p.Wildcard() {
			m = s.wild
		}
		if _, ok := m[p.Suffix()]; !ok {
			m[p.Suffix()] = int32(i)
		}
	}
	return s
}

// Len returns the number of patterns.
func (s *Set) Len() int { return len(s.patterns) }

// Match returns the lowest index of a pattern that matches n.
func (s *Set) Match(n Name) (int, bool) {
	if s.exact == nil {
		for i, p := range s.patterns {
			if p.Matches(n) {
				return i, true
			}
		}
		return 0, false
	}
	best, ok := s.exact[string(n)]
	if len(s.wild) > 0 && !n.Literal() {
		for rest := string(n); ; {
			dot := strings.IndexByte(rest, '.')
			if dot < 0 {
				break
			}
			rest = rest[dot+1:]
			if i, hit := s.wild[rest]; hit && (!ok || i < best) {
				best, ok = i, true
			}
		}
	}
	return int(best), ok
}

// MatchAll returns the indexes of all patterns that match n, in list order.
func (s *Set) MatchAll(n Name) []int {
	var out []int
	for i, p := range s.patterns {
		if p.Matches(n) {
			out = append(out, i)
		}
	}
	return out
}

// Covers returns the lowest index of a pattern that covers p. One covering entry is always enough to look for: no union of patterns covers a wildcard.
func (s *Set) Covers(p Pattern) (int, bool) {
	if s.exact == nil {
		i := slices.IndexFunc(s.patterns, func(q Pattern) bool { return q.Covers(p) })
		return max(i, 0), i >= 0
	}
	var best int32
	ok := false
	take := func(i int32, hit bool) {
		if hit && (!ok || i < best) {
			best, ok = i, true
		}
	}
	rest := p.Suffix()
	if p.Wildcard() {
		i, hit := s.wild[rest]
		take(i, hit)
	} else {
		i, hit := s.exact[rest]
		take(i, hit)
	}
	for {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return int(best), ok
		}
		rest = rest[dot+1:]
		i, hit := s.wild[rest]
		take(i, hit)
	}
}
