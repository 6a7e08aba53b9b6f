package openshell

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// naiveDecide is an independent reading of how OpenShell decides a REST request or a connection, written for clarity: globs become regular
// expressions, nothing is compiled ahead, nothing is shared with the code under test but the types.
func naiveDecide(p *Policy, r Request) string {
	paths := append([]string{r.Binary}, r.Ancestors...)
	type hit struct {
		e *Endpoint
	}
	var hits []hit
	for i := range p.Rules {
		rule := &p.Rules[i]
		if !slices.ContainsFunc(rule.Binaries, func(b Binary) bool {
			return slices.ContainsFunc(paths, func(s string) bool {
				if !strings.Contains(b.Path, "*") {
					return s == b.Path
				}
				return naiveGlob(b.Path, "/", s)
			})
		}) {
			continue
		}
		for k := range rule.Endpoints {
			e := &rule.Endpoints[k]
			host, want := strings.ToLower(r.Host), strings.ToLower(e.Host)
			named := host == want
			if strings.Contains(want, "*") {
				named = naiveGlob(want, ".", host)
			}
			if e.Host == "" {
				named = len(e.AllowedIPs) > 0
			}
			ports := e.Ports
			if len(ports) == 0 {
				ports = []uint16{e.Port}
			}
			if named && slices.Contains(ports, r.Port) {
				hits = append(hits, hit{e})
			}
		}
	}
	if len(hits) == 0 {
		return "deny"
	}
	var configs []*Endpoint
	for _, h := range hits {
		if h.e.Protocol != "" && h.e.Protocol != "tcp" && h.e.TLS != "skip" {
			configs = append(configs, h.e)
		}
	}
	if len(configs) == 0 {
		return "allow"
	}
	target, query, _ := strings.Cut(r.Path, "?")
	canon, ok := naivePath(target)
	config := configs[0]
	if len(configs) > 1 {
		config = nil
		for _, e := range configs {
			if ok && naiveSelects(e.Path, canon) && (config == nil || len(strings.ReplaceAll(e.Path, "*", "")) > len(strings.ReplaceAll(config.Path, "*", ""))) {
				config = e
			}
		}
		if config == nil {
			return "deny"
		}
	}
	if !ok {
		return "deny"
	}
	violation := "audit"
	if config.Enforcement == "enforce" {
		violation = "deny"
	}
	allowed := false
	for _, h := range hits {
		if h.e.Path != "" && h.e.Path != "**" && !naiveGlob(h.e.Path, "/", canon) {
			continue
		}
		rules := slices.Clone(h.e.Rules)
		for _, m := range map[string][]string{"read-only": {"GET", "HEAD", "OPTIONS"}, "read-write": {"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"}, "full": {"*"}}[h.e.Access] {
			rules = append(rules, L7Rule{Method: m, Path: "**"})
		}
		for _, rule := range h.e.DenyRules {
			if naiveRule(rule, r.Method, canon, query, true) {
				return violation
			}
		}
		for _, rule := range rules {
			allowed = allowed || naiveRule(rule, r.Method, canon, query, false)
		}
	}
	if allowed {
		return "allow"
	}
	return violation
}

func naiveRule(rule L7Rule, method, canon, query string, deny bool) bool {
	m, want := strings.ToUpper(method), strings.ToUpper(rule.Method)
	if want != "*" && m != want && !(m == "HEAD" && want == "GET") {
		return false
	}
	if rule.Path != "**" && !naiveGlob(rule.Path, "/", canon) {
		return false
	}
	values, _ := url.ParseQuery(query)
	for _, q := range rule.Query {
		vs, ok := values[q.Name]
		if !ok {
			return false
		}
		matches := 0
		for _, v := range vs {
			for _, g := range q.Match.Globs {
				if naiveGlob(g, ".", v) {
					matches++
					break
				}
			}
		}
		if deny && matches == 0 || !deny && matches < len(vs) {
			return false
		}
	}
	return true
}

// naivePath covers the paths the tests generate: an encoded slash is never allowed there.
func naivePath(s string) (string, bool) {
	if s == "" {
		s = "/"
	}
	strange := func(r rune) bool { return r < ' ' || r > '~' }
	if s[0] != '/' || strings.Contains(s, "#") || strings.ContainsFunc(s, strange) || strings.Contains(strings.ToLower(s), "%2f") {
		return "", false
	}
	s, err := url.PathUnescape(s)
	if err != nil || strings.ContainsFunc(s, unicode.IsControl) {
		return "", false
	}
	segs := strings.Split(s, "/")
	depth := 0
	for i, seg := range segs {
		segs[i], _, _ = strings.Cut(seg, ";")
		switch segs[i] {
		case "..":
			if depth--; depth < 0 {
				return "", false
			}
		case "", ".":
		default:
			depth++
		}
	}
	s = strings.Join(segs, "/")
	out := path.Clean(s)
	if last := segs[len(segs)-1]; out != "/" && (last == "" || last == "." || last == "..") {
		out += "/"
	}
	var b strings.Builder
	for i, seg := range strings.Split(out, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		e := url.PathEscape(seg)
		for _, keep := range "!$&'()*+,;=:@" {
			e = strings.ReplaceAll(e, url.QueryEscape(string(keep)), string(keep))
		}
		b.WriteString(e)
	}
	return b.String(), true
}

// naiveSelects is the proxy's looser dialect: both stars cross slashes, /a/** also takes /a.
func naiveSelects(pattern, s string) bool {
	if pattern == "" || pattern == "**" || pattern == "/**" {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/**"); ok {
		return s == dir || strings.HasPrefix(s, dir+"/")
	}
	re := regexp.QuoteMeta(strings.ReplaceAll(pattern, "**/", "\x00"))
	re = strings.NewReplacer("\x00", "(?:.*)", `\*\*`, ".*", `\*`, ".*", `\?`, ".").Replace(re)
	return naiveRegexp(`(?s)^` + re + `$`).MatchString(s)
}

// naiveGlob is the rule engine's dialect without braces, classes and escapes.
func naiveGlob(pattern, sep, s string) bool {
	if pattern == "**" {
		return true
	}
	q := regexp.QuoteMeta(sep)
	parts := strings.Split(pattern, sep)
	re := ""
	for i, p := range parts {
		glue := q
		if i == 0 {
			glue = ""
		}
		switch {
		case p == "**" && i == 0:
			re += ".*"
		case p == "**" && i == len(parts)-1:
			re += q + ".*"
		case p == "**":
			re += "(?:" + q + "[^" + q + "]*)*"
		default:
			part := regexp.QuoteMeta(p)
			part = naiveRegexp(`(\\\*)+`).ReplaceAllString(part, "[^"+q+"]*")
			part = strings.ReplaceAll(part, `\?`, "[^"+q+"]")
			re += glue + part
		}
	}
	return naiveRegexp(`(?s)^` + re + `$`).MatchString(s)
}

var naiveRegexps sync.Map

func naiveRegexp(s string) *regexp.Regexp {
	if re, ok := naiveRegexps.Load(s); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(s)
	naiveRegexps.Store(s, re)
	return re
}
