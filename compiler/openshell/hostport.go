package openshell

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// target is what a URL says about where to connect.
type target struct {
	scheme string
	host   string
	port   int // -1 when not written, or the scheme's own
	zero   bool
	extra  bool // there is a user, path, query or fragment, or a line break or tab inside, which the URL standard drops
}

// webPorts are the schemes that the WHATWG URL standard treats specially, with their own ports.
func webPort(scheme string) (int, bool) {
	switch scheme {
	case "https", "wss":
		return 443, true
	case "http", "ws":
		return 80, true
	case "ftp":
		return 21, true
	}
	return 0, false
}

var (
	errNoHost   = errors.New("it has no host")
	errNotURL   = errors.New("it is not a URL")
	errHostChar = errors.New("it is not a host name")
	errPort     = errors.New("its port is not a number from 0 to 65535")
	errNonASCII = errors.New("it is not ASCII, the xn-- form of the name is wanted")
)

// parseTarget reads a URL as the WHATWG standard does (the image builder uses the url crate), as far as host and port go. Non-ASCII names are
// refused: turning them into their ASCII form takes tables that a policy should not depend on.
func parseTarget(s string) (target, error) {
	t := target{port: -1}
	s = strings.Trim(s, " \t\r\n\f\v\x00")
	whole := s
	s = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") != "" || !isAlpha(scheme[0]) {
		return t, errNotURL
	}
	t.scheme = lower(scheme)
	own, web := webPort(t.scheme)
	if web {
		rest = strings.ReplaceAll(rest, "\\", "/")
		rest = strings.TrimLeft(rest, "/")
	} else if rest, ok = strings.CutPrefix(rest, "//"); !ok {
		return t, errNoHost
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	t.extra = end < len(rest) && rest[end:] != "/" || len(s) < len(whole)
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority, t.extra = authority[i+1:], true
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	if host == "" {
		return t, errNoHost
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return t, errPort
		}
		t.zero = n == 0
		if t.port = int(n); web && t.port == own {
			t.port = -1
		}
	}
	var err error
	t.host, err = parseHost(host, web)
	return t, err
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func parseHost(s string, web bool) (string, error) {
	if strings.HasPrefix(s, "[") {
		inner, ok := strings.CutSuffix(s[1:], "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", errHostChar
		}
		return "[" + addr.String() + "]", nil
	}
	for i := range len(s) {
		if s[i] >= 0x80 {
			return "", errNonASCII
		}
	}
	const forbidden = " #/:<>?@[\\]^|"
	if !web {
		if strings.ContainsAny(s, forbidden) || hasControl(s) {
			return "", errHostChar
		}
		return s, nil
	}
	s, ok := unescape(s)
	if !ok || strings.ContainsAny(s, forbidden+"%\x7f") || hasControl(s) || s == "" {
		return "", errHostChar
	}
	s = strings.ToLower(s)
	return parseIPv4(s)
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }) >= 0
}

// unescape decodes %XX; a % that begins no escape stays. ok is false when the result is not ASCII.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c = byte(v)
				i += 2
			}
		}
		if c >= 0x80 {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

// parseIPv4 turns a host that ends in a number into an address (1.2.3 is 1.2.0.3, 0x7f.1 is 127.0.0.1) and leaves other hosts alone.
func parseIPv4(s string) (string, error) {
	parts := strings.Split(strings.TrimSuffix(s, "."), ".")
	last := parts[len(parts)-1]
	if _, ok := ipNumber(last); !ok && (last == "" || strings.Trim(last, "0123456789") != "") {
		return s, nil
	}
	if len(parts) > 4 {
		return "", errHostChar
	}
	var addr uint64
	for i, p := range parts {
		n, ok := ipNumber(p)
		switch {
		case !ok:
			return "", errHostChar
		case i < len(parts)-1:
			if n > 255 {
				return "", errHostChar
			}
			addr |= n << (8 * (3 - i))
		default:
			if n >= 1<<(8*(5-len(parts))) {
				return "", errHostChar
			}
			addr |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

// ipNumber reads a decimal, 0 octal or 0x hexadecimal number; 0x alone is 0.
func ipNumber(s string) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	if s == "" {
		return 0, true
	}
	if s[0] == '+' || s[0] == '-' || strings.Contains(s, "_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

// workspaceTarget reads a workspace entry: with :// a URL, else a host with https:// in front. Every scheme means port 443 unless another port
// than the scheme's own is written (image builder, observed with the url crate 2.3.1).
func workspaceTarget(entry string) (t target, port uint16, err error) {
	text := entry
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	if t, err = parseTarget(text); err != nil {
		return t, 0, err
	}
	if t.zero {
		return t, 0, errors.New("its port is 0")
	}
	if t.port < 0 {
		return t, 443, nil
	}
	return t, uint16(t.port), nil
}

// baseURLTarget reads an inference base URL: the port is the written one, else 443 for https and 80 for http.
func baseURLTarget(s string) (host string, port uint16, err error) {
	t, err := parseTarget(s)
	switch {
	case err != nil:
		return "", 0, err
	case t.scheme != "http" && t.scheme != "https":
		return "", 0, errors.New("its scheme is " + t.scheme + ", http or https is wanted")
	case t.zero:
		return "", 0, errors.New("its port is 0")
	case strings.HasPrefix(t.host, "["):
		return "", 0, errors.New("its host is an IPv6 address, a name is wanted")
	case strings.Contains(t.host, "*"):
		return "", 0, errors.New("its host has a wildcard")
	}
	if t.port < 0 {
		own, _ := webPort(t.scheme)
		t.port = own
	}
	return t.host, uint16(t.port), nil
}
