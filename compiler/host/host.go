// Package host is the only place that reads, compares and matches host names and host patterns.
package host

import (
	"strconv"
	"strings"
)

// Pattern is a host pattern in canonical form: an exact name, or *. and a name for every subdomain at any depth but not the name itself. The zero Pattern
// matches nothing.
type Pattern struct{ text string }

// Problem says why a text is not a pattern.
type Problem struct {
	// Reason completes a sentence that begins with the quoted text: "is not a host name: …".
	Reason string
	// Hint is the corrected spelling when it is certain, or what to do.
	Hint string
}

// String returns the pattern as it is written in a policy.
func (p Pattern) String() string { return p.text }

// Wildcard reports whether the pattern stands for subdomains.
func (p Pattern) Wildcard() bool { return strings.HasPrefix(p.text, "*.") }

// Suffix returns the name behind *. of a wildcard, or the name itself.
func (p Pattern) Suffix() string { return strings.TrimPrefix(p.text, "*.") }

// Matches reports whether the pattern matches a host.
func (p Pattern) Matches(n Name) bool {
	if !p.Wildcard() {
		return p.text != "" && p.text == string(n)
	}
	return below(string(n), p.Suffix()) && !n.Literal()
}

// Covers reports whether every host that q matches is matched by p. No exact name covers a wildcard, and a wildcard does not cover its own apex.
func (p Pattern) Covers(q Pattern) bool {
	if p == q {
		return p.text != ""
	}
	if !p.Wildcard() {
		return false
	}
	if q.Wildcard() && q.Suffix() == p.Suffix() {
		return true
	}
	return below(q.Suffix(), p.Suffix())
}

// Example returns a host that the pattern matches.
func (p Pattern) Example() Name {
	if p.Wildcard() {
		return Name("any." + p.Suffix())
	}
	return Name(p.text)
}

// below reports whether n is a proper subdomain of suffix.
func below(n, suffix string) bool {
	return len(n) > len(suffix)+1 && n[len(n)-len(suffix)-1] == '.' && strings.HasSuffix(n, suffix)
}

// ParsePattern reads an entry of an allow list: a lower-case ASCII host name of at least two labels (or localhost), or *. over at least two labels.
func ParsePattern(s string) (Pattern, *Problem) { return parse(s, 2) }

// ParseDenyPattern reads an entry of a deny list, where *. may also stand over a whole top-level domain.
func ParseDenyPattern(s string) (Pattern, *Problem) { return parse(s, 1) }

func parse(s string, minWild int) (Pattern, *Problem) {
	problem, respell := check(s, minWild)
	if problem == nil {
		return Pattern{s}, nil
	}
	if respell {
		problem.Hint = fixed(s, minWild)
	}
	return Pattern{}, problem
}

// check says why s is not a pattern, or nil, and whether another spelling of it may be one.
func check(s string, minWild int) (problem *Problem, respell bool) {
	switch {
	case s == "":
		return &Problem{"is empty; write a host name", ""}, false
	case s == "*" || s == "**" || s == "*.*":
		return &Problem{"is not a host name: for every host write egress.default: allow or deny", "remove the entry and set egress.default"}, false
	case strings.ContainsAny(s, " \t\r\n"):
		return &Problem{"is not a host name: it has blanks", ""}, true
	}
	if i := strings.Index(s, "://"); i >= 0 {
		return &Problem{"is not a host name: it has a scheme (" + s[:i+3] + ")", ""}, true
	}
	if strings.ContainsAny(s, "/?#") {
		return &Problem{"is not a host name: it has a path", ""}, true
	}
	if strings.Contains(s, "@") {
		return &Problem{"is not a host name: it has user information", ""}, true
	}
	if strings.ContainsAny(s, "[]") || strings.Count(s, ":") > 1 {
		return &Problem{"is an address: host lists hold names, the default decides about addresses", ""}, false
	}
	if strings.Contains(s, ":") {
		return &Problem{"is not a host name: it has a port; entries hold for every port", ""}, true
	}
	for _, c := range []byte(s) {
		if c >= 0x80 {
			return &Problem{"is not ASCII: write the name in its xn-- form", ""}, true
		}
	}
	if s != strings.ToLower(s) {
		return &Problem{"is not in lower case", ""}, true
	}
	name, wild := strings.CutPrefix(s, "*.")
	if strings.Contains(name, "*") {
		return &Problem{"has a wildcard * in the wrong place: *. is allowed once, at the front, and stands for whole labels", ""}, false
	}
	if name == "" || strings.HasSuffix(name, ".") || strings.HasPrefix(name, ".") || strings.Contains(name, "..") {
		return &Problem{"is not a host name: it has an empty label (a dot too many)", ""}, true
	}
	if len(name) > 253 {
		return &Problem{"is not a host name: it has more than 253 characters", ""}, false
	}
	labels := strings.Count(name, ".") + 1
	if why := badLabels(name); why != "" {
		return &Problem{"is not a host name: " + why, ""}, false
	}
	switch {
	case wild && labels < minWild:
		return &Problem{"covers a whole top-level domain, which is too broad for an allow list", "name the domains you mean"}, false
	case !wild && labels < 2 && name != "localhost":
		return &Problem{"is not a host name: it has one label; write the full name", ""}, false
	}
	return nil, false
}

// fixed returns the spelling that was probably meant, when it is a pattern.
func fixed(s string, minWild int) string {
	s = strings.TrimSpace(s)
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	s = s[strings.LastIndex(s, "@")+1:]
	if i := strings.IndexByte(s, ':'); i >= 0 {
		s = s[:i]
	}
	s = toASCII(strings.ToLower(strings.Trim(s, ".")))
	if problem, _ := check(s, minWild); problem != nil {
		return ""
	}
	return s
}

func badLabels(name string) string {
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case len(label) > 63:
			return "the label " + label[:20] + "… has more than 63 characters"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "the label " + label + " begins or ends with a hyphen"
		}
		for _, c := range []byte(label) {
			if c == '_' {
				return "it has an underscore"
			}
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
				return "it has the character " + strconv.QuoteRune(rune(c))
			}
		}
		if strings.HasPrefix(label, "xn--") && !decodes(label) {
			return "the label " + label + " does not decode"
		}
		last = label
	}
	if last[0] < 'a' || last[0] > 'z' {
		return "the last label begins with a digit; host lists hold names, the default decides about addresses"
	}
	return ""
}
