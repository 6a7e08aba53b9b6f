package host

import (
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Name is a host in canonical spelling: lower-case ASCII with internationalised labels in their xn-- form and without a trailing
// dot, or an IP address as package netip prints it (IPv4 mapped into IPv6 is printed as IPv4).
type Name string

// IsIP reports whether n is an IP address. No pattern matches one.
func (n Name) IsIP() bool {
	if strings.IndexByte(string(n), ':') >= 0 {
		return true
	}
	_, last := cutLast(string(n))
	return last != "" && '0' <= last[0] && last[0] <= '9' && numeric(last)
}

// ParseName takes the host out of what a person types: a URL, a host, or a host with a port. The user name, port, path and one
// trailing dot are dropped, and the rest is brought into canonical spelling. Names with one label, and names with an underscore, which
// no pattern matches in that label, are accepted. The error is one sentence.
func ParseName(arg string) (Name, error) {
	authority, err := cutAuthority(arg)
	if err != nil {
		return "", err
	}
	if at := strings.IndexByte(authority, '@'); at >= 0 {
		authority = authority[at+1:]
		if strings.IndexByte(authority, '@') >= 0 {
			return "", fmt.Errorf("%q has more than one @, so its host is not certain", arg)
		}
	}
	h, err := cutPort(arg, authority)
	if err != nil {
		return "", err
	}
	if addr, err := netip.ParseAddr(h); err == nil {
		return Name(addr.Unmap().String()), nil
	}
	h = lower(h)
	if _, ok := firstNonASCII(h); ok {
		a, err := idna.Lookup.ToASCII(h)
		if err != nil {
			return "", fmt.Errorf("%q is not a host name: %s", arg, strings.TrimPrefix(err.Error(), "idna: "))
		}
		h = a
	}
	h = strings.TrimSuffix(h, ".")
	if h == "" {
		return "", fmt.Errorf("%q has no host name", arg)
	}
	return canonical(arg, h)
}

// cutAuthority returns the part of a URL, or of a host with or without port and path, that names user, host and port.
func cutAuthority(arg string) (string, error) {
	if r, what := oddRune(arg); what != "" {
		return "", fmt.Errorf("%q has %s %U", arg, what, r)
	}
	s := arg
	if scheme, rest, ok := strings.Cut(arg, "://"); ok && isScheme(scheme) {
		s = rest
	}
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
			return "", fmt.Errorf("%q has a blank in its host name", arg)
		case '\\':
			// Browsers read it as a slash, other programs do not, so the host depends on the reader.
			return "", fmt.Errorf("%q has a backslash, so its host is not certain", arg)
		case '*':
			return "", fmt.Errorf("%q has a wildcard; give one host, such as %q", arg, "a.example.com")
		}
	}
	return s, nil
}

// isScheme reports whether s can stand before "://" (RFC 3986 section 3.1).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || !('0' <= s[i] && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.')) {
			return false
		}
	}
	return s != ""
}

// cutPort returns the host of an authority without brackets and port.
func cutPort(arg, s string) (string, error) {
	h, port, hasPort := s, "", false
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", fmt.Errorf("%q has a [ without its ]", arg)
		}
		h, port = s[1:end], s[end+1:]
		port, hasPort = strings.CutPrefix(port, ":")
		if addr, err := netip.ParseAddr(h); err != nil || !addr.Is6() || addr.Zone() != "" || !hasPort && port != "" {
			return "", fmt.Errorf("%q has no IPv6 address in its brackets", arg)
		}
	case strings.Count(s, ":") == 1:
		h, port, hasPort = strings.Cut(s, ":")
	case strings.Contains(s, ":"):
		if addr, err := netip.ParseAddr(s); err != nil || addr.Zone() != "" {
			return "", fmt.Errorf("%q is neither a host name nor an IPv6 address", arg)
		}
	}
	switch {
	case hasPort && port == "" && strings.Contains(arg, "://"):
		return h, nil // "https://x.example:/" is a URL with the default port
	case hasPort && port == "":
		return "", fmt.Errorf("%q ends its host with a colon; a URL has // after its scheme", arg)
	case hasPort && (len(port) > 5 || strings.Trim(port, "0123456789") != ""):
		return "", fmt.Errorf("%q has the port %q, which is not a port number", arg, port)
	}
	return h, nil
}

// canonical checks the labels of a lower-case ASCII host without trailing dot.
func canonical(arg, h string) (Name, error) {
	if len(h) > maxName {
		return "", fmt.Errorf("%q is not a host name: it has %d characters, and %d is the most", arg, len(h), maxName)
	}
	start := 0
	for i := 0; i <= len(h); i++ {
		if i < len(h) && h[i] != '.' {
			if c := h[i]; !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return "", fmt.Errorf("%q is not a host name: it has the character %q", arg, rune(c))
			}
			continue
		}
		if i == start {
			return "", fmt.Errorf("%q is not a host name: it has an empty label", arg)
		}
		if i-start > maxLabel {
			return "", fmt.Errorf("%q is not a host name: a label has %d characters, and %d is the most", arg, i-start, maxLabel)
		}
		start = i + 1
	}
	if _, last := cutLast(h); numeric(last) {
		addr, err := netip.ParseAddr(h)
		if err != nil {
			return "", fmt.Errorf("%q ends in a number, so programs read it as an IP address; write it as four decimal numbers", arg)
		}
		return Name(addr.String()), nil
	}
	return Name(h), nil
}

// numeric reports whether URL parsers take a host with this last label for an IPv4 address (WHATWG URL, "ends in a number", 2026-11).
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
