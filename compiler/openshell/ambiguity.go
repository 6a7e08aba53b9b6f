package openshell

import (
	"fmt"
	"slices"
	"strings"
)

// ambiguities reports every pair of endpoints that can name the same host and port and disagree on how the connection is handled, whatever
// their binaries and rules (OpenShell's EndpointAmbiguity, ambiguity.rs).
func (fs *findings) ambiguities(p *Policy) {
	type place struct {
		rule *Rule
		ep   *Endpoint
		host string
	}
	var all []place
	byPort := map[uint16][]int{}
	for i := range p.Rules {
		r := &p.Rules[i]
		for k := range r.Endpoints {
			e := &r.Endpoints[k]
			ports := slices.Clone(e.EffectivePorts())
			slices.Sort(ports)
			for _, port := range slices.Compact(ports) {
				byPort[port] = append(byPort[port], len(all))
			}
			all = append(all, place{r, e, lower(e.Host)})
		}
	}
	told := map[[2]int]bool{}
	for _, on := range byPort {
		for x, i := range on {
			for _, j := range on[x+1:] {
				a, b := all[i], all[j]
				if told[[2]int{i, j}] {
					continue
				}
				conflicts := connectionConflicts(a.ep, b.ep)
				if contributes(a.ep) && contributes(b.ep) && pathRank(a.ep.Path) == pathRank(b.ep.Path) {
					if more := requestConflicts(a.ep, b.ep); len(more) > 0 && pathsOverlap(a.ep.Path, b.ep.Path) {
						conflicts = append(conflicts, more...)
					}
				}
				if len(conflicts) == 0 || !hostsOverlap(a.host, b.host) {
					continue
				}
				told[[2]int{i, j}] = true
				first, second := a, b
				if b.ep.Pos < a.ep.Pos {
					first, second = b, a
				}
				fs.refuse([]Kind{KindEndpointAmbiguity}, codeAmbiguity, second.ep.Pos, second.ep.Place.Path,
					"make the two agree, or take the host or port out of one of them",
					"%s %s and %s %s can name the same host and port and disagree on %s", first.rule.Slug, first.ep.selector(), second.rule.Slug, second.ep.selector(),
					strings.Join(conflicts, ", "))
				f := &(*fs)[len(*fs)-1]
				f.Origin = second.rule.Origin
				f.Diagnostic = f.WithRelated(first.ep.Pos, "the other endpoint")
			}
		}
	}
}

// selector names an endpoint in a message.
func (e *Endpoint) selector() string {
	host := e.Host
	if host == "" {
		host = "(any host)"
	}
	var ports []string
	for _, p := range e.EffectivePorts() {
		ports = append(ports, fmt.Sprint(p))
	}
	return host + ":" + strings.Join(ports, ",") + e.Path
}

// contributes reports whether an endpoint takes part in choosing how a request is read.
func contributes(e *Endpoint) bool {
	return e.Protocol != "" && !e.isTCP() || len(e.AllowedIPs) > 0 || e.TLS != "" || e.CredentialBinding != nil
}

func pathRank(path string) int { return len([]rune(path)) - strings.Count(path, "*") }

type conflicts []string

func differ[T comparable](c *conflicts, field string, a, b T) {
	if a != b {
		*c = append(*c, fmt.Sprintf("%s (%v and %v)", field, a, b))
	}
}

func connectionConflicts(a, b *Endpoint) conflicts {
	var c conflicts
	differ(&c, "protocol tcp", a.isTCP(), b.isTCP())
	differ(&c, "tls skip", a.skipsTLS(), b.skipsTLS())
	differ(&c, "allowed_ips", ipSet(a), ipSet(b))
	return c
}

func ipSet(e *Endpoint) string {
	if len(e.AllowedIPs) == 0 {
		return ""
	}
	ips := make([]string, len(e.AllowedIPs))
	for i, ip := range e.AllowedIPs {
		ips[i] = lower(strings.TrimSpace(ip))
	}
	slices.Sort(ips)
	return strings.Join(slices.Compact(ips), " ")
}

func requestConflicts(a, b *Endpoint) conflicts {
	var c conflicts
	protocol := func(e *Endpoint) string {
		if e.isTCP() {
			return ""
		}
		return lower(e.Protocol)
	}
	pa, pb := protocol(a), protocol(b)
	differ(&c, "protocol", pa, pb)
	differ(&c, "enforcement", strings.EqualFold(a.Enforcement, "enforce"), strings.EqualFold(b.Enforcement, "enforce"))
	differ(&c, "allow_encoded_slash", a.AllowEncodedSlash, b.AllowEncodedSlash)
	differ(&c, "websocket_credential_rewrite", a.WebsocketCredentialRewrite, b.WebsocketCredentialRewrite)
	differ(&c, "request_body_credential_rewrite", a.RequestBodyCredentialRewrite, b.RequestBodyCredentialRewrite)
	differ(&c, "credential_signing", a.CredentialSigning, b.CredentialSigning)
	differ(&c, "signing_service", a.SigningService, b.SigningService)
	differ(&c, "signing_region", a.SigningRegion, b.SigningRegion)
	differ(&c, "credential_binding.provider", a.provider(), b.provider())
	if pa != pb {
		return c
	}
	switch pa {
	case "websocket":
		differ(&c, "GraphQL policy of websocket", a.websocketGraphQL(), b.websocketGraphQL())
	case "graphql":
		differ(&c, "graphql_max_body_bytes", bodyLimit(a.GraphQLMaxBodyBytes), bodyLimit(b.GraphQLMaxBodyBytes))
	case "mcp":
		differ(&c, "max_body_bytes", bodyLimit(a.rpcBodyBytes()), bodyLimit(b.rpcBodyBytes()))
		differ(&c, "mcp.strict_tool_names", a.strictToolNames(), b.strictToolNames())
	case "json-rpc":
		differ(&c, "max_body_bytes", bodyLimit(a.rpcBodyBytes()), bodyLimit(b.rpcBodyBytes()))
	}
	return c
}

func (e *Endpoint) provider() string {
	if e.CredentialBinding == nil {
		return ""
	}
	return e.CredentialBinding.Provider
}

func (e *Endpoint) websocketGraphQL() bool {
	hasFields := func(r L7Rule) bool { return r.OperationType != "" || r.OperationName != "" || len(r.Fields) > 0 }
	return len(e.GraphQLPersistedQueries) > 0 || e.PersistedQueries != "" && e.PersistedQueries != "deny" ||
		slices.ContainsFunc(e.Rules, hasFields) || slices.ContainsFunc(e.DenyRules, hasFields)
}

func (e *Endpoint) strictToolNames() bool {
	return e.MCP == nil || e.MCP.StrictToolNames == nil || *e.MCP.StrictToolNames
}

// rpcBodyBytes returns the body limit of a json-rpc or mcp endpoint; the mcp stanza wins when both are there.
func (e *Endpoint) rpcBodyBytes() uint32 {
	switch {
	case e.MCP != nil && e.MCP.MaxBodyBytes != 0:
		return e.MCP.MaxBodyBytes
	case e.JSONRPC != nil:
		return e.JSONRPC.MaxBodyBytes
	}
	return 0
}

func bodyLimit(n uint32) uint32 {
	if n == 0 {
		return 65536
	}
	return n
}

var freeShape = shape{free: true}

// hostsOverlap is the gateway's test: * is any run without a dot, ** any run, everything else stands for itself; an empty host names all.
func hostsOverlap(a, b string) bool {
	if a == "" || b == "" {
		return true
	}
	starA, starB := strings.IndexByte(a, '*'), strings.IndexByte(b, '*')
	if starA < 0 && starB < 0 {
		return a == b
	}
	if !agree(a[strings.LastIndexByte(a, '*')+1:], b[strings.LastIndexByte(b, '*')+1:], strings.HasSuffix) {
		return false
	}
	if starA >= 0 && starB >= 0 && !agree(a[:starA], b[:starB], strings.HasPrefix) {
		return false
	}
	return meet(overlapAutomaton(a), overlapAutomaton(b))
}

// agree reports whether one of two fixed ends continues the other, without which two patterns share no text.
func agree(a, b string, has func(s, end string) bool) bool { return has(a, b) || has(b, a) }

func meet(a, b automaton) bool {
	found := false
	done := exploreAutomata([][]automaton{{a}, {b}}, freeShape, func(m []int, _ string) bool {
		found = len(m) == 2
		return !found
	})
	return found || !done
}

func overlapAutomaton(host string) automaton {
	var a automaton
	rs := []rune(host)
	for i := 0; i < len(rs); i++ {
		if rs[i] != '*' {
			a.read(oneRune(rs[i]))
			continue
		}
		set := runeSet{not: true, bar: '.'}
		for ; i+1 < len(rs) && rs[i+1] == '*'; i++ {
			set = anyRune
		}
		a.star(set)
	}
	a.end()
	return a
}

// pathsOverlap is the gateway's test for endpoint paths, in the looser dialect of the proxy: both stars cross slashes. A pattern that this
// dialect does not know overlaps everything.
func pathsOverlap(a, b string) bool {
	for _, p := range []string{a, b} {
		if p == "" || p == "**" || p == "/**" {
			return true
		}
	}
	x, okA := selectAutomaton(a)
	y, okB := selectAutomaton(b)
	return !okA || !okB || meet(x, y)
}

// selectAutomaton reads an endpoint path in the dialect that the proxy uses to choose a parser (Rust's glob crate without literal separators).
func selectAutomaton(pattern string) (automaton, bool) {
	var a automaton
	rs := []rune(pattern)
	for i := 0; i < len(rs); i++ {
		switch rs[i] {
		case '?':
			a.read(anyRune)
		case '*':
			n := 1
			for i+n < len(rs) && rs[i+n] == '*' {
				n++
			}
			end := i + n
			if n > 2 || n == 2 && (i > 0 && rs[i-1] != '/' || end < len(rs) && rs[end] != '/') {
				return a, false
			}
			i = end - 1
			if n == 2 && end < len(rs) {
				i = end // **/ also stands for nothing
			}
			a.star(anyRune)
		case '[':
			end := -1
			start := i + 1
			if start < len(rs) && rs[start] == '!' {
				start++
			}
			for k := start; k < len(rs) && end < 0; k++ {
				if rs[k] == ']' {
					end = k
				}
			}
			if end <= start {
				return a, false
			}
			set := runeSet{not: start > i+1}
			for k := start; k < end; k++ {
				r := runeRange{rs[k], rs[k]}
				if k+2 < end && rs[k+1] == '-' {
					r.hi = rs[k+2]
					k += 2
				}
				set.class = append(set.class, r)
			}
			a.read(set)
			i = end
		default:
			a.read(oneRune(rs[i]))
		}
	}
	a.end()
	return a, true
}
