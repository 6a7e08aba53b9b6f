// Package host parses and compares host names and host patterns. Nothing else in halo compares host names.
//
// A pattern is an exact name ("github.com", which matches only itself) or a wildcard ("*.github.com", which matches every subdomain
// at any depth and never github.com). A name is what a pattern is matched against: a host in canonical spelling, or an IP address.
package host

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	// maxName and maxLabel are the limits of a name in text form without its root dot, in octets (RFC 1035 section 2.3.4, RFC 1123 section 2.1).
	maxName  = 253
	maxLabel = 63
)

// Pattern is a parsed host pattern. Values compare with ==. The zero Pattern is invalid and matches nothing.
type Pattern struct {
	name string // the name, or for a wildcard the name below which everything matches
	wild bool
}

// Problem says why a text is not a pattern.
type Problem struct {
	// Reason completes the sentence `"TEXT" …`.
	Reason string
	// Hint is the corrected spelling, a pattern that parses, when there is only one that can be meant; else empty.
	Hint string
}

// ParsePattern parses one entry of an allow list: lower-case labels of letters, digits and hyphens, at least two of them (localhost
// excepted), the last starting with a letter, with an optional leading "*." over at least two labels.
func ParsePattern(s string) (Pattern, *Problem) { return parse(s, false) }

// ParseDenyPattern parses one entry of a deny list: the grammar of ParsePattern, and also a wildcard over a whole top-level domain
// ("*.zip"), which is too broad to allow but sound to deny.
func ParseDenyPattern(s string) (Pattern, *Problem) { return parse(s, true) }

// String returns the pattern as written in a policy.
func (p Pattern) String() string {
	if p.wild {
		return "*." + p.name
	}
	return p.name
}

// IsValid reports whether p was parsed, that is, is not the zero Pattern.
func (p Pattern) IsValid() bool { return p.name != "" }

// Wildcard reports whether p starts with "*.".
func (p Pattern) Wildcard() bool { return p.wild }

// Suffix returns the name without a leading "*.".
func (p Pattern) Suffix() string { return p.name }

// Compare orders patterns by name from the last label to the first, an exact name before the wildcard over it.
func (p Pattern) Compare(q Pattern) int {
	a, b := p.name, q.name
	for a != "" && b != "" {
		var la, lb string
		a, la = cutLast(a)
		b, lb = cutLast(b)
		if c := strings.Compare(la, lb); c != 0 {
			return c
		}
	}
	switch {
	case a != "":
		return 1
	case b != "":
		return -1
	case p.wild == q.wild:
		return 0
	case p.wild:
		return 1
	}
	return -1
}

// Matches reports whether p matches the name n.
func (p Pattern) Matches(n Name) bool {
	if p.wild {
		return isBelow(string(n), p.name)
	}
	return p.name != "" && p.name == string(n)
}

// Covers reports whether p matches every name that q matches.
func (p Pattern) Covers(q Pattern) bool {
	switch {
	case !p.IsValid() || !q.IsValid():
		return false
	case !p.wild:
		return p == q
	case q.wild && p.name == q.name:
		return true
	}
	return isBelow(q.name, p.name)
}

// Example returns a name that p matches: the name itself, or the shortest first subdomain of a wildcard. See Witness for a name
// that some other patterns do not match.
func (p Pattern) Example() Name {
	if p.wild {
		return Name("a." + p.name)
	}
	return Name(p.name)
}

// Witness returns a name that p matches and that no set of avoid matches, as proof that p reaches further than they do. It reports
// false when they cover p.
func (p Pattern) Witness(avoid ...*Set) (Name, bool) {
	limit := 1
	for _, s := range avoid {
		if _, ok := s.Covers(p); ok {
			return "", false
		}
		limit += s.Len()
	}
	if !p.wild {
		return Name(p.name), p.IsValid()
	}
	// No wildcard of avoid covers p, so only exact names can stand in the way, each of at most one candidate.
	for i := range limit {
		n := Name(label(i) + "." + p.name)
		if len(n) > maxName {
			break
		}
		if !matchesAny(avoid, n) {
			return n, true
		}
	}
	return "", false
}

func matchesAny(sets []*Set, n Name) bool {
	for _, s := range sets {
		if _, ok := s.Match(n); ok {
			return true
		}
	}
	return false
}

// label enumerates short labels: a to z, 0 to 9, then aa, ab, and so on, all different.
func label(i int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	if i < len(alphabet) {
		return alphabet[i : i+1]
	}
	return label(i/len(alphabet)-1) + alphabet[i%len(alphabet):i%len(alphabet)+1]
}

// isBelow reports whether name is a proper subdomain of suffix.
func isBelow(name, suffix string) bool {
	n := len(name) - len(suffix)
	return suffix != "" && n > 1 && name[n-1] == '.' && name[n:] == suffix
}

// cutLast returns a name without its last label, and that label.
func cutLast(name string) (rest, last string) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

func parse(s string, deny bool) (Pattern, *Problem) {
	p := Pattern{name: s}
	if strings.HasPrefix(s, "*.") {
		p = Pattern{name: s[2:], wild: true}
	}
	reason := ""
	if !wellFormed(p.name) || len(s) > maxName {
		reason = explain(s, deny)
	} else {
		reason = p.judge(deny)
	}
	if reason == "" {
		return p, nil
	}
	return Pattern{}, &Problem{Reason: reason, Hint: repair(s, deny)}
}

// judge names what is wrong with a pattern whose characters and labels are in order.
func (p Pattern) judge(deny bool) string {
	_, last := cutLast(p.name)
	switch dotless := last == p.name; {
	case last[0] < 'a':
		if _, err := netip.ParseAddr(p.name); err == nil {
			return "is not a host name: it is an IP address, and egress lists take names only"
		}
		return fmt.Sprintf("is not a host name: its last label %q starts with a digit", last)
	case dotless && p.wild && !deny:
		return fmt.Sprintf("is too broad: its wildcard opens the whole top-level domain %q", last)
	case dotless && !p.wild && last != "localhost":
		return "is not a host name: it has one label, and at least two are wanted (localhost excepted)"
	}
	for l := range strings.SplitSeq(p.name, ".") {
		if !strings.HasPrefix(l, "xn--") {
			continue
		}
		if u, err := idna.Lookup.ToUnicode(l); err != nil || u == l {
			return fmt.Sprintf("is not a host name: its label %q does not decode to an internationalised name", l)
		}
	}
	return ""
}

// wellFormed reports whether s consists of lower-case labels of letters, digits and inner hyphens, of legal lengths.
func wellFormed(s string) bool {
	start := 0
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		case c == '-':
			if i == start {
				return false
			}
		case c == '.':
			if !labelEnds(s, start, i) {
				return false
			}
			start = i + 1
		default:
			return false
		}
	}
	return labelEnds(s, start, len(s)) && len(s) <= maxName
}

func labelEnds(s string, start, end int) bool {
	return end > start && end-start <= maxLabel && s[end-1] != '-'
}

// explain says which rule of the grammar s breaks first. It is called for texts that break one.
func explain(s string, deny bool) string {
	const not = "is not a host name: "
	if s == "" {
		return "is empty; a host name is wanted"
	}
	if s == "*" {
		if deny {
			return `is a bare "*"; to deny every host, write egress.default: deny`
		}
		return `is a bare "*"; to allow every host, write egress.default: allow`
	}
	if r, what := oddRune(s); what != "" {
		return fmt.Sprintf(not+"it has %s %U", what, r)
	}
	if strings.ContainsAny(s, " \t\r\n") {
		return not + "it has a blank"
	}
	if scheme, _, ok := strings.Cut(s, "://"); ok {
		return fmt.Sprintf(not+"it has a scheme (drop %q)", scheme+"://")
	}
	if strings.Contains(s, `\`) {
		return not + "it has a backslash"
	}
	if _, err := netip.ParsePrefix(s); err == nil {
		return not + "it is an address range, and egress lists take names only"
	}
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return not + "it is an IP address, and egress lists take names only"
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return fmt.Sprintf(not+"it has a path (drop %q)", s[i:])
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return fmt.Sprintf(not+"it has a user name (drop %q)", s[:i+1])
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		return fmt.Sprintf(not+"it has a port (drop %q)", s[i:])
	}
	if strings.Contains(strings.TrimPrefix(s, "*."), "*") {
		return `is not a host pattern: a wildcard is one "*." at the front, and it matches subdomains at any depth`
	}
	if r, ok := firstNonASCII(s); ok {
		return fmt.Sprintf(not+"it has the non-ASCII character %q (%U); write the xn-- form", r, r)
	}
	if s != lower(s) {
		return "is not in lower case"
	}
	if strings.HasPrefix(s, ".") {
		return fmt.Sprintf(not+"it starts with a dot (write %q for the subdomains, %q for the host itself)", "*"+s, strings.TrimLeft(s, "."))
	}
	if strings.HasSuffix(s, ".") {
		return not + "it ends with a dot"
	}
	if strings.Contains(s, "..") {
		return not + "it has an empty label between two dots"
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-.*", r)) }); i >= 0 {
		return fmt.Sprintf(not+"it has the character %q, and labels take letters, digits and hyphens", s[i:i+1])
	}
	for l := range strings.SplitSeq(s, ".") {
		if len(l) > maxLabel {
			return fmt.Sprintf(not+"a label has %d characters, and %d is the most", len(l), maxLabel)
		}
		if strings.HasPrefix(l, "-") || strings.HasSuffix(l, "-") {
			return fmt.Sprintf(not+"its label %q starts or ends with a hyphen", l)
		}
	}
	return fmt.Sprintf(not+"it has %d characters, and %d is the most", len(s), maxName)
}

// oddRune returns the first character of s that no spelling of a host name can hold, and what it is.
func oddRune(s string) (rune, string) {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return rune(s[i]), "a byte that is not UTF-8,"
		}
		if r < ' ' && r != '\t' && r != '\r' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return r, "the control character"
		}
	}
	return 0, ""
}

func firstNonASCII(s string) (rune, bool) {
	for _, r := range s {
		if r >= utf8.RuneSelf {
			return r, true
		}
	}
	return 0, false
}

// lower lowers ASCII letters only: other letters are not ours to change.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// repair returns the one pattern that s can only mean, or "".
func repair(s string, deny bool) string {
	t := strings.TrimSpace(s)
	if _, rest, ok := strings.Cut(t, "://"); ok {
		t = rest
	}
	if strings.ContainsAny(t, "@\\") {
		return ""
	}
	if i := strings.IndexAny(t, "/?#"); i >= 0 {
		t = t[:i]
	}
	if host, port, ok := strings.Cut(t, ":"); ok && strings.Trim(port, "0123456789") == "" {
		t = host
	}
	t = lower(strings.TrimSuffix(t, "."))
	if rest, ok := strings.CutPrefix(t, "**."); ok {
		t = "*." + rest
	}
	if _, ok := firstNonASCII(t); ok {
		// Only a spelling that comes back unchanged is certain: a full-width letter, for one, maps to another text.
		a, err := idna.Lookup.ToASCII(strings.TrimPrefix(t, "*."))
		if err != nil {
			return ""
		}
		if u, err := idna.Lookup.ToUnicode(a); err != nil || u != strings.TrimPrefix(t, "*.") {
			return ""
		}
		t = t[:len(t)-len(strings.TrimPrefix(t, "*."))] + a
	}
	if t == s {
		return ""
	}
	p := Pattern{name: strings.TrimPrefix(t, "*.")}
	p.wild = p.name != t
	if !wellFormed(p.name) || len(t) > maxName || p.judge(deny) != "" {
		return ""
	}
	return t
}
