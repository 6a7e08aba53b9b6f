// Package openshell is the engine for the policy.yaml that an NVIDIA OpenShell sandbox reads at start: strict parse, stable print, compose from
// sources, check as OpenShell's gateway and supervisor would, decide a request, compare two policies.
//
// Everything it knows about OpenShell was read in and observed with NVIDIA/OpenShell commit 2f7fb6559 (2026-08-21, just after v0.0.111) and its
// rule engine regorus 0.9.1; the built-in sources are those of openkaiden/openshell-image-builder commit 8b192b1 (2026-07-01, after v0.11.0).
package openshell

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// Policy is one policy.yaml. Nil sections are absent, which OpenShell tells apart from empty ones.
type Policy struct {
	Place
	Version     uint32
	Filesystem  *Filesystem
	Landlock    *Landlock
	Process     *Process
	Rules       []Rule // network_policies, sorted by slug
	Middlewares []Middleware
}

// Filesystem is filesystem_policy. The include_workdir of an absent section is true, of a present one without the key false.
type Filesystem struct {
	Place
	IncludeWorkdir bool
	ReadOnly       []string
	ReadWrite      []string
}

// Landlock is the landlock section: only "hard_requirement" is special, any other text means best_effort.
type Landlock struct {
	Place
	Compatibility string
}

// Process is the process section: "sandbox" or a number 1..4294967294, empty leaves the choice to the driver.
type Process struct {
	Place
	RunAsUser  string
	RunAsGroup string
}

// Rule is one entry of network_policies. A request matches it when one of its endpoints and one of its binaries match.
type Rule struct {
	Place
	Slug      string
	Name      string
	Endpoints []Endpoint
	Binaries  []Binary
	// Origin says which source the rule came from; Parse leaves it empty, Compose fills it.
	Origin string
}

// Binary is an executable by path or glob.
type Binary struct {
	Place
	Path    string
	Harness bool
}

// Endpoint is a destination of a rule and, when Protocol names an inspected protocol, what may be asked there.
type Endpoint struct {
	Place
	Host                         string
	Path                         string
	Port                         uint16
	Ports                        []uint16
	Protocol                     string
	TLS                          string
	Enforcement                  string
	Access                       string
	Rules                        []L7Rule
	AllowedIPs                   []string
	DenyRules                    []L7Rule
	AllowEncodedSlash            bool
	WebsocketCredentialRewrite   bool
	RequestBodyCredentialRewrite bool
	AllowUninspectedCredentials  bool
	PersistedQueries             string
	GraphQLPersistedQueries      []PersistedQuery // sorted by ID
	GraphQLMaxBodyBytes          uint32
	CredentialSigning            string
	SigningService               string
	SigningRegion                string
	CredentialBinding            *CredentialBinding
	JSONRPC                      *JSONRPC
	MCP                          *MCP
}

// PersistedQuery is one entry of graphql_persisted_queries.
type PersistedQuery struct {
	Place
	ID            string
	OperationType string
	OperationName string
	Fields        []string
}

// CredentialBinding names the attached provider whose credential signs requests.
type CredentialBinding struct {
	Place
	Provider string
}

// JSONRPC holds the limits of a json-rpc endpoint; 0 means 65536 bytes.
type JSONRPC struct {
	Place
	MaxBodyBytes uint32
}

// MCP holds the options of an mcp endpoint; StrictToolNames is true when absent.
type MCP struct {
	Place
	MaxBodyBytes            uint32
	StrictToolNames         *bool
	AllowAllKnownMCPMethods *bool
}

// L7Rule is the body of an allow or deny rule. Absent text is empty text, which matches nothing.
type L7Rule struct {
	Place
	Method        string
	Path          string
	Query         []Param // sorted by name
	Command       string
	OperationType string
	OperationName string
	Fields        []string
	Tool          *Match
	Params        []Param // sorted by name
}

// Match is a matcher of a text: one glob, or any of several.
type Match struct {
	Any   bool // written as {any: [...]}
	Globs []string
}

// Param is a named matcher, or a named map of further ones (only params can nest).
type Param struct {
	Name   string
	Match  *Match
	Nested []Param
	Pos    diag.Pos
}

// Middleware is one entry of network_middlewares.
type Middleware struct {
	Place
	Key        string
	Name       string
	Middleware string
	Order      int32
	Config     []Value // sorted by key
	OnError    string
	Endpoints  *Selector
}

// Selector says for which hosts a middleware runs.
type Selector struct {
	Place
	Include []string
	Exclude []string
}

// Value is a piece of middleware configuration, which only the middleware interprets. It is a list, a map (Items sorted by Key) or a scalar;
// a scalar that is not Text keeps its spelling (true, 1.5, null).
type Value struct {
	Key   string
	Kind  ValueKind
	Text  string
	Items []Value
}

// ValueKind tells the forms of a Value apart.
type ValueKind uint8

// The forms of a Value.
const (
	Text ValueKind = iota
	Plain
	Sequence
	Map
)

// Place is where a part of a policy was written. It survives composing, so that a finding about the composed policy points into the source.
type Place struct {
	Pos  diag.Pos
	Path string // key path in its source document, such as network_policies.github.endpoints[0]
	keys []keyAt
}

type keyAt struct {
	key  string
	item int // -1 for the value itself
	pos  diag.Pos
}

// At returns the place of the value of key, or of the part itself when the key was not written.
func (p *Place) At(key string) diag.Pos { return p.item(key, -1) }

// AtItem returns the place of item i of the list behind key.
func (p *Place) AtItem(key string, i int) diag.Pos { return p.item(key, i) }

func (p *Place) item(key string, i int) diag.Pos {
	for k := range p.keys {
		if p.keys[k].key == key && p.keys[k].item == i {
			return p.keys[k].pos
		}
	}
	return p.Pos
}

func (p *Place) place() *Place { return p }

// Rule returns the rule with the slug, or nil.
func (p *Policy) Rule(slug string) *Rule {
	i, ok := slices.BinarySearchFunc(p.Rules, slug, func(r Rule, s string) int { return strings.Compare(r.Slug, s) })
	if !ok {
		return nil
	}
	return &p.Rules[i]
}

// EffectivePorts returns the ports an endpoint applies to: ports when it is not empty, else port, else none.
func (e *Endpoint) EffectivePorts() []uint16 {
	switch {
	case len(e.Ports) > 0:
		return e.Ports
	case e.Port > 0:
		return []uint16{e.Port}
	}
	return nil
}

// isTCP reports the explicit spelling of "not inspected"; OpenShell compares it without regard to case.
func (e *Endpoint) isTCP() bool { return strings.EqualFold(e.Protocol, "tcp") }

// skipsTLS reports a raw tunnel: only the exact text counts, any other is automatic.
func (e *Endpoint) skipsTLS() bool { return e.TLS == "skip" }

// saysSkip is how the gateway compares endpoints, which it does without regard to case.
func (e *Endpoint) saysSkip() bool { return strings.EqualFold(e.TLS, "skip") }

// inspected reports whether OpenShell reads requests to the endpoint.
func (e *Endpoint) inspected() bool { return e.Protocol != "" && !e.isTCP() && !e.skipsTLS() }

// enforced reports whether a violation blocks; every other text means that it is only logged.
func (e *Endpoint) enforced() bool { return e.Enforcement == "enforce" }

func isTrue(b *bool) bool { return b != nil && *b }

// part is a mapping of policy.yaml: its keys in the order they are printed, and where the value of each is kept.
type part interface {
	place() *Place
	keyTable() []key
	field(name string) any
}

type key struct {
	name     string
	required bool // refused when missing; always printed
}

func (p *Policy) keyTable() []key {
	return []key{{"version", true}, {"filesystem_policy", false}, {"landlock", false}, {"process", false}, {"network_policies", false}, {"network_middlewares", false}}
}

func (p *Policy) field(name string) any {
	switch name {
	case "version":
		return &p.Version
	case "filesystem_policy":
		return &p.Filesystem
	case "landlock":
		return &p.Landlock
	case "process":
		return &p.Process
	case "network_policies":
		return &p.Rules
	case "network_middlewares":
		return &p.Middlewares
	}
	return nil
}

// include_workdir is printed always: its default depends on whether the section is there.
func (f *Filesystem) keyTable() []key {
	return []key{{"include_workdir", false}, {"read_only", false}, {"read_write", false}}
}

func (f *Filesystem) field(name string) any {
	switch name {
	case "include_workdir":
		return &f.IncludeWorkdir
	case "read_only":
		return &f.ReadOnly
	case "read_write":
		return &f.ReadWrite
	}
	return nil
}

func (l *Landlock) keyTable() []key { return []key{{"compatibility", false}} }

func (l *Landlock) field(name string) any {
	if name == "compatibility" {
		return &l.Compatibility
	}
	return nil
}

func (p *Process) keyTable() []key { return []key{{"run_as_user", false}, {"run_as_group", false}} }

func (p *Process) field(name string) any {
	switch name {
	case "run_as_user":
		return &p.RunAsUser
	case "run_as_group":
		return &p.RunAsGroup
	}
	return nil
}

func (r *Rule) keyTable() []key {
	return []key{{"name", false}, {"endpoints", false}, {"binaries", false}}
}

func (r *Rule) field(name string) any {
	switch name {
	case "name":
		return &r.Name
	case "endpoints":
		return &r.Endpoints
	case "binaries":
		return &r.Binaries
	}
	return nil
}

func (b *Binary) keyTable() []key { return []key{{"path", true}, {"harness", false}} }

func (b *Binary) field(name string) any {
	switch name {
	case "path":
		return &b.Path
	case "harness":
		return &b.Harness
	}
	return nil
}

func (e *Endpoint) keyTable() []key {
	return []key{{"host", false}, {"path", false}, {"port", false}, {"ports", false}, {"protocol", false}, {"tls", false}, {"enforcement", false},
		{"access", false}, {"rules", false}, {"allowed_ips", false}, {"deny_rules", false}, {"allow_encoded_slash", false},
		{"websocket_credential_rewrite", false}, {"request_body_credential_rewrite", false}, {"allow_uninspected_credentials", false},
		{"persisted_queries", false}, {"graphql_persisted_queries", false}, {"graphql_max_body_bytes", false}, {"credential_signing", false},
		{"signing_service", false}, {"signing_region", false}, {"credential_binding", false}, {"json_rpc", false}, {"mcp", false}}
}

func (e *Endpoint) field(name string) any {
	switch name {
	case "host":
		return &e.Host
	case "path":
		return &e.Path
	case "port":
		return &e.Port
	case "ports":
		return &e.Ports
	case "protocol":
		return &e.Protocol
	case "tls":
		return &e.TLS
	case "enforcement":
		return &e.Enforcement
	case "access":
		return &e.Access
	case "rules":
		return (*allowRules)(&e.Rules)
	case "allowed_ips":
		return &e.AllowedIPs
	case "deny_rules":
		return &e.DenyRules
	case "allow_encoded_slash":
		return &e.AllowEncodedSlash
	case "websocket_credential_rewrite":
		return &e.WebsocketCredentialRewrite
	case "request_body_credential_rewrite":
		return &e.RequestBodyCredentialRewrite
	case "allow_uninspected_credentials":
		return &e.AllowUninspectedCredentials
	case "persisted_queries":
		return &e.PersistedQueries
	case "graphql_persisted_queries":
		return &e.GraphQLPersistedQueries
	case "graphql_max_body_bytes":
		return &e.GraphQLMaxBodyBytes
	case "credential_signing":
		return &e.CredentialSigning
	case "signing_service":
		return &e.SigningService
	case "signing_region":
		return &e.SigningRegion
	case "credential_binding":
		return &e.CredentialBinding
	case "json_rpc":
		return &e.JSONRPC
	case "mcp":
		return &e.MCP
	}
	return nil
}

// allowRules is a list of L7Rule that is written with an "allow" key around each.
type allowRules []L7Rule

// allowRule is that key.
type allowRule struct {
	Place
	rule *L7Rule
}

func (a *allowRule) keyTable() []key { return []key{{"allow", true}} }

func (a *allowRule) field(name string) any {
	if name == "allow" {
		return a.rule
	}
	return nil
}

func (q *PersistedQuery) keyTable() []key {
	return []key{{"operation_type", false}, {"operation_name", false}, {"fields", false}}
}

func (q *PersistedQuery) field(name string) any {
	switch name {
	case "operation_type":
		return &q.OperationType
	case "operation_name":
		return &q.OperationName
	case "fields":
		return &q.Fields
	}
	return nil
}

func (c *CredentialBinding) keyTable() []key { return []key{{"provider", true}} }

func (c *CredentialBinding) field(name string) any {
	if name == "provider" {
		return &c.Provider
	}
	return nil
}

func (j *JSONRPC) keyTable() []key { return []key{{"max_body_bytes", false}} }

func (j *JSONRPC) field(name string) any {
	if name == "max_body_bytes" {
		return &j.MaxBodyBytes
	}
	return nil
}

func (m *MCP) keyTable() []key {
	return []key{{"max_body_bytes", false}, {"strict_tool_names", false}, {"allow_all_known_mcp_methods", false}}
}

func (m *MCP) field(name string) any {
	switch name {
	case "max_body_bytes":
		return &m.MaxBodyBytes
	case "strict_tool_names":
		return &m.StrictToolNames
	case "allow_all_known_mcp_methods":
		return &m.AllowAllKnownMCPMethods
	}
	return nil
}

func (r *L7Rule) keyTable() []key {
	return []key{{"method", false}, {"path", false}, {"query", false}, {"command", false}, {"operation_type", false}, {"operation_name", false},
		{"fields", false}, {"tool", false}, {"params", false}}
}

func (r *L7Rule) field(name string) any {
	switch name {
	case "method":
		return &r.Method
	case "path":
		return &r.Path
	case "query":
		return (*matchers)(&r.Query)
	case "command":
		return &r.Command
	case "operation_type":
		return &r.OperationType
	case "operation_name":
		return &r.OperationName
	case "fields":
		return &r.Fields
	case "tool":
		return &r.Tool
	case "params":
		return &r.Params
	}
	return nil
}

// matchers is a list of Param that cannot nest.
type matchers []Param

func (m *Middleware) keyTable() []key {
	return []key{{"name", false}, {"middleware", true}, {"order", false}, {"config", false}, {"on_error", false}, {"endpoints", false}}
}

func (m *Middleware) field(name string) any {
	switch name {
	case "name":
		return &m.Name
	case "middleware":
		return &m.Middleware
	case "order":
		return &m.Order
	case "config":
		return &m.Config
	case "on_error":
		return &m.OnError
	case "endpoints":
		return &m.Endpoints
	}
	return nil
}

func (s *Selector) keyTable() []key { return []key{{"include", false}, {"exclude", false}} }

func (s *Selector) field(name string) any {
	switch name {
	case "include":
		return &s.Include
	case "exclude":
		return &s.Exclude
	}
	return nil
}
