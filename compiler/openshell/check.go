package openshell

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Check reports what is wrong with a parsed or composed policy, in both layers: what OpenShell's gateway and supervisor refuse or warn about, and
// what they accept although it does not mean what it reads. Findings point into the documents the policy was written in, and are sorted.
// Findings of Parse are not repeated.
func Check(p *Policy) []Finding {
	var fs findings
	fs.process(p.Process)
	fs.filesystem(p.Filesystem)
	for i := range p.Rules {
		r, before := &p.Rules[i], len(fs)
		if strings.HasPrefix(r.Slug, "_provider_") {
			fs.refuse([]Kind{KindGateway}, codeGateway, r.At(""), r.Place.Path, "choose another slug", "slug %q starts with _provider_, which the gateway keeps for the rules of attached providers", clip(r.Slug))
		}
		for k := range r.Endpoints {
			e := &r.Endpoints[k]
			fs.endpointHost(e)
			fs.endpointKeys(e)
			fs.endpointRules(e)
		}
		fs.from(before, r.Origin)
	}
	fs.middlewares(p)
	fs.ambiguities(p)
	fs.strictPolicy(p)
	sortFindings(fs)
	return fs
}

func (fs *findings) process(p *Process) {
	if p == nil {
		return
	}
	for _, id := range []struct{ key, value string }{{"run_as_user", p.RunAsUser}, {"run_as_group", p.RunAsGroup}} {
		if id.value == "" || id.value == "sandbox" {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(id.value, "+"), 10, 32)
		if err == nil && n >= 1 && n <= 4294967294 && !strings.HasPrefix(id.value, "++") {
			continue
		}
		fs.refuse([]Kind{KindInvalidProcessIdentity}, codeIdentity, p.At(id.key), join(p.Path, id.key), "write sandbox",
			"%s is %q, sandbox or a number from 1 to 4294967294 is wanted", id.key, clip(id.value))
	}
}

func (fs *findings) filesystem(f *Filesystem) {
	if f == nil {
		return
	}
	if n := len(f.ReadOnly) + len(f.ReadWrite); n > 256 {
		fs.refuse([]Kind{KindTooManyPaths}, codePath, f.Pos, f.Path, "list directories instead of files", "%d paths are listed, at most 256 are allowed", n)
	}
	for _, l := range []struct {
		key   string
		paths []string
	}{{"read_only", f.ReadOnly}, {"read_write", f.ReadWrite}} {
		for i, s := range l.paths {
			pos, at := f.AtItem(l.key, i), itemPath(f.Path, l.key, i)
			if len(s) > 4096 {
				fs.refuse([]Kind{KindFieldTooLong}, codePath, pos, at, "", "the path is %d bytes long, at most 4096 are allowed", len(s))
				continue
			}
			if !strings.HasPrefix(s, "/") {
				fs.refuse([]Kind{KindRelativePath}, codePath, pos, at, "write it from the root: /sandbox/"+clip(s), "path %q is relative, an absolute one is wanted", clip(s))
			}
			if slices.Contains(strings.Split(s, "/"), "..") {
				fs.refuse([]Kind{KindPathTraversal}, codePath, pos, at, "write the path without ..", "path %q climbs with .., which is refused", clip(s))
			}
			if l.key == "read_write" && strings.Trim(s, "/") == "" {
				fs.refuse([]Kind{KindOverlyBroadPath}, codePath, pos, at, "list the directories that must be writable", "path %q makes the whole file system writable", s)
			}
		}
	}
}

var (
	kindsHost = []Kind{KindInvalidHostWildcard, KindL7Policy}
	kindsTLD  = []Kind{KindTldWildcard, KindL7Policy}
	kindsL7   = []Kind{KindInvalidL7Endpoint, KindL7Policy}
	kindsRule = []Kind{KindL7Policy}
)

func (fs *findings) endpointHost(e *Endpoint) {
	refuse := func(kinds []Kind, key, hint, format string, args ...any) {
		code := codeEndpoint
		if slices.Contains(kinds, KindL7Policy) {
			code = codeHost
		}
		fs.refuse(kinds, code, e.At(key), join(e.Place.Path, key), hint, format, args...)
	}
	blank := strings.TrimSpace(e.Host) == ""
	switch {
	case blank && e.isTCP():
		refuse([]Kind{KindMissingTCPEndpointHost}, "host", "add host", "protocol tcp needs a host name")
	case blank && len(e.AllowedIPs) == 0:
		refuse([]Kind{KindMissingEndpointHost}, "host", "add host", "the endpoint has neither host nor allowed_ips")
	case blank:
	case e.isTCP():
		if _, err := netip.ParseAddr(e.Host); err == nil {
			refuse([]Kind{KindTCPEndpointIPLiteral}, "host", "write a DNS name, or leave protocol out", "protocol tcp with the address %q, a DNS name is wanted", e.Host)
		} else if why := badTCPHost(e.Host); why != "" {
			refuse([]Kind{KindInvalidTCPEndpointHost}, "host", "write a plain DNS name", "host %q cannot be used with protocol tcp: %s", clip(e.Host), why)
		}
	}
	ports := e.EffectivePorts()
	if len(ports) == 0 {
		refuse([]Kind{KindMissingEndpointPort}, "port", "add port: 443", "the endpoint has no port")
	}
	for i, p := range e.Ports {
		if p == 0 {
			fs.refuse([]Kind{KindInvalidEndpointPort}, codeEndpoint, e.AtItem("ports", i), itemPath(e.Place.Path, "ports", i), "", "port 0, a port from 1 to 65535 is wanted")
		}
	}
	host := e.Host
	if !strings.Contains(host, "*") {
		return
	}
	labels := strings.Split(host, ".")
	if (labels[0] == "*" || labels[0] == "**") && len(labels) == 2 {
		refuse(kindsTLD, "host", "name at least two labels behind the star", "host %q covers a whole top-level domain", clip(host))
		return
	}
	switch {
	case host == "*" || host == "**":
		refuse(kindsHost, "host", "name at least two labels behind the star", "host %q covers every host", host)
	case strings.Contains(labels[0], "**") && labels[0] != "**",
		slices.ContainsFunc(labels[1:], func(l string) bool { return strings.Contains(l, "*") && l != "*" }):
		refuse(kindsHost, "host", "use * inside the first label, or * as a whole later label, or ** as the whole first label", "host %q has a wildcard where OpenShell takes none", clip(host))
	case len(labels) <= 2:
		fs.refuse(kindsRule, codeHost, e.At("host"), join(e.Place.Path, "host"), "name at least two labels behind the star",
			"host %q has a wildcard and only %d labels: the gateway accepts it, the supervisor does not", clip(host), len(labels))
	}
}

// badTCPHost says why a host cannot be resolved by the sandbox's DNS, "" when it can. A star counts as a letter.
func badTCPHost(host string) string {
	switch {
	case strings.TrimSpace(host) != host:
		return "it has spaces around it"
	case strings.HasSuffix(host, "."):
		return "it ends in a dot"
	case strings.ContainsAny(host, "{}"):
		return "it has braces"
	}
	name := strings.ReplaceAll(strings.ReplaceAll(host, "**", "x"), "*", "x")
	if len(name) > 255 {
		return "it is longer than 255 characters"
	}
	for l := range strings.SplitSeq(name, ".") {
		if l == "" || len(l) > 63 || l[0] == '-' {
			return "a label is empty, longer than 63 characters or begins with -"
		}
		for i := range len(l) {
			if c := l[i]; !isAlnum(c) && c != '-' && c != '_' {
				return "a label has a character other than letters, digits, - and _"
			}
		}
	}
	return ""
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// protocols that OpenShell inspects; tcp is the explicit spelling of not inspecting.
var inspectedProtocols = []string{"rest", "websocket", "graphql", "sql", "json-rpc", "mcp"}

func (fs *findings) endpointKeys(e *Endpoint) {
	l7 := func(key, hint, format string, args ...any) {
		fs.refuse(kindsL7, codeL7, e.At(key), join(e.Place.Path, key), hint, format, args...)
	}
	supervisor := func(key, hint, format string, args ...any) {
		fs.refuse(kindsRule, codeL7Rule, e.At(key), join(e.Place.Path, key), hint, format, args...)
	}
	warn := func(strict bool, key, hint, format string, args ...any) {
		fs.advise(strict, codeNoEffect, e.At(key), join(e.Place.Path, key), hint, format, args...)
	}
	proto := lower(e.Protocol)
	known := slices.Contains(inspectedProtocols, proto)
	tcp := e.isTCP()
	mcp, jsonrpc := proto == "mcp", proto == "json-rpc"
	hasRules, hasDeny, hasAccess := len(e.Rules) > 0, len(e.DenyRules) > 0, e.Access != ""
	allowAll := e.allowsAllMCP()

	if e.Protocol != "" && !known && !tcp {
		hint := "write one of tcp, rest, websocket, graphql, sql, json-rpc, mcp, or leave protocol out for a connection that is not inspected"
		if near := diagNearest(proto); near != "" {
			hint = "did you mean " + near + "?"
		}
		l7("protocol", hint, "unknown protocol '%s'", clip(e.Protocol))
	}
	if tcp {
		if hasAccess || hasRules || hasDeny {
			l7("protocol", "remove them, or write protocol: rest", "protocol tcp takes no access, rules or deny_rules")
		}
		if extra := e.tcpExtras(); len(extra) > 0 {
			l7(extra[0], "remove "+strings.Join(extra, ", "), "protocol tcp is not inspected and takes no %s", strings.Join(extra, ", "))
		}
		if extra := e.signingKeys(); len(extra) > 0 {
			supervisor(extra[0], "remove "+strings.Join(extra, ", "), "protocol tcp takes no %s", strings.Join(extra, ", "))
		}
	}
	if hasRules && hasAccess {
		l7("access", "keep one of the two", "rules and access are mutually exclusive")
	}
	if (mcp || jsonrpc) && hasAccess {
		hint := "write rules with allow.method"
		if mcp {
			hint = "write rules, or mcp: {allow_all_known_mcp_methods: true}"
		}
		l7("access", hint, "protocol %s takes no access presets", proto)
	}
	switch {
	case hasRules || hasAccess:
	case jsonrpc:
		l7("protocol", "add rules with allow.method", "protocol json-rpc requires rules with allow.method")
	case mcp && !allowAll:
		l7("protocol", "add rules, or mcp: {allow_all_known_mcp_methods: true}", "protocol mcp requires rules when allow_all_known_mcp_methods is not true")
	case known && !mcp:
		l7("protocol", "add access: read-only, or rules", "protocol %s requires rules or access, there is nothing to allow", proto)
	}
	if hasRules && !(mcp && allowAll) && !slices.ContainsFunc(e.Rules, L7Rule.says) {
		l7("rules", "give each rule a method and a path", "no rule says what to allow, everything would be denied")
	}
	if hasDeny && !known {
		l7("deny_rules", "add protocol: rest", "deny_rules need an inspected protocol")
	}
	if hasDeny && !mcp && !hasRules && !hasAccess {
		l7("deny_rules", "add access: full or rules", "deny_rules have no base allow set to take from: rules or access is wanted")
	}
	if e.Path != "" && !strings.HasPrefix(e.Path, "/") && e.Path != "**" {
		l7("path", "write /"+clip(e.Path), "path %q, a path that starts with / or ** is wanted", clip(e.Path))
	}
	if proto == "sql" && e.enforced() {
		l7("enforcement", "SQL is not inspected yet: limit who may connect instead", "protocol sql cannot be enforced")
	}
	if e.PersistedQueries != "" && e.PersistedQueries != "deny" && e.PersistedQueries != "allow_registered" {
		l7("persisted_queries", "", "persisted_queries is %q, deny or allow_registered is wanted", clip(e.PersistedQueries))
	}
	if e.MCP != nil && !mcp && (e.MCP.StrictToolNames != nil || e.MCP.AllowAllKnownMCPMethods != nil) {
		l7("mcp", "remove mcp, or write protocol: mcp", "mcp options on protocol %q, they are for protocol mcp only", clip(e.Protocol))
	}
	if mcp && (strings.TrimSpace(e.Host) == "" || len(e.EffectivePorts()) == 0) {
		supervisor("host", "", "protocol mcp needs a host and a port")
	}
	fs.signing(e)

	switch e.TLS {
	case "", "skip":
	case "terminate", "passthrough":
		warn(false, "tls", "leave tls out, newer versions of OpenShell refuse it", "tls: %s is deprecated and does nothing, TLS is detected by itself", e.TLS)
	}
	if hasAccess && !slices.Contains([]string{"read-only", "read-write", "full"}, e.Access) {
		warn(true, "access", "write read-only, read-write or full", "access %q is unknown, so nothing is allowed", clip(e.Access))
	}
	if e.WebsocketCredentialRewrite && proto != "rest" && proto != "websocket" {
		warn(true, "websocket_credential_rewrite", "remove it", "websocket_credential_rewrite works with protocol rest and websocket only")
	}
	if e.RequestBodyCredentialRewrite && proto != "rest" {
		warn(true, "request_body_credential_rewrite", "remove it", "request_body_credential_rewrite works with protocol rest only")
	}
	if e.skipsTLS() && known && slices.Contains(e.EffectivePorts(), 443) {
		warn(true, "tls", "remove tls: skip, or remove protocol", "tls: skip on port 443 turns the inspection that protocol %s asks for off", proto)
	}
}

func diagNearest(proto string) string {
	for _, p := range inspectedProtocols {
		if strings.ReplaceAll(p, "-", "") == strings.ReplaceAll(strings.ReplaceAll(proto, "-", ""), "_", "") {
			return p
		}
	}
	if proto == "http" || proto == "https" {
		return "rest"
	}
	return ""
}

// says reports whether a rule has anything to match by; a query alone counts as nothing.
func (r L7Rule) says() bool {
	return r.Method != "" || r.Path != "" || r.Command != "" || r.OperationType != "" || r.OperationName != "" || len(r.Fields) > 0 ||
		len(r.Params) > 0 || r.Tool != nil
}

func (e *Endpoint) tcpExtras() []string {
	var out []string
	add := func(on bool, key string) {
		if on {
			out = append(out, key)
		}
	}
	add(e.Enforcement != "", "enforcement")
	add(e.Path != "", "path")
	add(e.AllowEncodedSlash, "allow_encoded_slash")
	add(e.WebsocketCredentialRewrite, "websocket_credential_rewrite")
	add(e.RequestBodyCredentialRewrite, "request_body_credential_rewrite")
	add(e.PersistedQueries != "", "persisted_queries")
	add(len(e.GraphQLPersistedQueries) > 0, "graphql_persisted_queries")
	add(e.GraphQLMaxBodyBytes > 0, "graphql_max_body_bytes")
	add(e.JSONRPC != nil && e.JSONRPC.MaxBodyBytes > 0, "json_rpc")
	add(e.MCP != nil, "mcp")
	return out
}

func (e *Endpoint) signingKeys() []string {
	var out []string
	for _, k := range []struct {
		on  bool
		key string
	}{{e.CredentialSigning != "", "credential_signing"}, {e.SigningService != "", "signing_service"}, {e.SigningRegion != "", "signing_region"},
		{e.CredentialBinding != nil, "credential_binding"}} {
		if k.on {
			out = append(out, k.key)
		}
	}
	return out
}

func (fs *findings) signing(e *Endpoint) {
	if e.CredentialSigning == "" {
		return
	}
	at := join(e.Place.Path, "credential_signing")
	if !slices.Contains([]string{"sigv4", "sigv4:body", "sigv4:no_body"}, e.CredentialSigning) {
		fs.refuse([]Kind{KindUnknownCredentialSigning}, codeSigning, e.At("credential_signing"), at, "", "credential_signing is %q, sigv4, sigv4:body or sigv4:no_body is wanted", clip(e.CredentialSigning))
	}
	if e.SigningService == "" {
		fs.refuse([]Kind{KindMissingSigningService}, codeSigning, e.At("credential_signing"), at, "add signing_service, such as bedrock", "credential_signing needs signing_service")
	}
	if e.RequestBodyCredentialRewrite {
		fs.refuse([]Kind{KindSigningWithBodyRewrite}, codeSigning, e.At("request_body_credential_rewrite"), join(e.Place.Path, "request_body_credential_rewrite"), "keep one of the two",
			"credential_signing and request_body_credential_rewrite exclude each other")
	}
}

func (fs *findings) endpointRules(e *Endpoint) {
	proto := lower(e.Protocol)
	each := func(rules []L7Rule, deny bool) {
		for i := range rules {
			fs.l7Rule(e, proto, &rules[i], deny)
		}
	}
	each(e.Rules, false)
	each(e.DenyRules, true)
	if proto == "graphql" || proto == "websocket" {
		for i := range e.GraphQLPersistedQueries {
			q := &e.GraphQLPersistedQueries[i]
			if len(q.Fields) == 0 {
				fs.refuse(kindsRule, codeL7Rule, q.At(""), q.Path, "list the root fields", "persisted query %q has no fields, a list that is not empty is wanted", clip(q.ID))
			}
			if !isOperation(q.OperationType) {
				fs.refuse(kindsL7, codeL7, q.At("operation_type"), join(q.Path, "operation_type"), "", "operation_type is %q, query, mutation or subscription is wanted", clip(q.OperationType))
			}
		}
	}
	if proto == "mcp" {
		fs.mcpRules(e)
	}
}

func isOperation(s string) bool { return s == "query" || s == "mutation" || s == "subscription" }

var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

func (fs *findings) l7Rule(e *Endpoint, proto string, r *L7Rule, deny bool) {
	at := r.Place.Path
	supervisor := func(key, hint, format string, args ...any) {
		fs.refuse(kindsRule, codeL7Rule, r.At(key), join(at, key), hint, format, args...)
	}
	for i := range r.Query {
		if q := &r.Query[i]; q.Match.Any && len(q.Match.Globs) == 0 {
			fs.refuse(kindsRule, codeL7Rule, q.Pos, at+".query."+q.Name, "list at least one glob", "query %q has an empty any, which matches nothing", clip(q.Name))
		}
	}
	if slices.Contains(r.Fields, "") {
		supervisor("fields", "remove the empty text", "fields has an empty text")
	}
	operation := r.OperationType != "" || r.OperationName != "" || len(r.Fields) > 0
	switch proto {
	case "rest", "websocket", "graphql", "sql":
		if len(r.Params) > 0 || r.Tool != nil {
			key := "params"
			if r.Tool != nil {
				key = "tool"
			}
			supervisor(key, "remove it, or write protocol: mcp", "%s is for protocol mcp, not for %s", key, proto)
		}
	}
	switch proto {
	case "rest", "websocket":
		known := r.Method == "" || r.Method == "*" || slices.Contains(httpMethods, strings.ToUpper(r.Method)) || proto == "websocket" && strings.EqualFold(r.Method, "WEBSOCKET_TEXT")
		if !known {
			fs.advise(true, codeNoEffect, r.At("method"), join(at, "method"), "write an HTTP method, or *", "method %q is not an HTTP method, the rule matches no request", clip(r.Method))
		}
		if proto == "websocket" && !deny && operation {
			supervisor("operation_type", "write the limit as a deny rule", "a websocket allow rule with operation_type, operation_name or fields is refused by the supervisor")
		}
		if proto == "websocket" && !deny && strings.EqualFold(r.Method, "WEBSOCKET_TEXT") && e.websocketGraphQL() {
			supervisor("method", "remove the rule or the GraphQL policy", "WEBSOCKET_TEXT cannot be allowed beside a GraphQL policy")
		}
	case "graphql":
		if !isOperation(r.OperationType) {
			fs.refuse(kindsL7, codeL7, r.At("operation_type"), join(at, "operation_type"), "write one rule for each type", "operation_type is %q, query, mutation or subscription is wanted", clip(r.OperationType))
		}
	case "json-rpc":
		switch {
		case r.Method == "":
			supervisor("method", "add method", "a json-rpc rule needs a method")
		case r.Method != "*" && strings.ContainsAny(r.Method, "*?[]{}"):
			supervisor("method", "write exact methods, or *", "method %q of a json-rpc rule, an exact name or * is wanted", clip(r.Method))
		}
		if len(r.Params) > 0 || r.Tool != nil || r.Path != "" || len(r.Query) > 0 {
			supervisor("params", "keep method only", "a json-rpc rule takes a method and nothing else")
		}
	}
}

func (fs *findings) mcpRules(e *Endpoint) {
	allowAll := e.allowsAllMCP()
	toolAllow := slices.ContainsFunc(e.Rules, func(r L7Rule) bool { return r.toolMatch() != nil })
	check := func(r *L7Rule, deny bool) {
		at := r.Place.Path
		supervisor := func(key, hint, format string, args ...any) {
			fs.refuse(kindsRule, codeL7Rule, r.At(key), join(at, key), hint, format, args...)
		}
		wild := strings.ContainsAny(r.Method, "*?[]{}")
		tool := r.toolMatch()
		switch {
		case r.Method == "" && !allowAll:
			supervisor("method", "add method, or mcp: {allow_all_known_mcp_methods: true}", "an mcp rule needs a method")
		case wild && !strings.HasPrefix(r.Method, "tools/"):
			supervisor("method", "write exact methods, or a pattern that starts with tools/", "method %q, a wildcard is allowed behind tools/ only", clip(r.Method))
		}
		if tool != nil && r.Method != "" && r.Method != toolsCall {
			supervisor("tool", "write method: tools/call", "tool with method %q, it needs method tools/call", clip(r.Method))
		}
		if slices.ContainsFunc(r.Params, func(p Param) bool { return p.Name != "name" || p.Match == nil }) {
			supervisor("params", "keep params.name, or write tool", "params of an mcp rule can only hold name")
		}
		if r.Path != "" || len(r.Query) > 0 {
			supervisor("path", "remove path and query", "an mcp rule takes no path and no query")
		}
		if tool != nil && !e.strictToolNames() && slices.ContainsFunc(tool.Globs, func(g string) bool { return strings.ContainsAny(g, "*?[]{}") }) {
			supervisor("tool", "list exact names, or remove strict_tool_names: false", "a tool pattern with wildcards needs strict tool names")
		}
		if toolAllow && tool == nil && coversToolsCall(r.Method) {
			word := "allows"
			if deny {
				word = "denies"
			}
			supervisor("method", "keep either the tool rules or the broad rule", "the rule %s every tools/call beside rules for single tools", word)
		}
	}
	for i := range e.Rules {
		check(&e.Rules[i], false)
	}
	for i := range e.DenyRules {
		check(&e.DenyRules[i], true)
	}
}

// toolMatch returns the matcher of the tool name; an explicit params.name wins over tool.
func (r *L7Rule) toolMatch() *Match {
	for i := range r.Params {
		if r.Params[i].Name == "name" && r.Params[i].Match != nil {
			return r.Params[i].Match
		}
	}
	return r.Tool
}

func coversToolsCall(method string) bool {
	if method == "" {
		return true
	}
	g, err := compileGlob(method, '.')
	return err == nil && g.match(toolsCall)
}

func (fs *findings) middlewares(p *Policy) {
	if n := len(p.Middlewares); n > 10 {
		fs.refuse([]Kind{KindTooManyMiddlewareConfigs}, codeMiddleware, p.At("network_middlewares"), "network_middlewares", "", "%d middlewares, at most 10 are allowed", n)
	}
	orders := map[int32]*Middleware{}
	for i := range p.Middlewares {
		m := &p.Middlewares[i]
		invalid := func(kind Kind, key, hint, format string, args ...any) {
			fs.refuse([]Kind{kind}, codeMiddleware, m.At(key), join(m.Path, key), hint, format, args...)
		}
		if m.Key == "" {
			invalid(KindInvalidMiddlewareConfig, "", "give it a key", "a middleware has an empty key")
		}
		if m.Middleware == "" {
			invalid(KindInvalidMiddlewareConfig, "middleware", "write openshell/regex or the name the operator registered", "middleware is empty")
		}
		if m.OnError != "" && m.OnError != "fail_closed" && m.OnError != "fail_open" {
			invalid(KindInvalidMiddlewareConfig, "on_error", "", "on_error is %q, fail_closed or fail_open is wanted", clip(m.OnError))
		}
		if first := orders[m.Order]; first != nil {
			invalid(KindDuplicateMiddlewareOrder, "order", "give each middleware its own order", "order %d is also that of middleware %q", m.Order, clip(first.Key))
			f := &(*fs)[len(*fs)-1]
			f.Diagnostic = f.WithRelated(first.Pos, "the other middleware")
		}
		orders[m.Order] = m
		if m.Middleware == "openshell/regex" {
			for _, v := range m.Config {
				if v.Key != "mode" || v.Kind != Text || v.Text != "redact" {
					invalid(KindGateway, "config", "write config: {mode: redact}", "config of openshell/regex has %q, only mode: redact is known", clip(v.Key))
				}
			}
		}
		s := m.Endpoints
		if s == nil {
			invalid(KindInvalidMiddlewareConfig, "endpoints", "add endpoints: {include: [hosts]}", "middleware %q has no selector", clip(m.Key))
			continue
		}
		if len(s.Include) == 0 {
			invalid(KindInvalidMiddlewareConfig, "endpoints", "list hosts, or \"**\"", "the selector of middleware %q includes no host", clip(m.Key))
		}
		if n := len(s.Include) + len(s.Exclude); n > 32 {
			invalid(KindTooManyMiddlewareSelectors, "endpoints", "", "the selector of middleware %q has %d patterns, at most 32 are allowed", clip(m.Key), n)
		}
		for _, h := range slices.Concat(s.Include, s.Exclude) {
			if h == "" || strings.ContainsAny(h, " \t\n{}") || slices.Contains(strings.Split(h, "."), "") {
				invalid(KindInvalidMiddlewareConfig, "endpoints", "write host names or patterns", "host pattern %q of middleware %q has spaces, braces or an empty label", clip(h), clip(m.Key))
			}
		}
		if m.OnError != "fail_open" && len(p.Middlewares) <= 10 { // the selectors of more are not worth comparing
			fs.tlsSkipConflict(p, m)
		}
	}
}

// tlsSkipConflict: a middleware that must see every request cannot see those of an endpoint that skips TLS.
func (fs *findings) tlsSkipConflict(p *Policy, m *Middleware) {
	meets, told := 0, 0
	for i := range p.Rules {
		for k := range p.Rules[i].Endpoints {
			e := &p.Rules[i].Endpoints[k]
			if !e.saysSkip() {
				continue
			}
			host := lower(e.Host)
			for _, in := range m.Endpoints.Include {
				in = lower(in)
				if !hostsOverlap(in, host, &meets) || slices.ContainsFunc(m.Endpoints.Exclude, func(ex string) bool {
					ex = lower(ex)
					return ex == "**" || ex == in || ex == host || host != "" && !strings.Contains(host, "*") && hostsOverlap(ex, host, &meets)
				}) {
					continue
				}
				fs.refuse([]Kind{KindMiddlewareTLSSkipConflict}, codeMiddleware, m.At("endpoints"), join(m.Path, "endpoints"), "exclude the host, or write on_error: fail_open",
					"middleware %q fails closed and may cover %s, which skips TLS", clip(m.Key), e.selector())
				f := &(*fs)[len(*fs)-1]
				f.Diagnostic = f.WithRelated(e.Pos, "the endpoint")
				if told++; told == maxAmbiguities {
					return
				}
				break
			}
		}
	}
}
