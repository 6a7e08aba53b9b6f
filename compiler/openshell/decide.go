package openshell

import (
	"fmt"
	"slices"
	"strings"
)

// Request is one question to a policy. Binary and Ancestors are paths as the kernel resolves them. Without Method it asks for the connection alone.
// Path may carry a query. Call is what the body of a graphql, json-rpc or mcp request says.
type Request struct {
	Binary    string
	Ancestors []string
	Host      string
	Port      uint16
	Method    string
	Path      string
	Call      *Call
}

// Call is the part of a request body that rules look at: a GraphQL operation, or a JSON-RPC method and, for mcp, the tool.
type Call struct {
	OperationType string
	OperationName string
	Fields        []string // root fields
	Method        string
	Tool          string
}

// Answer is what happens to a request.
type Answer uint8

// Deny refuses, Allow lets pass, Audit lets a violation pass and logs it.
const (
	Deny Answer = iota
	Allow
	Audit
)

// String returns deny, allow or audit.
func (a Answer) String() string { return [...]string{"deny", "allow", "audit"}[a] }

// Reason says why a request got its answer.
type Reason uint8

// Reasons for an answer.
const (
	ReasonNoHost      Reason = iota // no endpoint names the host
	ReasonNoPort                    // an endpoint names the host, none the port
	ReasonNoBinary                  // an endpoint matches, its rule is for other binaries
	ReasonConnection                // a rule matches and nothing is inspected
	ReasonNeedsMethod               // the connection is allowed, requests on it are inspected
	ReasonAllowRule                 // an allow rule or preset matches
	ReasonDenyRule                  // a deny rule matches
	ReasonNoRule                    // no allow rule matches
	ReasonBadPath                   // the path is one OpenShell refuses to judge
	ReasonNoPath                    // several inspected endpoints, none for the path
	ReasonNotUpgrade                // a websocket endpoint takes upgrades and text frames only
	ReasonNeedsCall                 // the answer lies in the request body, which was not given
	ReasonBadCall                   // the body is one that OpenShell refuses
	ReasonPassThrough               // protocol sql is not inspected yet
	ReasonPoisoned                  // a pattern does not compile, evaluation fails
	ReasonBuiltin                   // OpenShell handles the name itself
)

var reasonText = [...]string{
	"no endpoint names the host",
	"an endpoint names the host, none this port",
	"an endpoint matches, its rule is for other binaries",
	"a rule matches and its connections are not inspected",
	"the connection is allowed, each request on it is inspected: give a method and a path",
	"an allow rule matches",
	"a deny rule matches",
	"no allow rule matches",
	"OpenShell refuses the path",
	"several inspected endpoints match and none is for the path",
	"a websocket endpoint takes upgrades (GET) and WEBSOCKET_TEXT only",
	"the answer lies in the request body, which is not given",
	"OpenShell refuses the request body",
	"protocol sql is not inspected yet",
	"a pattern does not compile, so that OpenShell cannot evaluate the policy",
	"OpenShell handles this name itself, outside the policy",
}

// String returns the reason as a phrase.
func (r Reason) String() string { return reasonText[r] }

// Decision is the answer to a Request.
type Decision struct {
	Answer Answer
	Reason Reason
	// Policy is the slug OpenShell reports: the smallest of all matching rules. Endpoint is the index of its first endpoint that matches.
	// Policy is empty when no rule matches.
	Policy   string
	Endpoint int
	// By is where the deciding rule or endpoint stands; for ReasonNoPort and ReasonNoBinary the one that came closest.
	By Spot
	// Detail adds to the reason, such as what is wrong with the path.
	Detail string
}

// Spot names an endpoint of a policy and, when Rule is not negative, one of its allow rules or deny rules.
type Spot struct {
	Slug     string
	Endpoint int
	Rule     int
	Deny     bool
}

// String returns the key path of the spot, "" for the zero Spot.
func (s Spot) String() string {
	switch {
	case s.Slug == "":
		return ""
	case s.Rule < 0:
		return fmt.Sprintf("%s.endpoints[%d]", s.Slug, s.Endpoint)
	case s.Deny:
		return fmt.Sprintf("%s.endpoints[%d].deny_rules[%d]", s.Slug, s.Endpoint, s.Rule)
	}
	return fmt.Sprintf("%s.endpoints[%d].rules[%d]", s.Slug, s.Endpoint, s.Rule)
}

// Decider answers requests as OpenShell's rules would. It is compiled once and safe for concurrent use.
//
// It decides what the policy decides: not the address a name resolves to (loopback, private networks, allowed_ips) and not credentials. A policy
// that Check refuses has no answer in OpenShell; a Decider then reads each part by itself.
type Decider struct {
	rules  []decideRule
	eps    []decideEndpoint
	exact  map[string][]int32 // endpoints by lower-case host, ascending
	tails  map[string][]int32 // endpoints whose pattern ends in a fixed name, by that name
	wild   []int32            // the others
	poison string             // a pattern whose evaluation fails for every request
}

type decideRule struct {
	slug     string
	binaries []*glob
}

type decideEndpoint struct {
	rule      int32
	index     int32
	host      *glob // nil for any host
	ports     []uint16
	protocol  string // lower case; "" when nothing is inspected
	enforce   bool
	path      *glob // nil for every path
	pathText  string
	selector  automaton
	selectOK  bool
	rank      int
	allows    []decideL7
	denies    []decideL7
	allowsAll bool // mcp: every method, but for narrowed
	narrowed  bool // mcp: an allow rule names tools, so tools/call needs one
	denyAll   bool // a deny rule matches every request
	source    *Endpoint
	poison    string
}

type decideL7 struct {
	index    int
	method   string // upper case, or * for any
	path     *glob  // nil for any
	query    []decideMatch
	op       string // graphql operation type in lower case, * for any, "" for none
	opName   *glob
	fields   []*glob
	rpc      *glob
	tool     *decideMatch
	bodyText string // identifies what only the body can tell, for comparing policies
}

// toolsCall is the MCP method that calls a tool, callBody the bodyText of a rule for it.
const (
	toolsCall = "tools/call"
	callBody  = "mcp " + toolsCall
)

type decideMatch struct {
	name  string
	globs []*glob
	text  string
}

func (m *decideMatch) match(s string) bool {
	return slices.ContainsFunc(m.globs, func(g *glob) bool { return g.match(s) })
}

// NewDecider compiles a policy.
func NewDecider(p *Policy) *Decider {
	d := &Decider{exact: map[string][]int32{}, tails: map[string][]int32{}}
	for i := range p.Rules {
		r := &p.Rules[i]
		dr := decideRule{slug: r.Slug}
		for _, b := range r.Binaries {
			g, err := binaryPattern(b.Path)
			if err != nil {
				d.poison = b.Path
				continue
			}
			dr.binaries = append(dr.binaries, g)
		}
		d.rules = append(d.rules, dr)
		for k := range r.Endpoints {
			d.endpoint(int32(i), int32(k), &r.Endpoints[k])
		}
	}
	return d
}

func (d *Decider) endpoint(rule, index int32, e *Endpoint) {
	de := decideEndpoint{rule: rule, index: index, source: e, ports: e.EffectivePorts(), enforce: e.enforced(), rank: pathRank(e.Path), pathText: e.Path}
	id := int32(len(d.eps))
	switch g, err := hostPattern(e.Host); {
	case err != nil:
		d.poison = e.Host
		return
	case e.Host == "" && len(e.AllowedIPs) == 0:
		return
	case e.Host == "":
		d.wild = append(d.wild, id)
	case isLiteral(g):
		de.host = g
		d.exact[g.literal] = append(d.exact[g.literal], id)
	default:
		de.host = g
		if _, name, ok := strings.Cut(g.tail(), "."); ok {
			d.tails[name] = append(d.tails[name], id)
		} else {
			d.wild = append(d.wild, id)
		}
	}
	if e.inspected() {
		de.protocol = lower(e.Protocol)
	}
	compile := func(pattern string, sep byte) *glob {
		g, err := compileGlob(pattern, sep)
		if err != nil {
			de.poison = pattern
			return &glob{}
		}
		return g
	}
	if e.Path != "" && e.Path != "**" {
		de.path = compile(e.Path, '/')
		de.selector, de.selectOK = routeAutomaton(e.Path)
	}
	de.allows = compilePreset(e.Protocol, e.Access)
	for i := range e.Rules {
		de.allows = append(de.allows, compileL7(&e.Rules[i], i, lower(e.Protocol), compile))
	}
	for i := range e.DenyRules {
		r := compileL7(&e.DenyRules[i], i, lower(e.Protocol), compile)
		de.denies = append(de.denies, r)
		de.denyAll = de.denyAll || de.protocol != "" && de.path == nil && r.method == "*" && r.path == nil && len(r.query) == 0 && r.op == "" && r.rpc == nil
	}
	de.allowsAll = de.protocol == "mcp" && e.allowsAllMCP()
	de.narrowed = slices.ContainsFunc(e.Rules, func(r L7Rule) bool { return r.toolMatch() != nil })
	d.eps = append(d.eps, de)
}

// compilePreset writes an access preset out as rules. OpenShell does so for every protocol text, "" and Websocket included, as for rest: a preset without protocol
// inspects nothing, and allows what it names on a connection that another endpoint has inspected.
func compilePreset(protocol, access string) []decideL7 {
	list := func(methods ...string) []decideL7 {
		rs := make([]decideL7, len(methods))
		for i, m := range methods {
			rs[i] = decideL7{index: -1, method: m}
		}
		return rs
	}
	operations := func(types ...string) []decideL7 {
		rs := make([]decideL7, len(types))
		for i, t := range types {
			rs[i] = decideL7{index: -1, op: t, bodyText: "graphql " + t}
		}
		return rs
	}
	switch protocol + " " + access {
	case "graphql read-only":
		return operations("query")
	case "graphql read-write":
		return operations("query", "mutation")
	case "graphql full":
		return operations("*")
	case "websocket read-only":
		return list("GET")
	case "websocket read-write":
		return list("GET", "WEBSOCKET_TEXT")
	}
	switch access {
	case "read-only":
		return list("GET", "HEAD", "OPTIONS")
	case "read-write":
		return list("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH")
	case "full":
		return list("*")
	}
	return nil
}

func compileL7(r *L7Rule, index int, protocol string, compile func(string, byte) *glob) decideL7 {
	out := decideL7{index: index, method: strings.ToUpper(r.Method), op: lower(r.OperationType)}
	if r.Path != "**" {
		out.path = compile(r.Path, '/')
	}
	matcher := func(name string, m *Match) decideMatch {
		dm := decideMatch{name: name, text: fmt.Sprintf("%q=%v%q", name, m.Any, m.Globs)}
		for _, g := range m.Globs {
			dm.globs = append(dm.globs, compile(g, '.'))
		}
		return dm
	}
	for _, q := range r.Query {
		if q.Match != nil {
			out.query = append(out.query, matcher(q.Name, q.Match))
		}
	}
	if r.OperationType != "" || r.OperationName != "" || len(r.Fields) > 0 {
		out.bodyText = fmt.Sprintf("graphql %s %q %q", out.op, r.OperationName, r.Fields)
		if out.op == "" {
			out.op = "?" // matches no operation, as in OpenShell
		}
		if r.OperationName != "" {
			out.opName = compile(r.OperationName, '.')
		}
		for _, f := range r.Fields {
			out.fields = append(out.fields, compile(f, '.'))
		}
	}
	if protocol == "mcp" || protocol == "json-rpc" {
		method, t := r.Method, r.toolMatch()
		if method == "" && protocol == "mcp" {
			method = "*"
			if t != nil {
				method = toolsCall
			}
		}
		out.rpc = compile(method, '.')
		out.bodyText = protocol + " " + method
		if t != nil {
			m := matcher("name", t)
			out.tool = &m
			out.bodyText += " " + m.text
		}
	}
	return out
}

// oracle answers what a request does not say, for comparing policies: whether a query or body matches the identified matcher.
type oracle func(id string) bool

// Decide answers a request.
func (d *Decider) Decide(r *Request) Decision {
	dec, _ := d.decide(r, nil)
	return dec
}

// decide also returns the endpoint whose settings OpenShell uses for the request, nil when nothing is inspected.
func (d *Decider) decide(r *Request, o oracle) (Decision, *decideEndpoint) {
	if r.Port == 443 && strings.EqualFold(r.Host, "inference.local") || r.Port == 80 && strings.EqualFold(r.Host, "policy.local") {
		return Decision{Answer: Allow, Reason: ReasonBuiltin}, nil
	}
	if d.poison != "" {
		return Decision{Reason: ReasonPoisoned, Detail: d.poison}, nil
	}
	var space [256]int32
	var dec Decision
	matched := d.connection(r, space[:0], &dec)
	if len(matched) == 0 {
		return dec, nil
	}
	first := &d.eps[matched[0]]
	for _, id := range matched[1:] {
		if d.eps[id].rule < first.rule || d.eps[id].rule == first.rule && d.eps[id].index < first.index {
			first = &d.eps[id]
		}
	}
	dec = Decision{Answer: Allow, Reason: ReasonConnection, Policy: d.rules[first.rule].slug, Endpoint: int(first.index), By: d.spot(first, nil, false)}
	config := d.config(r, matched, &dec)
	if config != nil {
		d.request(r, matched, config, &dec, o)
	}
	return dec, config
}

// connection returns the endpoints whose host, port and binaries match.
func (d *Decider) connection(r *Request, matched []int32, dec *Decision) []int32 {
	host := lower(r.Host)
	lastRule, lastOK := int32(-1), false
	try := func(id int32) {
		e := &d.eps[id]
		if !slices.Contains(e.ports, r.Port) {
			if dec.Reason == ReasonNoHost {
				dec.Reason, dec.By = ReasonNoPort, d.spot(e, nil, false)
			}
			return
		}
		if e.rule != lastRule {
			lastRule, lastOK = e.rule, d.rules[e.rule].matches(r)
		}
		if lastOK {
			matched = append(matched, id)
		} else if dec.Reason != ReasonNoBinary {
			dec.Reason, dec.By = ReasonNoBinary, d.spot(e, nil, false)
		}
	}
	d.naming(host, try)
	return matched
}

// naming calls visit for the endpoints whose host pattern names a lower-case host: those written out, then those with the longest fixed name, then the others.
func (d *Decider) naming(host string, visit func(id int32)) {
	for _, id := range d.exact[host] {
		visit(id)
	}
	for rest, more := host, len(d.tails) > 0; more; {
		if _, rest, more = strings.Cut(rest, "."); more {
			for _, id := range d.tails[rest] {
				if d.eps[id].host.match(host) {
					visit(id)
				}
			}
		}
	}
	for _, id := range d.wild {
		if e := &d.eps[id]; e.host == nil || e.host.match(host) {
			visit(id)
		}
	}
}

func (r *decideRule) matches(q *Request) bool {
	for _, g := range r.binaries {
		if g.match(q.Binary) {
			return true
		}
		for _, a := range q.Ancestors {
			if g.match(a) {
				return true
			}
		}
	}
	return false
}

// spot names an endpoint and, when rule is not nil, a rule of it.
func (d *Decider) spot(e *decideEndpoint, rule *decideL7, deny bool) Spot {
	s := Spot{d.rules[e.rule].slug, int(e.index), -1, deny}
	if rule != nil {
		s.Rule = rule.index
	}
	return s
}

// config chooses the inspected endpoint whose settings hold for the request: the only one, else the one with the most specific path that matches.
func (d *Decider) config(r *Request, matched []int32, dec *Decision) *decideEndpoint {
	var only, best *decideEndpoint
	n := 0
	path, _, _ := strings.Cut(r.Path, "?")
	for _, id := range matched {
		e := &d.eps[id]
		if e.protocol == "" {
			continue
		}
		n++
		only = e
		if (best == nil || e.rank > best.rank) && (r.Method == "" || e.selects(path)) {
			best = e
		}
	}
	switch {
	case n == 1:
		return only
	case n > 1 && best == nil:
		*dec = Decision{Reason: ReasonNoPath, Policy: dec.Policy, Endpoint: dec.Endpoint, By: d.spot(only, nil, false)}
	}
	return best
}

// selects compares the endpoint path in the proxy's dialect.
func (e *decideEndpoint) selects(path string) bool {
	if e.path == nil {
		return true
	}
	if canon, why := canonicalPath(path, true); why == "" {
		path = canon
	}
	return e.selectOK && e.selector.accepts(path)
}

// accepts runs the automaton.
func (a *automaton) accepts(s string) bool {
	n := len(a.states)
	cur, next := make([]bool, n+1), make([]bool, n+1)
	closure := func(set []bool) {
		for i := range n {
			if set[i] && a.states[i].skip {
				set[i+1] = true
			}
			if set[i] && a.states[i].skip2 {
				set[i+2] = true
			}
		}
	}
	cur[0] = true
	closure(cur)
	for _, r := range s {
		clear(next)
		for i := range n {
			if !cur[i] {
				continue
			}
			if st := &a.states[i]; st.loops && st.loop.has(r) {
				next[i] = true
			}
			if st := &a.states[i]; st.steps && st.step.has(r) {
				next[i+1] = true
			}
		}
		closure(next)
		cur, next = next, cur
	}
	return cur[n-1]
}

// request judges one request on an inspected connection.
func (d *Decider) request(r *Request, matched []int32, config *decideEndpoint, dec *Decision, o oracle) {
	answer := func(a Answer, why Reason, e *decideEndpoint, rule *decideL7, deny bool) {
		dec.Answer, dec.Reason, dec.By = a, why, d.spot(e, rule, deny)
	}
	if config.protocol == "sql" {
		answer(Allow, ReasonPassThrough, config, nil, false)
		return
	}
	if r.Method == "" {
		dec.Reason = ReasonNeedsMethod
		for _, id := range matched {
			if e := &d.eps[id]; e.denyAll && config.enforce {
				answer(Deny, ReasonDenyRule, e, nil, false)
				return
			}
		}
		return
	}
	path, query, _ := strings.Cut(r.Path, "?")
	path, why := canonicalPath(path, config.source.AllowEncodedSlash)
	if why != "" {
		answer(Deny, ReasonBadPath, config, nil, false)
		dec.Detail = why
		return
	}
	q := l7Request{r: r, path: path, query: query, o: o}
	switch config.protocol {
	case "websocket":
		if !strings.EqualFold(r.Method, "GET") && !strings.EqualFold(r.Method, "WEBSOCKET_TEXT") {
			answer(Deny, ReasonNotUpgrade, config, nil, false)
			return
		}
	case "graphql":
		if r.Call == nil && o == nil {
			answer(Deny, ReasonNeedsCall, config, nil, false)
			return
		}
		q.graphql = true
	case "json-rpc", "mcp":
		if strings.EqualFold(r.Method, "POST") {
			if r.Call == nil && o == nil {
				answer(Deny, ReasonNeedsCall, config, nil, false)
				return
			}
			if config.protocol == "mcp" && r.Call != nil && r.Call.Tool != "" && config.source.strictToolNames() && !isToolName(r.Call.Tool) {
				answer(Deny, ReasonBadCall, config, nil, false)
				dec.Detail = "the tool name has other characters than letters, digits, _ . -"
				return
			}
			q.rpc = true
		}
	}
	violation := Audit
	if config.enforce {
		violation = Deny
	}
	var allowedBy *decideEndpoint
	var allowRule *decideL7
	for _, id := range matched {
		e := &d.eps[id]
		if e.poison != "" {
			answer(Deny, ReasonPoisoned, e, nil, false)
			dec.Detail = e.poison
			return
		}
		if e.path != nil && !e.path.match(path) {
			continue
		}
		for i := range e.denies {
			if rule := &e.denies[i]; q.denied(e, rule) {
				answer(violation, ReasonDenyRule, e, rule, true)
				return
			}
		}
		rule, ok := q.allowed(e)
		if ok && allowedBy == nil {
			allowedBy, allowRule = e, rule
		}
		// A graphql endpoint that matches has the last word: what it does not allow a broader rule cannot.
		if !ok && e.protocol == "graphql" && q.graphql {
			answer(violation, ReasonNoRule, e, nil, false)
			return
		}
	}
	if allowedBy == nil {
		answer(violation, ReasonNoRule, config, nil, false)
		return
	}
	answer(Allow, ReasonAllowRule, allowedBy, allowRule, false)
}

func isToolName(s string) bool {
	return len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 || !isAlnum(byte(r)) && !strings.ContainsRune("_.-", r) }) < 0
}

// l7Request is a request with its path in canonical form, and which kind of body it has.
type l7Request struct {
	r            *Request
	path, query  string
	graphql, rpc bool
	o            oracle
}

func (q *l7Request) allowed(e *decideEndpoint) (*decideL7, bool) {
	if e.allowsAll && q.rpc && !(e.narrowed && q.isToolsCall()) {
		return nil, true
	}
	if e.protocol == "mcp" && strings.EqualFold(q.r.Method, "GET") {
		return nil, true // the stream on which a server sends
	}
	for i := range e.allows {
		if q.matches(e, &e.allows[i], false) {
			return &e.allows[i], true
		}
	}
	return nil, false
}

// isToolsCall reports a call of a tool; callBody identifies the question for an oracle.
func (q *l7Request) isToolsCall() bool {
	if q.o != nil {
		return q.o(callBody)
	}
	return q.r.Call.Method == toolsCall
}

func (q *l7Request) denied(e *decideEndpoint, rule *decideL7) bool { return q.matches(e, rule, true) }

// matches compares a request with an allow or a deny rule.
func (q *l7Request) matches(e *decideEndpoint, rule *decideL7, deny bool) bool {
	if rule.rpc != nil {
		if !q.rpc {
			return false
		}
		if q.o != nil {
			return q.o(rule.bodyText)
		}
		return rule.rpc.match(q.r.Call.Method) && (rule.tool == nil || rule.tool.match(q.r.Call.Tool))
	}
	if rule.op != "" {
		return q.operation(rule, deny)
	}
	if e.protocol == "graphql" && rule.method == "" {
		return false
	}
	return methodMatches(q.r.Method, rule.method) && (rule.path == nil || rule.path.match(q.path)) && q.queryMatches(rule.query, deny)
}

// operation compares the GraphQL operation: an allow rule must list all selected root fields, a deny rule one of them.
func (q *l7Request) operation(rule *decideL7, deny bool) bool {
	if q.o != nil {
		return rule.op == "*" || q.o(rule.bodyText)
	}
	c := q.r.Call
	if c == nil || c.OperationType == "" || rule.op != "*" && rule.op != lower(c.OperationType) || rule.opName != nil && !rule.opName.match(c.OperationName) {
		return false
	}
	if len(rule.fields) == 0 {
		return true
	}
	listed := func(f string) bool { return slices.ContainsFunc(rule.fields, func(g *glob) bool { return g.match(f) }) }
	if deny {
		return slices.ContainsFunc(c.Fields, listed)
	}
	return len(c.Fields) > 0 && !slices.ContainsFunc(c.Fields, func(f string) bool { return !listed(f) })
}

func methodMatches(method, rule string) bool {
	return rule == "*" || strings.EqualFold(method, rule) || rule == "GET" && strings.EqualFold(method, "HEAD")
}

// queryMatches: an allow rule wants every listed name present and every value matching, a deny rule every name present and one value matching.
func (q *l7Request) queryMatches(want []decideMatch, deny bool) bool {
	for i := range want {
		m := &want[i]
		if q.o != nil {
			if id := "allow " + m.text; !deny && !q.o(id) || deny && !q.o("deny "+m.text) {
				return false
			}
			continue
		}
		seen, all, some := false, true, false
		queryValues(q.query, m.name, func(v string) bool {
			hit := m.match(v)
			seen, all, some = true, all && hit, some || hit
			return true
		})
		if !seen || deny && !some || !deny && !all {
			return false
		}
	}
	return true
}
