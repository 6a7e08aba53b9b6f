package openshell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Witness shows why one policy allows more than another.
type Witness struct {
	// Request passes under the looser policy only; nil when What is about something other than requests.
	Request *Request
	What    string
}

// String returns the witness as a phrase.
func (w Witness) String() string {
	if w.Request == nil {
		return w.What
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s to %s:%d", w.Request.Binary, w.Request.Host, w.Request.Port)
	if len(w.Request.Ancestors) > 0 {
		fmt.Fprintf(&b, " (under %s)", strings.Join(w.Request.Ancestors, ", "))
	}
	if w.Request.Method != "" {
		fmt.Fprintf(&b, " %s %s", w.Request.Method, w.Request.Path)
	}
	return b.String() + ": " + w.What
}

// Looser reports whether next allows anything that base does not, with a witness. It is sound: when it says no, no request of any binary to any
// host and port with any method, path and body passes under next and not under base, and no other section of next is weaker. What it cannot
// compare counts as looser. One difference is left out on purpose: a name written out may resolve to a private address, a wildcard may not, so that
// naming a host of an allowed wildcard would always count.
func Looser(base, next *Policy) (Witness, bool) {
	if what := looserSections(base, next); what != "" {
		return Witness{What: what}, true
	}
	c := &comparer{base: NewDecider(base), next: NewDecider(next)}
	return c.compare(base, next)
}

func looserSections(base, next *Policy) string {
	defaults := &Filesystem{IncludeWorkdir: true}
	bf, nf := base.Filesystem, next.Filesystem
	if bf == nil {
		bf = defaults
	}
	if nf == nil {
		nf = defaults
	}
	if nf.IncludeWorkdir && !bf.IncludeWorkdir {
		return "filesystem_policy.include_workdir false -> true"
	}
	for _, p := range nf.ReadWrite {
		if !underAny(p, bf.ReadWrite) {
			return "filesystem_policy.read_write gains " + p
		}
	}
	for _, p := range nf.ReadOnly {
		if !underAny(p, bf.ReadOnly) && !underAny(p, bf.ReadWrite) {
			return "filesystem_policy.read_only gains " + p
		}
	}
	hard := func(p *Policy) bool { return p.Landlock != nil && p.Landlock.Compatibility == "hard_requirement" }
	if hard(base) && !hard(next) {
		return "landlock.compatibility hard_requirement -> best_effort"
	}
	var bp, np Process
	if base.Process != nil {
		bp = *base.Process
	}
	if next.Process != nil {
		np = *next.Process
	}
	if bp.RunAsUser != np.RunAsUser || bp.RunAsGroup != np.RunAsGroup {
		return fmt.Sprintf("process %q/%q -> %q/%q", bp.RunAsUser, bp.RunAsGroup, np.RunAsUser, np.RunAsGroup)
	}
	if printed(&Policy{Middlewares: base.Middlewares}) != printed(&Policy{Middlewares: next.Middlewares}) {
		return "network_middlewares differ"
	}
	return ""
}

func printed(p *Policy) string { return string(Print(p)) }

// underAny reports whether a path is one of the roots or below one. The text decides: a root of / covers everything.
func underAny(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool {
		r = strings.TrimRight(r, "/")
		return p == r || strings.HasPrefix(p, r+"/")
	})
}

type comparer struct {
	base, next *Decider
	binaries   []string
	texts      map[*Endpoint]string
}

// tooMany is the witness of a comparison that gave up.
func tooMany(what string) (Witness, bool) {
	return Witness{What: "cannot be compared: " + what}, true
}

func (c *comparer) compare(base, next *Policy) (Witness, bool) {
	hostGlobs, binaryGlobs := map[string]*glob{}, map[string]*glob{}
	for _, p := range []*Policy{base, next} {
		for i := range p.Rules {
			for k := range p.Rules[i].Endpoints {
				host := lower(p.Rules[i].Endpoints[k].Host)
				if g, err := hostPattern(host); err == nil && host != "" {
					hostGlobs[host] = g
				}
			}
			for _, b := range p.Rules[i].Binaries {
				if g, err := binaryPattern(b.Path); err == nil {
					binaryGlobs[b.Path] = g
				}
			}
		}
	}
	hosts, ok := representatives(sortedValues(hostGlobs), hostShape)
	if !ok {
		return tooMany("host patterns overlap too much")
	}
	if c.binaries, ok = representatives(sortedValues(binaryGlobs), binaryShape); !ok {
		return tooMany("binary patterns overlap too much")
	}
	c.texts = map[*Endpoint]string{}
	// One more host stands for those that only endpoints without a host name.
	for _, h := range append(hosts, freshLabel+".invalid") {
		if w, looser := c.host(h); looser {
			return w, true
		}
	}
	return Witness{}, false
}

func sortedValues(m map[string]*glob) []*glob {
	out := make([]*glob, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// named returns the endpoints that name a host, for any port and binary.
func (d *Decider) named(host string) []*decideEndpoint {
	var out []*decideEndpoint
	d.naming(host, func(id int32) { out = append(out, &d.eps[id]) })
	return out
}

func (c *comparer) host(host string) (Witness, bool) {
	inNext := c.next.named(host)
	inBase := c.base.named(host)
	ports := map[uint16]bool{}
	for _, e := range inNext {
		for _, p := range e.ports {
			ports[p] = true
		}
	}
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		groups, ok := c.groups(port, inBase, inNext)
		if !ok {
			return tooMany("too many rules name " + host)
		}
		for _, bins := range groups {
			r := &Request{Binary: bins[0], Ancestors: bins[1:], Host: host, Port: port}
			if w, looser := c.connection(r); looser {
				return w, true
			}
		}
	}
	return Witness{}, false
}

// maxGroups bounds the sets of executables that one host is compared for.
const maxGroups = 256

// groups returns sets of executables, one for each set of rules that a process and its ancestors can match together.
func (c *comparer) groups(port uint16, inBase, inNext []*decideEndpoint) ([][]string, bool) {
	type ref struct {
		d    *Decider
		rule int32
	}
	var rules []ref
	for _, side := range []struct {
		d   *Decider
		eps []*decideEndpoint
	}{{c.base, inBase}, {c.next, inNext}} {
		for _, e := range side.eps {
			if r := (ref{side.d, e.rule}); slices.Contains(e.ports, port) && !slices.Contains(rules, r) {
				rules = append(rules, r)
			}
		}
	}
	if len(rules) > 64 {
		return nil, false
	}
	sets := map[uint64][]string{}
	var order []uint64
	for _, b := range c.binaries {
		mask := uint64(0)
		for i, r := range rules {
			if r.d.rules[r.rule].matches(&Request{Binary: b}) {
				mask |= 1 << i
			}
		}
		if mask != 0 && sets[mask] == nil {
			sets[mask] = []string{b}
			order = append(order, mask)
		}
	}
	single := len(order)
	for i := 0; i < len(order); i++ {
		for _, m := range order[:single] {
			if u := order[i] | m; sets[u] == nil {
				sets[u] = append(slices.Clone(sets[order[i]]), sets[m]...)
				order = append(order, u)
			}
		}
		if len(order) > maxGroups {
			return nil, false
		}
	}
	out := make([][]string, len(order))
	for i, m := range order {
		out[i] = sets[m]
	}
	return out, true
}

func passes(d Decision) bool { return d.Answer != Deny }

// connection compares everything that one set of executables can do on one host and port.
func (c *comparer) connection(r *Request) (Witness, bool) {
	inNext, inBase := c.next.endpoints(r), c.base.endpoints(r)
	if len(inNext) == 0 || c.next.poison != "" {
		return Witness{}, false
	}
	if len(inBase) > 0 && c.base.poison == "" {
		if what := looserReach(inBase, inNext); what != "" {
			return Witness{r, what}, true
		}
		if c.sameRules(inBase, inNext) {
			return Witness{}, false
		}
		if !anyInspected(inBase) {
			return Witness{}, false // base lets everything through
		}
	}
	if !anyInspected(inNext) {
		what := "deny -> allow"
		if len(inBase) > 0 {
			what = "inspected -> not inspected"
		}
		return Witness{r, what}, true
	}
	return c.requests(r, inBase, inNext)
}

// endpoints returns the endpoints that a connection matches.
func (d *Decider) endpoints(r *Request) []*decideEndpoint {
	var dec Decision
	var out []*decideEndpoint
	for _, id := range d.connection(r, nil, &dec) {
		out = append(out, &d.eps[id])
	}
	return out
}

func anyInspected(es []*decideEndpoint) bool {
	return slices.ContainsFunc(es, func(e *decideEndpoint) bool { return e.protocol != "" })
}

// looserReach compares what decides where a connection may go once it is allowed.
func looserReach(base, next []*decideEndpoint) string {
	some := func(es []*decideEndpoint, f func(*Endpoint) bool) bool {
		return slices.ContainsFunc(es, func(e *decideEndpoint) bool { return f(e.source) })
	}
	ips := func(es []*decideEndpoint) string {
		all := &Endpoint{}
		for _, e := range es {
			all.AllowedIPs = append(all.AllowedIPs, e.source.AllowedIPs...)
		}
		return ipSet(all)
	}
	skip := func(e *Endpoint) bool { return e.skipsTLS() }
	tcp := func(e *Endpoint) bool { return e.isTCP() }
	uninspected := func(e *Endpoint) bool { return e.AllowUninspectedCredentials }
	switch {
	case ips(base) != ips(next):
		return fmt.Sprintf("allowed_ips [%s] -> [%s]", ips(base), ips(next))
	case some(next, skip) && !some(base, skip):
		return "tls automatic -> skip"
	case some(next, tcp) && !some(base, tcp):
		return "protocol -> tcp"
	case some(next, uninspected) && !some(base, uninspected):
		return "allow_uninspected_credentials false -> true"
	}
	return ""
}

// sameRules reports whether the endpoints ask the same of a request, whatever host pattern brought them in.
func (c *comparer) sameRules(a, b []*decideEndpoint) bool {
	text := func(es []*decideEndpoint) []string {
		var out []string
		for _, e := range es {
			if e.protocol == "" && len(e.allows) == 0 && len(e.denies) == 0 {
				continue
			}
			t, ok := c.texts[e.source]
			if !ok {
				cp := *e.source
				cp.Host, cp.Port, cp.Ports = "", 0, nil
				t = printed(&Policy{Rules: []Rule{{Endpoints: []Endpoint{cp}}}})
				c.texts[e.source] = t
			}
			out = append(out, t)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(text(a), text(b))
}

// maxUnknowns bounds the matchers of queries and bodies that are tried in every combination.
const maxUnknowns = 6

// requests compares every method, path, query and body.
func (c *comparer) requests(r *Request, inBase, inNext []*decideEndpoint) (Witness, bool) {
	all := slices.Concat(inBase, inNext)
	paths, ok := pathsFor(all)
	if !ok {
		return tooMany("path patterns of " + r.Host)
	}
	methods := []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "WEBSOCKET_TEXT", "ANY-METHOD"}
	var unknowns []string
	for _, e := range all {
		if e.allowsAll && e.narrowed {
			unknowns = append(unknowns, callBody)
		}
		for i, rules := range [][]decideL7{e.allows, e.denies} {
			for k := range rules {
				l := &rules[k]
				methods = append(methods, l.method)
				if l.bodyText != "" && l.op != "*" {
					unknowns = append(unknowns, l.bodyText)
				}
				for q := range l.query {
					unknowns = append(unknowns, [...]string{"allow ", "deny "}[i]+l.query[q].text)
				}
			}
		}
	}
	methods = distinct(methods)
	unknowns = distinct(unknowns)
	if len(unknowns) > maxUnknowns {
		return tooMany("query and body rules of " + r.Host)
	}
	for _, m := range methods {
		if m == "" || m == "*" {
			continue
		}
		for _, p := range paths {
			for bits := range 1 << len(unknowns) {
				q := *r
				q.Method, q.Path = m, p
				o := func(id string) bool {
					i, ok := slices.BinarySearch(unknowns, id)
					return ok && bits>>i&1 == 1
				}
				dn, cn := c.next.decide(&q, o)
				if !passes(dn) {
					continue
				}
				db, cb := c.base.decide(&q, o)
				if !passes(db) {
					return Witness{&q, db.Answer.String() + " -> " + dn.Answer.String()}, true
				}
				if what := looserSettings(cb, cn); what != "" {
					return Witness{&q, what}, true
				}
			}
		}
	}
	return Witness{}, false
}

func distinct(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// pathsFor returns paths that stand for all paths as far as the endpoints can tell them apart.
func pathsFor(es []*decideEndpoint) ([]string, bool) {
	patterns := [][]automaton{{func() automaton { var a automaton; a.star(anyRune); a.end(); return a }()}}
	seen := map[string]bool{}
	ok := true
	add := func(g *glob) {
		if g == nil {
			return
		}
		for _, a := range g.automata() {
			// Escapes and path parameters never reach a rule as they are written, so texts with them stand for nothing.
			if slices.ContainsFunc(a.states, func(s autoState) bool {
				return s.steps && (s.step.has('%') || s.step.has(';')) && !s.step.not
			}) {
				ok = false
			}
		}
		if k := fmt.Sprint(g.literal, g.alts); !seen[k] {
			seen[k] = true
			patterns = append(patterns, g.automata())
		}
	}
	for _, e := range es {
		add(e.path)
		if e.path != nil {
			if !e.selectOK {
				ok = false
			} else if !seen["select "+e.pathText] {
				seen["select "+e.pathText] = true
				patterns = append(patterns, []automaton{e.selector})
			}
		}
		for _, rules := range [][]decideL7{e.allows, e.denies} {
			for i := range rules {
				add(rules[i].path)
			}
		}
	}
	if !ok {
		return nil, false
	}
	var paths []string
	ok = exploreAutomata(patterns, pathShape, func(_ []int, w string) bool {
		paths = append(paths, w)
		return true
	})
	return paths, ok
}

// looserSettings compares how a request is read and signed; nil is a connection that is not inspected.
func looserSettings(base, next *decideEndpoint) string {
	if base == nil || next == nil {
		if base != nil {
			return "inspected -> not inspected"
		}
		return ""
	}
	b, n := base.source, next.source
	switch {
	case base.protocol != next.protocol:
		return "protocol " + base.protocol + " -> " + next.protocol
	case n.AllowEncodedSlash && !b.AllowEncodedSlash:
		return "allow_encoded_slash false -> true"
	case b.strictToolNames() && !n.strictToolNames():
		return "mcp.strict_tool_names true -> false"
	case bodyLimit(n.GraphQLMaxBodyBytes) > bodyLimit(b.GraphQLMaxBodyBytes), bodyLimit(n.rpcBodyBytes()) > bodyLimit(b.rpcBodyBytes()):
		return "body limit grows"
	case b.WebsocketCredentialRewrite != n.WebsocketCredentialRewrite, b.RequestBodyCredentialRewrite != n.RequestBodyCredentialRewrite,
		b.CredentialSigning != n.CredentialSigning, b.SigningService != n.SigningService, b.SigningRegion != n.SigningRegion, b.provider() != n.provider():
		return "credential handling differs"
	case queryRegistry(b) != queryRegistry(n):
		return "persisted queries differ"
	}
	return ""
}

func queryRegistry(e *Endpoint) string {
	return printed(&Policy{Rules: []Rule{{Endpoints: []Endpoint{{PersistedQueries: e.PersistedQueries, GraphQLPersistedQueries: e.GraphQLPersistedQueries}}}}})
}
