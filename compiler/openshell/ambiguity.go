package openshell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxAmbiguities bounds the pairs that are reported: a policy that disagrees with itself everywhere has more of them than anyone reads. maxMeets bounds the
// pairs of patterns that are compared the long way.
const (
	maxAmbiguities = 200
	maxMeets       = 50_000
)

// overlapEntry is an endpoint as the overlap test sees it. Two of the same class never disagree.
type overlapEntry struct {
	rule        *Rule
	ep          *Endpoint
	host        string
	connection  int
	request     int
	contributes bool
}

// ambiguities reports every pair of endpoints that can name the same host and port and disagree on how the connection is handled, whatever
// their binaries and rules (OpenShell's EndpointAmbiguity, ambiguity.rs).
func (fs *findings) ambiguities(p *Policy) {
	var all []overlapEntry
	connections, requests := map[connectionTraits]int{}, map[requestTraits]int{}
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
			all = append(all, overlapEntry{r, e, lower(e.Host), number(connections, connectionOf(e)), number(requests, requestOf(e)), contributes(e)})
		}
	}
	if len(connections) == 1 && len(requests) == 1 {
		return
	}
	told := map[[2]int]bool{}
	meets := 0
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		on := byPort[port]
		named := map[string][]int{}
		var patterns []int
		for x, i := range on {
			b := &all[i]
			others := [2][]int{named[b.host], patterns}
			if b.host == "" || strings.Contains(b.host, "*") {
				others = [2][]int{on[:x]}
				patterns = append(patterns, i)
			} else {
				named[b.host] = append(named[b.host], i)
			}
			for _, list := range others {
				for _, j := range list {
					a := &all[j]
					if !a.disagrees(b) || !hostsOverlap(a.host, b.host, &meets) || told[[2]int{j, i}] {
						continue
					}
					what := a.conflicts(b)
					if len(what) == 0 {
						continue
					}
					told[[2]int{j, i}] = true
					if len(told) > maxAmbiguities || meets > maxMeets {
						fs.refuse([]Kind{KindEndpointAmbiguity}, codeAmbiguity, b.ep.Pos, b.ep.Place.Path, "make the endpoints reported so far agree",
							"more endpoints overlap, or may overlap, and disagree than can be listed")
						return
					}
					fs.ambiguous(a, b, what)
				}
			}
		}
	}
}

func number[K comparable](seen map[K]int, k K) int {
	n, ok := seen[k]
	if !ok {
		n = len(seen)
		seen[k] = n
	}
	return n
}

// disagrees reports whether two endpoints can be in conflict when their hosts and paths overlap.
func (a *overlapEntry) disagrees(b *overlapEntry) bool {
	return a.connection != b.connection || a.request != b.request && a.contributes && b.contributes
}

func (a *overlapEntry) conflicts(b *overlapEntry) conflicts {
	c := connectionConflicts(a.ep, b.ep)
	if a.contributes && b.contributes && pathRank(a.ep.Path) == pathRank(b.ep.Path) {
		if more := requestConflicts(a.ep, b.ep); len(more) > 0 && pathsOverlap(a.ep.Path, b.ep.Path) {
			c = append(c, more...)
		}
	}
	return c
}

func (fs *findings) ambiguous(a, b *overlapEntry, what conflicts) {
	first, second := a, b
	if b.ep.Pos < a.ep.Pos {
		first, second = b, a
	}
	fs.refuse([]Kind{KindEndpointAmbiguity}, codeAmbiguity, second.ep.Pos, second.ep.Place.Path,
		"make the two agree, or take the host or port out of one of them",
		"%s %s and %s %s can name the same host and port and disagree on %s", clip(first.rule.Slug), first.ep.selector(), clip(second.rule.Slug), second.ep.selector(),
		strings.Join(what, ", "))
	f := &(*fs)[len(*fs)-1]
	f.Origin = second.rule.Origin
	f.Diagnostic = f.WithRelated(first.ep.Pos, "the other endpoint")
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

// connectionTraits is what two endpoints on one host and port always have to agree on.
type connectionTraits struct {
	tcp, skip bool
	ips       string
}

func connectionOf(e *Endpoint) connectionTraits {
	return connectionTraits{e.isTCP(), e.saysSkip(), ipSet(e)}
}

func connectionConflicts(a, b *Endpoint) conflicts {
	var c conflicts
	x, y := connectionOf(a), connectionOf(b)
	differ(&c, "protocol tcp", x.tcp, y.tcp)
	differ(&c, "tls skip", x.skip, y.skip)
	differ(&c, "allowed_ips", x.ips, y.ips)
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

// requestTraits is what two endpoints have to agree on when both decide how a request is read. The last three are compared within a protocol only and zero
// where the protocol has no such setting.
type requestTraits struct {
	protocol                           string
	enforce, slash, websocket, body    bool
	signing, service, region, provider string
	graphQL, strictTools               bool
	limit                              uint32
}

func requestOf(e *Endpoint) requestTraits {
	t := requestTraits{enforce: strings.EqualFold(e.Enforcement, "enforce"), slash: e.AllowEncodedSlash, websocket: e.WebsocketCredentialRewrite, body: e.RequestBodyCredentialRewrite,
		signing: e.CredentialSigning, service: e.SigningService, region: e.SigningRegion, provider: e.provider()}
	if !e.isTCP() {
		t.protocol = lower(e.Protocol)
	}
	switch t.protocol {
	case "websocket":
		t.graphQL = e.websocketGraphQL()
	case "graphql":
		t.limit = bodyLimit(e.GraphQLMaxBodyBytes)
	case "mcp":
		t.limit, t.strictTools = bodyLimit(e.rpcBodyBytes()), e.strictToolNames()
	case "json-rpc":
		t.limit = bodyLimit(e.rpcBodyBytes())
	}
	return t
}

func requestConflicts(a, b *Endpoint) conflicts {
	var c conflicts
	x, y := requestOf(a), requestOf(b)
	differ(&c, "protocol", x.protocol, y.protocol)
	differ(&c, "enforcement", x.enforce, y.enforce)
	differ(&c, "allow_encoded_slash", x.slash, y.slash)
	differ(&c, "websocket_credential_rewrite", x.websocket, y.websocket)
	differ(&c, "request_body_credential_rewrite", x.body, y.body)
	differ(&c, "credential_signing", x.signing, y.signing)
	differ(&c, "signing_service", x.service, y.service)
	differ(&c, "signing_region", x.region, y.region)
	differ(&c, "credential_binding.provider", x.provider, y.provider)
	if x.protocol != y.protocol {
		return c
	}
	differ(&c, "GraphQL policy of websocket", x.graphQL, y.graphQL)
	limit := "max_body_bytes"
	if x.protocol == "graphql" {
		limit = "graphql_max_body_bytes"
	}
	differ(&c, limit, x.limit, y.limit)
	differ(&c, "mcp.strict_tool_names", x.strictTools, y.strictTools)
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

func (e *Endpoint) allowsAllMCP() bool { return e.MCP != nil && isTrue(e.MCP.AllowAllKnownMCPMethods) }

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

// hostsOverlap is the gateway's test: * is any run without a dot, ** any run, everything else stands for itself; an empty host names all. meets counts the
// comparisons that take long; beyond the limit the answer is yes.
func hostsOverlap(a, b string, meets *int) bool {
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
	if *meets++; *meets > maxMeets {
		return true
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

// routeAutomaton reads an endpoint path as the proxy does to choose a parser: what stands in front of a final /** is taken literally, and stands for itself, too.
func routeAutomaton(pattern string) (automaton, bool) {
	dir, below := strings.CutSuffix(pattern, "/**")
	if !below {
		return selectAutomaton(pattern)
	}
	var a automaton
	a.readText(dir)
	a.states = append(a.states, autoState{step: oneRune('/'), steps: true, skip2: true})
	a.star(anyRune)
	a.end()
	return a, true
}

// selectAutomaton reads an endpoint path in the dialect of Rust's glob crate without literal separators, which the gateway compares paths in and the proxy uses for
// what routeAutomaton does not know.
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
