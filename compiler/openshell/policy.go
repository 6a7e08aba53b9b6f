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

// part is a mapping of policy.yaml.
type part interface {
	place() *Place
	fields() []field
}

// field is a key of a part and where its value is kept. The fields of a part are in the order in which they are printed.
type field struct {
	name     string
	at       any
	required bool // refused when missing; always printed
}

func (p *Policy) fields() []field {
	return []field{
		{"version", &p.Version, true},
		{"filesystem_policy", &p.Filesystem, false},
		{"landlock", &p.Landlock, false},
		{"process", &p.Process, false},
		{"network_policies", &p.Rules, false},
		{"network_middlewares", &p.Middlewares, false},
	}
}

// include_workdir is printed always: its default depends on whether the section is there.
func (f *Filesystem) fields() []field {
	return []field{{"include_workdir", &f.IncludeWorkdir, false}, {"read_only", &f.ReadOnly, false}, {"read_write", &f.ReadWrite, false}}
}

func (l *Landlock) fields() []field {
	return []field{{"compatibility", &l.Compatibility, false}}
}

func (p *Process) fields() []field {
	return []field{{"run_as_user", &p.RunAsUser, false}, {"run_as_group", &p.RunAsGroup, false}}
}

func (r *Rule) fields() []field {
	return []field{{"name", &r.Name, false}, {"endpoints", &r.Endpoints, false}, {"binaries", &r.Binaries, false}}
}

func (b *Binary) fields() []field {
	return []field{{"path", &b.Path, true}, {"harness", &b.Harness, false}}
}

func (e *Endpoint) fields() []field {
	return []field{
		{"host", &e.Host, false},
		{"path", &e.Path, false},
		{"port", &e.Port, false},
		{"ports", &e.Ports, false},
		{"protocol", &e.Protocol, false},
		{"tls", &e.TLS, false},
		{"enforcement", &e.Enforcement, false},
		{"access", &e.Access, false},
		{"rules", (*allowRules)(&e.Rules), false},
		{"allowed_ips", &e.AllowedIPs, false},
		{"deny_rules", &e.DenyRules, false},
		{"allow_encoded_slash", &e.AllowEncodedSlash, false},
		{"websocket_credential_rewrite", &e.WebsocketCredentialRewrite, false},
		{"request_body_credential_rewrite", &e.RequestBodyCredentialRewrite, false},
		{"allow_uninspected_credentials", &e.AllowUninspectedCredentials, false},
		{"persisted_queries", &e.PersistedQueries, false},
		{"graphql_persisted_queries", &e.GraphQLPersistedQueries, false},
		{"graphql_max_body_bytes", &e.GraphQLMaxBodyBytes, false},
		{"credential_signing", &e.CredentialSigning, false},
		{"signing_service", &e.SigningService, false},
		{"signing_region", &e.SigningRegion, false},
		{"credential_binding", &e.CredentialBinding, false},
		{"json_rpc", &e.JSONRPC, false},
		{"mcp", &e.MCP, false},
	}
}

// allowRules is a list of L7Rule that is written with an "allow" key around each.
type allowRules []L7Rule

// allowRule is that key.
type allowRule struct {
	Place
	rule *L7Rule
}

func (a *allowRule) fields() []field {
	return []field{{"allow", a.rule, true}}
}

func (q *PersistedQuery) fields() []field {
	return []field{{"operation_type", &q.OperationType, false}, {"operation_name", &q.OperationName, false}, {"fields", &q.Fields, false}}
}

func (c *CredentialBinding) fields() []field {
	return []field{{"provider", &c.Provider, true}}
}

func (j *JSONRPC) fields() []field {
	return []field{{"max_body_bytes", &j.MaxBodyBytes, false}}
}

func (m *MCP) fields() []field {
	return []field{
		{"max_body_bytes", &m.MaxBodyBytes, false},
		{"strict_tool_names", &m.StrictToolNames, false},
		{"allow_all_known_mcp_methods", &m.AllowAllKnownMCPMethods, false},
	}
}

func (r *L7Rule) fields() []field {
	return []field{
		{"method", &r.Method, false},
		{"path", &r.Path, false},
		{"query", (*matchers)(&r.Query), false},
		{"command", &r.Command, false},
		{"operation_type", &r.OperationType, false},
		{"operation_name", &r.OperationName, false},
		{"fields", &r.Fields, false},
		{"tool", &r.Tool, false},
		{"params", &r.Params, false},
	}
}

// matchers is a list of Param that cannot nest.
type matchers []Param

func (m *Middleware) fields() []field {
	return []field{
		{"name", &m.Name, false},
		{"middleware", &m.Middleware, true},
		{"order", &m.Order, false},
		{"config", &m.Config, false},
		{"on_error", &m.OnError, false},
		{"endpoints", &m.Endpoints, false},
	}
}

func (s *Selector) fields() []field {
	return []field{{"include", &s.Include, false}, {"exclude", &s.Exclude, false}}
}
