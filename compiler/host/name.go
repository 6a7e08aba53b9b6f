package host

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Name is a host name in canonical form: lower-case ASCII without a trailing dot. It may be an IP address, which no pattern matches.
type Name string

// Literal reports whether the name is an IP address.
func (n Name) Literal() bool {
	return strings.IndexByte(string(n), ':') >= 0 || numeric(string(n[strings.LastIndexByte(string(n), '.')+1:]))
}

// numeric reports whether a host with this last label is an IPv4 address for URL parsers, in whatever notation (WHATWG URL standard, "ends in a number
// checker", read 2026-11-30).
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// ParseName reads a host name or URL as a person would paste it: user information, port, path and one trailing dot are dropped, case is folded, and a
// name outside ASCII becomes its xn-- form. Wildcards, blanks, escapes and backslashes are refused, and so is what programs read as different hosts.
func ParseName(arg string) (Name, error) {
	n, _, err := ParseNamePort(arg)
	return n, err
}

// ParseNamePort is ParseName with the port that was dropped, or "".
func ParseNamePort(arg string) (name Name, port string, err error) {
	s := arg
	bad := func(why string) (Name, string, error) {
		return "", "", fmt.Errorf("%q is not a host or URL: %s", arg, why)
	}
	for _, r := range s {
		switch {
		case r <= ' ' || r == 0x7f || r == 0xa0 || r == 0x3000:
			return bad("it has blanks or control characters")
		case r == '\\':
			return bad("it has a backslash")
		case r == 0xfffd:
			return bad("it is not UTF-8")
		}
	}
	scheme, authority, isURL := strings.Cut(s, "://")
	if !isURL {
		authority = s
	}
	if i := strings.IndexAny(authority, "/?#"); i >= 0 {
		authority = authority[:i]
	}
	if strings.Count(authority, "@") > 1 {
		return bad("it has two @, so its host is not certain")
	}
	if isURL {
		if scheme == "" || strings.ContainsAny(scheme, "/?#@:") {
			return bad("it has no scheme before ://")
		}
		u, err := url.Parse(s)
		if err != nil {
			return bad(urlReason(err))
		}
		s = u.Host
		if strings.Contains(s, "%") {
			return bad("it has a percent escape")
		}
		// A URL may leave the number of the port out.
		s = strings.TrimSuffix(s, ":")
	} else {
		s = authority[strings.IndexByte(authority, '@')+1:]
	}
	if s, port, err = dropPort(s); err != nil {
		return bad(err.Error())
	}
	if strings.Contains(s, "%") {
		return bad("it has a percent escape")
	}
	if strings.Contains(s, "*") {
		return bad("it has a wildcard; ask about one host")
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return bad("there is no host in it")
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		return Name(ip.Unmap().String()), port, nil
	}
	ascii, err := canonical(s)
	if err != nil {
		return bad(err.Error())
	}
	if !Name(ascii).Literal() {
		return Name(ascii), port, nil
	}
	ip, err := netip.ParseAddr(ascii)
	if err != nil {
		return bad("it ends in a number, which programs read as an IP address; write four decimal numbers")
	}
	return Name(ip.String()), port, nil
}

// dropPort returns the host and the port of host:port or of [address]:port. A colon in any other place stays for the address parser.
func dropPort(s string) (host, port string, err error) {
	host, found := s, false
	if rest, ok := strings.CutPrefix(s, "["); ok {
		var after string
		if host, after, ok = strings.Cut(rest, "]"); !ok {
			return "", "", errors.New("a bracket is not closed")
		}
		if port, found = strings.CutPrefix(after, ":"); !found && after != "" {
			return "", "", errors.New("there is text after the bracket")
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return "", "", errors.New("there is no IPv6 address in the brackets")
		}
	} else if strings.Count(s, ":") == 1 {
		host, port, found = strings.Cut(s, ":")
	}
	switch {
	case !found:
	case port == "":
		return "", "", errors.New("there is no port after its colon; a URL has // after its scheme")
	default:
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", "", fmt.Errorf("%q is not a port", port)
		}
	}
	return host, port, nil
}

func urlReason(err error) string {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err.Error()
	}
	return err.Error()
}

// canonical returns the lower-case A-label form of a name. Underscores are kept: such names exist in DNS even though lists do not hold them.
func canonical(s string) (string, error) {
	plain := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			plain = false
			break
		}
	}
	if !plain {
		ascii, err := idna.Lookup.ToASCII(s)
		if err != nil {
			return "", errors.New("the name cannot be written in ASCII (" + strings.TrimPrefix(err.Error(), "idna: ") + ")")
		}
		s = strings.TrimSuffix(ascii, ".")
	}
	s = strings.ToLower(s)
	if len(s) > 253 {
		return "", errors.New("it has more than 253 characters")
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" {
			return "", errors.New("it has an empty label")
		}
		if len(label) > 63 {
			return "", errors.New("a label has more than 63 characters")
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return "", errors.New("a label begins or ends with a hyphen")
		}
		for _, c := range []byte(label) {
			if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return "", fmt.Errorf("it has the character %q", rune(c))
			}
		}
	}
	return s, nil
}

// toASCII returns the xn-- form of a name or wildcard, or "" when it has none. ASCII is left as it is.
func toASCII(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 }) {
		return s
	}
	name, wild := strings.CutPrefix(s, "*.")
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return ""
	}
	if wild {
		return "*." + ascii
	}
	return ascii
}

// decodes reports whether an xn-- label is the ASCII form of something.
func decodes(label string) bool {
	u, err := idna.Lookup.ToUnicode(label)
	return err == nil && u != label
}
