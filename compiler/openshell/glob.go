package openshell

import (
	"errors"
	"strings"
)

// glob is a pattern of OpenShell's rule engine (regorus 0.9.1 over globset 0.4.18). A part is what stands between two separators. * is any run
// inside a part, ** as a whole part any number of parts, ? one character of a part; [a-c], [!a], {a,b} and \x as usual.
type glob struct {
	sep byte
	// literal is set, and alts empty, for a pattern that is plain text.
	literal string
	alts    []globAlt
}

// globAlt is one alternative of a pattern after its braces are expanded.
type globAlt struct {
	everything bool // the pattern **
	parts      []globPart
	tail       string // text that everything the alternative matches ends in
}

type globPart struct {
	kind  partKind
	elems []globElem
	text  string // kind partText
}

type partKind uint8

const (
	partText partKind = iota // exactly text
	partGlob                 // elems
	partAny                  // any one part
	partDeep                 // zero or more parts
)

type globElem struct {
	kind  elemKind
	text  string // elemText
	class []runeRange
	not   bool
}

type elemKind uint8

const (
	elemText elemKind = iota
	elemStar
	elemOne
	elemClass
)

type runeRange struct{ lo, hi rune }

// maxAlternatives bounds the braces of a pattern and how many patterns they may stand for.
const maxAlternatives = 64

// maxPattern bounds a pattern: no path longer than 4096 bytes reaches a rule, so that nobody needs a longer one, and the work of comparing patterns grows with it.
const maxPattern = 4096

var (
	errAlternatives = errors.New("it has more than 64 braces, or they stand for more than 64 patterns, which halo does not read")
	errLong         = errors.New("it is longer than 4096 bytes, which halo does not read")
)

// compileGlob compiles a pattern; the errors are those for which OpenShell's engine fails to evaluate.
func compileGlob(pattern string, sep byte) (*glob, error) {
	g := &glob{sep: sep}
	if !strings.ContainsAny(pattern, "*?[]{}\\") {
		g.literal = pattern
		return g, nil
	}
	switch {
	case len(pattern) > maxPattern:
		return nil, errLong
	case strings.Count(pattern, "{") > maxAlternatives:
		return nil, errAlternatives
	}
	steps := maxAlternatives * maxAlternatives
	expanded, err := expandBraces(pattern, &steps)
	if err != nil {
		return nil, err
	}
	for _, p := range expanded {
		alt, err := compileAlt(p, sep)
		if err != nil {
			return nil, err
		}
		g.alts = append(g.alts, alt)
	}
	return g, nil
}

// expandBraces writes {a,b} out. Escapes and classes are left alone; empty alternatives are dropped, as globset does by default. steps is how many more groups may be written
// out: groups that yield nothing would otherwise be tried without end.
func expandBraces(s string, steps *int) ([]string, error) {
	open := -1
	depth := 0
	var cuts []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			end := classEnd(s, i)
			if end < 0 {
				return nil, errors.New("[ has no ]")
			}
			i = end
		case '{':
			if depth == 0 {
				open = i
				cuts = []int{i}
			}
			depth++
		case ',':
			if depth == 1 {
				cuts = append(cuts, i)
			}
		case '}':
			if depth == 0 {
				return nil, errors.New("} has no {")
			}
			if depth--; depth > 0 {
				continue
			}
			cuts = append(cuts, i)
			var out []string
			for k := range len(cuts) - 1 {
				arm := s[cuts[k]+1 : cuts[k+1]]
				if arm == "" && len(cuts) > 2 {
					continue
				}
				if *steps--; *steps < 0 {
					return nil, errAlternatives
				}
				more, err := expandBraces(s[:open]+arm+s[i+1:], steps)
				if err != nil {
					return nil, err
				}
				if out = append(out, more...); len(out) > maxAlternatives {
					return nil, errAlternatives
				}
			}
			return out, nil
		}
	}
	if depth > 0 {
		return nil, errors.New("{ has no }")
	}
	return []string{s}, nil
}

// classEnd returns the index of the ] that closes the class at s[i], or -1. A ] right behind [ or [! is an ordinary character.
func classEnd(s string, i int) int {
	i++
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	if i >= len(s) {
		return -1
	}
	if n := strings.IndexByte(s[i:], ']'); n >= 0 {
		return i + n
	}
	return -1
}

func compileAlt(s string, sep byte) (globAlt, error) {
	if s == "**" {
		return globAlt{everything: true}, nil
	}
	var alt globAlt
	rest := s
	for first := true; ; first = false {
		elems, n, more, err := scanPart(rest, sep)
		if err != nil {
			return alt, err
		}
		switch {
		case rest[:n] == "**" && (first || !more):
			// At an end ** wants at least one part. Which of the two comes first does not matter.
			alt.parts = append(alt.parts, globPart{kind: partAny}, globPart{kind: partDeep})
		case rest[:n] == "**":
			alt.parts = append(alt.parts, globPart{kind: partDeep})
		case len(elems) == 0:
			alt.parts = append(alt.parts, globPart{})
		case len(elems) == 1 && elems[0].kind == elemText:
			alt.parts = append(alt.parts, globPart{text: elems[0].text})
		default:
			alt.parts = append(alt.parts, globPart{kind: partGlob, elems: elems})
		}
		if !more {
			break
		}
		rest = rest[n+1:]
	}
	alt.tail = tailOf(alt.parts, sep)
	return alt, nil
}

// scanPart reads up to the next separator outside a class or escape; n is its length in s.
func scanPart(s string, sep byte) (elems []globElem, n int, more bool, err error) {
	var text []byte
	flush := func() {
		if len(text) > 0 {
			elems = append(elems, globElem{text: string(text)})
			text = text[:0]
		}
	}
	i := 0
	for ; i < len(s) && s[i] != sep; i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return nil, 0, false, errors.New("it ends in \\")
			}
			text = append(text, s[i])
		case '*':
			flush()
			if len(elems) == 0 || elems[len(elems)-1].kind != elemStar {
				elems = append(elems, globElem{kind: elemStar})
			}
		case '?':
			flush()
			elems = append(elems, globElem{kind: elemOne})
		case '[':
			end := classEnd(s, i)
			if end < 0 {
				return nil, 0, false, errors.New("[ has no ]")
			}
			e, err := parseClass(s[i+1 : end])
			if err != nil {
				return nil, 0, false, err
			}
			flush()
			elems = append(elems, e)
			i = end
		default:
			text = append(text, s[i])
		}
	}
	flush()
	return elems, i, i < len(s), nil
}

func parseClass(s string) (globElem, error) {
	e := globElem{kind: elemClass}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		e.not, s = true, s[1:]
	}
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		r := runeRange{rs[i], rs[i]}
		if i+2 < len(rs) && rs[i+1] == '-' {
			r.hi = rs[i+2]
			i += 2
			if r.hi < r.lo {
				return e, errors.New("a range in [ ] runs backwards")
			}
		}
		e.class = append(e.class, r)
	}
	return e, nil
}

// tailOf returns the text behind the last wildcard.
func tailOf(parts []globPart, sep byte) string {
	tail := ""
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		if p.kind == partText {
			if tail = p.text + tail; i > 0 {
				tail = string(sep) + tail
			}
			// A ** in front takes the separator with it only when it stands for parts: /**/x matches /x, too.
			continue
		}
		if p.kind == partGlob {
			if last := p.elems[len(p.elems)-1]; last.kind == elemText {
				tail = last.text + tail
			}
		}
		break
	}
	return tail
}

// match reports whether the pattern matches s.
func (g *glob) match(s string) bool {
	if g.alts == nil {
		return s == g.literal
	}
	for i := range g.alts {
		if g.alts[i].match(s, g.sep) {
			return true
		}
	}
	return false
}

// match compares part by part. Parts match independently of each other, so going back to the last ** alone is enough.
func (a *globAlt) match(s string, sep byte) bool {
	if a.everything {
		return true
	}
	if !strings.HasSuffix(s, a.tail) {
		return false
	}
	const done = -1 // behind the last part of s
	pos, k := 0, 0
	backPos, backK := 0, -1
	for {
		if k < len(a.parts) && a.parts[k].kind == partDeep {
			backPos, backK = pos, k
			k++
			continue
		}
		if pos == done && k == len(a.parts) {
			return true
		}
		if pos != done && k < len(a.parts) {
			end := strings.IndexByte(s[pos:], sep)
			next := pos + end + 1
			if end < 0 {
				end, next = len(s)-pos, done
			}
			if a.parts[k].match(s[pos : pos+end]) {
				pos = next
				k++
				continue
			}
		}
		if backK < 0 || backPos == done {
			return false
		}
		if end := strings.IndexByte(s[backPos:], sep); end < 0 {
			backPos = done
		} else {
			backPos += end + 1
		}
		pos, k = backPos, backK+1
	}
}

func (p *globPart) match(s string) bool {
	switch p.kind {
	case partText:
		return s == p.text
	case partAny:
		return true
	}
	return matchElems(p.elems, s)
}

// matchElems matches inside a part. Going back to the last star alone is enough.
func matchElems(elems []globElem, s string) bool {
	pos, k := 0, 0
	backPos, backK := 0, -1
	for {
		if k < len(elems) && elems[k].kind == elemStar {
			backPos, backK = pos, k
			k++
			continue
		}
		if pos == len(s) && k == len(elems) {
			return true
		}
		if k < len(elems) {
			if n := elems[k].consume(s[pos:]); n > 0 {
				pos += n
				k++
				continue
			}
		}
		if backK < 0 || backPos == len(s) {
			return false
		}
		backPos += firstRune(s[backPos:])
		pos, k = backPos, backK+1
	}
}

// consume returns how many bytes at the start of s the element takes, 0 for no match.
func (e *globElem) consume(s string) int {
	switch e.kind {
	case elemText:
		if strings.HasPrefix(s, e.text) {
			return len(e.text)
		}
	case elemOne:
		return firstRune(s)
	case elemClass:
		for i, r := range s {
			if i > 0 {
				break
			}
			if inClass(e.class, r) != e.not {
				return firstRune(s)
			}
		}
	}
	return 0
}

func firstRune(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

func inClass(class []runeRange, r rune) bool {
	for _, c := range class {
		if r >= c.lo && r <= c.hi {
			return true
		}
	}
	return false
}

// hostPattern compiles the host of an endpoint: without a star it is plain text, whatever else it holds; case is ignored.
func hostPattern(host string) (*glob, error) { return starGlob(lower(host), '.') }

// binaryPattern compiles the path of a binary: without a star it is plain text.
func binaryPattern(path string) (*glob, error) { return starGlob(path, '/') }

func starGlob(pattern string, sep byte) (*glob, error) {
	if !strings.Contains(pattern, "*") {
		return &glob{sep: sep, literal: pattern}, nil
	}
	return compileGlob(pattern, sep)
}

// lower lower-cases ASCII letters without an allocation when there is none.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' || c >= 0x80 {
			return strings.ToLower(s)
		}
	}
	return s
}

func isLiteral(g *glob) bool { return g.alts == nil }
