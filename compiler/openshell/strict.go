package openshell

import (
	"net/netip"
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// strictPolicy is halo's layer: what OpenShell accepts, and what then means less or more than it reads.
func (fs *findings) strictPolicy(p *Policy) {
	if p.Version != 1 {
		fs.strict(codeValue, p.At("version"), "version", "write version: 1", "version %d, only 1 is documented and OpenShell does not look", p.Version)
	}
	if l := p.Landlock; l != nil && l.Compatibility != "" && l.Compatibility != "hard_requirement" && l.Compatibility != "best_effort" {
		fs.strict(codeValue, l.At("compatibility"), "landlock.compatibility", "write hard_requirement or best_effort", "compatibility %q is read as best_effort", clip(l.Compatibility))
	}
	for i := range p.Rules {
		r, before := &p.Rules[i], len(*fs)
		if len(r.Endpoints) == 0 {
			fs.strict(codeNothing, r.At(""), r.Path, "add endpoints, or remove the rule", "rule %q has no endpoints and allows nothing", clip(r.Slug))
		}
		if len(r.Binaries) == 0 {
			fs.strict(codeNothing, r.At(""), r.Path, "add binaries", "rule %q has no binaries and matches no process", clip(r.Slug))
		}
		for k := range r.Binaries {
			fs.strictBinary(&r.Binaries[k])
		}
		for k := range r.Endpoints {
			fs.strictEndpoint(&r.Endpoints[k])
		}
		fs.from(before, r.Origin)
	}
}

func (fs *findings) strictBinary(b *Binary) {
	at := join(b.Place.Path, "path")
	switch {
	case !strings.HasPrefix(b.Path, "/"):
		fs.strict(codeNothing, b.At("path"), at, "write the absolute path of the executable", "binary %q is not an absolute path and matches no process", clip(b.Path))
	case !strings.Contains(b.Path, "*") && strings.ContainsAny(b.Path, "?[]{}"):
		fs.strict(codeNothing, b.At("path"), at, "use *, or list the paths", "binary %q has ?, [ or { but no *, so that it is compared as plain text", clip(b.Path))
	default:
		if _, err := binaryPattern(b.Path); err != nil {
			fs.poison(b.At("path"), at, b.Path, err)
		}
	}
}

func (fs *findings) poison(pos diag.Pos, at, pattern string, err error) {
	fs.strict(codePattern, pos, at, "close or escape it", "pattern %q does not compile: %s", clip(pattern), err)
}

func (fs *findings) strictEndpoint(e *Endpoint) {
	at := e.Place.Path
	strict := func(code *diag.Code, key, hint, format string, args ...any) {
		fs.strict(code, e.At(key), join(at, key), hint, format, args...)
	}
	if e.Port != 0 && len(e.Ports) > 0 {
		strict(codeBothPorts, "port", "list all of them in ports", "port %d is dropped because ports is there", e.Port)
	}
	proto := lower(e.Protocol)
	known := slices.Contains(inspectedProtocols, proto)
	if e.Protocol != proto && (known || proto == "tcp") {
		strict(codeValue, "protocol", "write "+proto, "protocol %q, some of OpenShell's checks know the lower-case form only", e.Protocol)
	}
	if !slices.Contains([]string{"", "skip", "terminate", "passthrough"}, e.TLS) {
		strict(codeValue, "tls", "write skip, or leave tls out", "tls %q is read as automatic", clip(e.TLS))
	}
	switch {
	case e.Enforcement != "" && e.Enforcement != "enforce" && e.Enforcement != "audit":
		strict(codeAudit, "enforcement", "write enforce", "enforcement %q is read as audit: violations pass", clip(e.Enforcement))
	case known && proto != "sql" && e.Enforcement != "enforce":
		strict(codeAudit, "enforcement", "add enforcement: enforce", "violations on %s are logged and pass, only enforcement: enforce blocks", e.selector())
	case proto == "sql" && !e.enforced():
		strict(codeAudit, "protocol", "leave protocol out and limit who may connect", "protocol sql is not inspected by any OpenShell yet: every statement passes")
	}
	if e.Protocol == "" {
		if dead := e.deadKeys(); len(dead) > 0 {
			strict(codeDead, dead[0], "add protocol: rest and enforcement: enforce, or remove "+strings.Join(dead, ", "), "%s without protocol: nothing is inspected and every request passes", strings.Join(dead, ", "))
		}
	}
	fs.strictHost(e)
	for i, ip := range e.AllowedIPs {
		if why := badAllowedIP(ip); why != "" {
			fs.strict(codeAllowedIPs, e.AtItem("allowed_ips", i), itemPath(at, "allowed_ips", i), "write an address or a network such as 10.0.5.0/24", "allowed_ips entry %q %s, every connection to the endpoint is refused", clip(ip), why)
		}
	}
	if e.Path != "" {
		if _, err := compileGlob(e.Path, '/'); err != nil {
			fs.poison(e.At("path"), join(at, "path"), e.Path, err)
		}
	}
	for i := range e.Rules {
		fs.strictRule(e, proto, &e.Rules[i], false)
	}
	for i := range e.DenyRules {
		fs.strictRule(e, proto, &e.DenyRules[i], true)
	}
}

func (e *Endpoint) deadKeys() []string {
	var out []string
	for _, k := range []struct {
		on  bool
		key string
	}{{e.Access != "", "access"}, {len(e.Rules) > 0, "rules"}, {e.Enforcement != "", "enforcement"}, {e.Path != "", "path"},
		{e.AllowEncodedSlash, "allow_encoded_slash"}, {e.PersistedQueries != "", "persisted_queries"}, {e.JSONRPC != nil, "json_rpc"}} {
		if k.on {
			out = append(out, k.key)
		}
	}
	return out
}

func (fs *findings) strictHost(e *Endpoint) {
	if strings.TrimSpace(e.Host) == "" || e.isTCP() {
		return // OpenShell itself is strict about tcp hosts
	}
	pos, at := e.At("host"), join(e.Place.Path, "host")
	host := lower(e.Host)
	if _, err := hostPattern(host); err != nil {
		fs.poison(pos, at, e.Host, err)
		return
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return
	}
	switch {
	case strings.Contains(host, "://"):
		fs.strict(codeName, pos, at, "write the host name alone", "host %q has a scheme and matches no request", clip(e.Host))
	case strings.ContainsAny(host, ":@/"):
		fs.strict(codeName, pos, at, "write the host name alone, and the port under port", "host %q has a port, user or path and matches no request", clip(e.Host))
	case strings.HasSuffix(host, "."):
		fs.strict(codeName, pos, at, "write "+strings.TrimRight(clip(e.Host), "."), "host %q ends in a dot and does not match the name without it", clip(e.Host))
	case host == "localhost" || strings.HasSuffix(host, ".localhost"):
		fs.strict(codeName, pos, at, "write host.openshell.internal for the machine the sandbox runs on", "host %q is loopback, which a sandbox can never reach", e.Host)
	case host == "metadata.google.internal" || host == "metadata.goog":
		fs.strict(codeName, pos, at, "remove the endpoint", "host %q is a metadata service, which a sandbox must not reach", e.Host)
	case badTCPHost(host) != "":
		fs.strict(codeName, pos, at, "write a DNS name in its ASCII form", "host %q is not a DNS name: %s", clip(e.Host), badTCPHost(host))
	}
}

// badAllowedIP says why the supervisor refuses an entry at each connection, "" when it does not.
func badAllowedIP(s string) string {
	s = strings.TrimSpace(s)
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return "is neither an address nor a network"
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
	}
	for _, never := range []string{"127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/32", "::1/128", "::/128", "fe80::/10"} {
		if netip.MustParsePrefix(never).Overlaps(prefix) {
			return "covers loopback, link-local or unspecified addresses"
		}
	}
	return ""
}

func (fs *findings) strictRule(e *Endpoint, proto string, r *L7Rule, deny bool) {
	at := r.Place.Path
	strict := func(code *diag.Code, key, hint, format string, args ...any) {
		fs.strict(code, r.At(key), join(at, key), hint, format, args...)
	}
	effect := "allows"
	if deny {
		effect = "denies"
	}
	graphQL := r.OperationType != "" || r.OperationName != "" || len(r.Fields) > 0
	refused := !deny && !slices.ContainsFunc(e.Rules, L7Rule.says) // as a whole, by OpenShell itself
	if !refused && (proto == "rest" || proto == "websocket" && !graphQL) {
		if r.Method == "" {
			strict(codeNothing, "method", "add method: \"*\" for any", "the rule has no method and %s nothing", effect)
		}
		if r.Path == "" {
			strict(codeNothing, "path", "add path: \"**\" for any", "the rule has no path and %s nothing", effect)
		}
	}
	if r.Path != "" && r.Path != "**" && !strings.HasPrefix(r.Path, "/") && !strings.HasPrefix(r.Path, "*") && (proto == "rest" || proto == "websocket") {
		strict(codeNothing, "path", "write /"+clip(r.Path), "path %q does not start with / and %s nothing", clip(r.Path), effect)
	}
	compile := func(key, pattern string, sep byte) {
		if _, err := compileGlob(pattern, sep); err != nil {
			fs.poison(r.At(key), join(at, key), pattern, err)
		}
	}
	compile("path", r.Path, '/')
	compile("operation_name", r.OperationName, '.')
	for _, f := range r.Fields {
		compile("fields", f, '.')
	}
	if proto == "mcp" || proto == "json-rpc" {
		compile("method", r.Method, '.')
	}
	for _, ps := range [][]Param{r.Query, r.Params} {
		for _, q := range ps {
			if q.Match != nil {
				for _, g := range q.Match.Globs {
					compile("query", g, '.')
				}
			}
		}
	}
	tool := r.toolMatch()
	if tool != nil {
		for _, g := range tool.Globs {
			compile("tool", g, '.')
		}
	}
	if !deny || proto != "mcp" && proto != "json-rpc" {
		return
	}
	hole := func(g string) bool { return g != "**" && strings.Contains(g, "*") }
	switch {
	case r.Method == "" && tool == nil || hole(r.Method): // with a tool it is read as tools/call
		strict(codeMiss, "method", "write exact methods", "method %q of a deny rule misses every method with a dot", clip(r.Method))
	case tool != nil && slices.ContainsFunc(tool.Globs, hole):
		strict(codeMiss, "tool", "allow exact names instead, or write \"**\" for all", "the tool pattern of a deny rule misses names with a dot in what the star stands for")
	}
}
