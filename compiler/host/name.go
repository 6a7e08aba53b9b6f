package host

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// Name is a host name in canonical form: lower-case ASCII without a trailing dot. It may be an IP address, which no pattern matches.
type Name string

// Literal reports whether the name is an IP address.
func (n Name) Literal() bool {
	if n == "" || n[len(n)-1] > '9' && strings.IndexByte(string(n), ':') < 0 {
		return false
	}
	_, err := netip.ParseAddr(string(n))
	return err == nil
}

// ParseName reads a host name or URL as a person would paste it: user information, port, path and one trailing dot are dropped, case is folded, and a
// name outside ASCII becomes its xn-- form. Wildcards, blanks, escapes and backslashes are refused.
func ParseName(arg string) (Name, error) {
	s := arg
	bad := func(why string) (Name, error) { return "", fmt.Errorf("%q is not a host or URL: %s", arg, why) }
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
	if scheme, _, ok := strings.Cut(s, "://"); ok {
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
		if h := u.Hostname(); strings.Contains(s, "[") {
			s = h
		} else {
			s = dropPort(s)
		}
	} else {
		if i := strings.IndexAny(s, "/?#"); i >= 0 {
			s = s[:i]
		}
		s = s[strings.LastIndexByte(s, '@')+1:]
		switch {
		case strings.HasPrefix(s, "["):
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return bad("a bracket is not closed")
			}
			s = s[1:end]
		case strings.Count(s, ":") == 1:
			s = dropPort(s)
		}
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
		return Name(ip.Unmap().String()), nil
	}
	ascii, err := canonical(s)
	if err != nil {
		return bad(err.Error())
	}
	return Name(ascii), nil
}

func dropPort(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		return s[:i]
	}
	return s
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
