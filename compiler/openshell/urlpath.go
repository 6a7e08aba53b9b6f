package openshell

import "strings"

// canonicalPath returns the form of a request path that OpenShell's rules see (supervisor-network l7/path.rs): decoded and re-encoded, dot
// segments resolved, doubled slashes joined, ;params dropped. why says why OpenShell refuses the request, "" when it does not.
func canonicalPath(p string, encodedSlash bool) (path, why string) {
	if p == "" {
		p = "/"
	}
	clean := p[0] == '/'
	for i := range len(p) {
		switch c := p[i]; {
		case c < 0x20 || c == 0x7f:
			return "", "the path has a control character"
		case c >= 0x80:
			return "", "the path has a character that is not ASCII"
		case c == '#':
			return "", "the path has a fragment"
		case c == '%' || c == ';' || !isPathByte(c) && c != '/':
			clean = false
		case c == '/' && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '.'):
			clean = false
		}
	}
	if p[0] != '/' {
		return "", "the path does not start with /"
	}
	if len(p) > 4096 {
		return "", "the path is longer than 4096 bytes"
	}
	if clean {
		return p, ""
	}
	// A decoded slash is kept apart from a written one as the byte 1, which cannot be written.
	const inner = 1
	raw := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c != '%' {
			raw = append(raw, c)
			continue
		}
		hi, lo := -1, -1
		if i+2 < len(p) {
			hi, lo = hexDigit(p[i+1]), hexDigit(p[i+2])
		}
		if hi < 0 || lo < 0 {
			return "", "the path has a broken % escape"
		}
		i += 2
		switch c = byte(hi<<4 | lo); {
		case c == '/' && !encodedSlash:
			return "", "the path has an encoded slash, which the endpoint does not allow"
		case c == '/':
			c = inner
		case c < 0x20 || c == 0x7f:
			return "", "the path has an encoded control character"
		}
		raw = append(raw, c)
	}
	var segs []string
	parts := strings.Split(string(raw[1:]), "/")
	for i, s := range parts {
		s, _, _ = strings.Cut(s, ";")
		last := i == len(parts)-1
		switch {
		case s == "..":
			if len(segs) == 0 {
				return "", "the path climbs out of the root"
			}
			segs = segs[:len(segs)-1]
			if last {
				segs = append(segs, "")
			}
		case s == ".":
			if last {
				segs = append(segs, "")
			}
		case s == "" && !last:
		default:
			segs = append(segs, s)
		}
	}
	for _, s := range segs {
		for part := range strings.SplitSeq(s, string(rune(inner))) {
			if part == "." || part == ".." {
				return "", "the path hides a dot segment"
			}
		}
	}
	const digits = "0123456789ABCDEF"
	out := []byte{'/'}
	for i, s := range segs {
		if i > 0 {
			out = append(out, '/')
		}
		for k := range len(s) {
			switch c := s[k]; {
			case c == inner:
				out = append(out, "%2F"...)
			case isPathByte(c):
				out = append(out, c)
			default:
				out = append(out, '%', digits[c>>4], digits[c&15])
			}
		}
	}
	return string(out), ""
}

func isPathByte(c byte) bool { return isAlnum(c) || strings.IndexByte("-._~!$&'()*+,;=:@", c) >= 0 }

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// queryValues calls f for every value of the named parameter, decoded, + as a space, until f returns false.
func queryValues(query, name string, f func(value string) bool) {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		if queryText(k) == name && !f(queryText(v)) {
			return
		}
	}
}

func queryText(s string) string {
	if !strings.ContainsAny(s, "+%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(s) && hexDigit(s[i+1]) >= 0 && hexDigit(s[i+2]) >= 0:
			c = byte(hexDigit(s[i+1])<<4 | hexDigit(s[i+2]))
			i += 2
		}
		out = append(out, c)
	}
	return string(out)
}
