// Package policy is the typed model of a policy repo: one type per kind of document, every leaf with its place. It knows the shape and the words of the
// documents; what they mean together is decided in packages effective and check.
package policy

import (
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/host"
	"halos.dev/halo/compiler/source"
)

// Harness ids, in the order used in every output.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	CopilotCLI = "copilot-cli"
	GeminiCLI  = "gemini-cli"
	OpenCode   = "opencode"
	CursorCLI  = "cursor-cli"
)

// Harnesses are the known harness ids, sorted.
var Harnesses = []string{ClaudeCode, Codex, CopilotCLI, CursorCLI, GeminiCLI, OpenCode}

// OSes are the operating systems a target is rendered for, sorted.
var OSes = []string{"darwin", "linux", "windows"}

// Sandbox modes, from loosest to strictest.
const (
	ModeOff            = "off"
	ModeWorkspaceWrite = "workspace-write"
	ModeReadOnly       = "read-only"
)

// Header is what every document begins with.
type Header struct {
	Kind string
	Name source.Str
	// Pos is the place of the document.
	Pos diag.Pos
	// Bad is set when the document has errors of its own; targets that use it are not built.
	Bad bool
}

// head is how documents of every kind are handled alike.
func (h *Header) head() *Header { return h }

type headed interface{ head() *Header }

// ID returns KIND/NAME, as diagnostics name documents.
func (h *Header) ID() string { return h.Kind + "/" + h.Name.V }

// Halos is the root document halos.yaml.
type Halos struct {
	Header
	Org source.Str
	// Lifetime is how long a release is valid, in seconds; not set means no expiry.
	Lifetime     source.Int
	Combinations []source.Strs
	Require      []Requirement
	Acknowledge  []Acknowledgement
	Identity     Identity
}

// Identity names the OIDC provider that memberships refer to.
type Identity struct {
	Issuer, ClientID, Audience, UserClaim, GroupsClaim source.Str
	AdminGroups                                        source.Strs
}

// Acknowledgement accepts one kind of warning at some places until a date.
type Acknowledgement struct {
	Code, Path, Why source.Str
	Until           Date
	Pos             diag.Pos
}

// Date is a calendar day; Unix is the first second after it in UTC, the instant from which it is past.
type Date struct {
	source.Str
	Unix int64
}

// Requirement says that a concept must reach a grade on a harness, or the build stops.
type Requirement struct {
	Concept, Harness source.Str
	OS               source.Strs
	Grade            source.Str
	Pos              diag.Pos
}

// Gateway is the model gateway of the organization.
type Gateway struct {
	Header
	BaseURL source.Str
	// Host is the host name of BaseURL, empty when the gateway is on the device itself (localhost or a loopback address).
	Host      host.Name
	Engine    source.Str
	Protocols []source.Pair
	Auth      GatewayAuth
	Models    []GatewayModel
	Upstreams []Upstream
}

// GatewayAuth says how a device gets its credential. It never holds one.
type GatewayAuth struct {
	HelperCommand, IdentityHeader source.Str
	TTLSeconds                    source.Int
}

// GatewayModel maps a model alias to upstream models.
type GatewayModel struct {
	Alias   source.Str
	Targets []ModelTarget
}

// ModelTarget is one upstream model behind an alias. TimeoutSeconds is in seconds.
type ModelTarget struct {
	Upstream, Model                  source.Str
	Weight, Priority, TimeoutSeconds source.Int
}

// Upstream is a model provider behind the gateway.
type Upstream struct {
	Name                                    source.Str
	URL, Kind, Project, Region, APIVersion  source.Str
	CredentialEnv, CredentialFile, AuthForm source.Str
	Serves                                  source.Strs
}

// Preset is a named list of hosts.
type Preset struct {
	Header
	Hosts    []Host
	Source   source.Str
	Reviewed Date
}

// Host is an entry of a host list.
type Host struct {
	Pattern host.Pattern
	Pos     diag.Pos
}

// Hosts is a list of host patterns: absent, empty and filled are three values.
type Hosts struct {
	Items []Host
	Pos   diag.Pos
}

// IsSet reports whether the list was written.
func (h Hosts) IsSet() bool { return h.Pos.IsValid() }

// FilePath is an entry of a path list.
type FilePath struct {
	Path fspath.Path
	Pos  diag.Pos
}

// FilePaths is a list of paths: absent, empty and filled are three values.
type FilePaths struct {
	Items []FilePath
	Pos   diag.Pos
}

// IsSet reports whether the list was written.
func (p FilePaths) IsSet() bool { return p.Pos.IsValid() }

// Profile is a set of policy that rings point at.
type Profile struct {
	Header
	Extends source.Str
	Body
}

// Body is the policy in a profile or, restricted to what can only tighten, in a unit's overlay.
type Body struct {
	Harnesses    []Pin
	Models       Models
	Permissions  Permissions
	Sandbox      Sandboxing
	Egress       Egress
	MCP          MCP
	Hooks        Hooks
	Telemetry    Telemetry
	Instructions source.Str
	Env          []source.Pair
	Require      []Requirement
}

// Pin enables a harness at one exact version.
type Pin struct {
	Harness source.Str
	Version source.Str
	Model   source.Str
	// Overrides are raw keys merged into the rendered file, limited to an allowlist per harness.
	Overrides    map[string]any
	OverridesPos diag.Pos
	// OverrideKeys has the place of every key in Overrides, by dotted path.
	OverrideKeys []source.Pair
}

// Models says which models may be used.
type Models struct {
	Default source.Str
	Allowed source.Strs
	Enforce source.Bool
}

// Permissions are the tool permissions of a harness.
type Permissions struct {
	Mode             source.Str
	Allow, Ask, Deny source.Strs
	DisableBypass    source.Bool
	SandboxRequired  source.Bool
}

// Sandboxing is where commands may write and what they may not see.
type Sandboxing struct {
	// Mode is one value with two spellings, sandbox.mode and permissions.sandbox; ModeField says which was written.
	Mode           source.Str
	ModeField      string
	WritableRoots  FilePaths
	ProtectedPaths FilePaths
	// Policy names a Sandbox document.
	Policy source.Str
}

// Egress says which hosts may be reached.
type Egress struct {
	Default        source.Str
	AllowedDomains Hosts
	Presets        source.Strs
	DeniedDomains  Hosts
}

// Written reports whether any key of the section was written.
func (e *Egress) Written() bool {
	return e.Default.IsSet() || e.AllowedDomains.IsSet() || e.Presets.IsSet() || e.DeniedDomains.IsSet()
}

// MCP says which MCP servers may run.
type MCP struct {
	ManagedOnly source.Bool
	Servers     []Server
	ServersPos  diag.Pos
	Denied      source.Strs
}

// Server is an MCP server, reached by URL or started by a command.
type Server struct {
	Name    source.Str
	URL     source.Str
	Command source.Strs
	Headers []source.Pair
	Pos     diag.Pos
}

// Hooks are commands that a harness runs at its events.
type Hooks struct {
	ManagedOnly source.Bool
	Items       []Hook
	Pos         diag.Pos
}

// Hook is one command at one event.
type Hook struct {
	Event, Matcher, Command source.Str
	Pos                     diag.Pos
}

// Telemetry says where a harness sends its own telemetry.
type Telemetry struct {
	Enabled      source.Bool
	OTLPEndpoint source.Str
	Protocol     source.Str
	LogPrompts   source.Bool
	Attributes   []source.Pair
}

// Ring is a group of people that gets a profile.
type Ring struct {
	Header
	Order       source.Int
	Profile     source.Str
	Release     source.Str
	Membership  Membership
	Posture     source.Str
	VersionGate source.Str
}

// Membership says who is in a ring or unit. Percent is in hundredths of a percent.
type Membership struct {
	Users, Groups source.Strs
	Percent       source.Int
	Default       source.Bool
	OptIn         source.Bool
}

// Unit is a part of the organization that tightens what its rings get.
type Unit struct {
	Header
	Membership Membership
	Rings      source.Strs
	Parent     source.Str
	Overlay    Body
}

// PolicyTest is a document of expectations.
type PolicyTest struct {
	Header
	Tests []Test
}

// Test is one expectation: a host or a path, for whom, and the answer.
type Test struct {
	Host, Path, Ring, OS, Sandbox, Expect, Rule source.Str
	Units                                       source.Strs
	Port                                        source.Int
	Pos                                         diag.Pos
}

// Exception permits one loosening until a date.
type Exception struct {
	Header
	Unit, Ring, Field, Entry, Owner, Reason, Ticket source.Str
	Expires                                         Date
}

// PackFile is a sandbox pack found under packs/.
type PackFile struct {
	Name string
	// File is the index in Repo.Files.
	File int
	Bad  bool
	// CRLF is set when the file has Windows line endings.
	CRLF bool
}

// Repo is a policy repo: every document, sorted by name within its kind.
type Repo struct {
	Files      source.Files
	Root       *Halos
	Gateway    *Gateway
	Presets    []*Preset
	Profiles   []*Profile
	Rings      []*Ring
	Units      []*Unit
	Tests      []*PolicyTest
	Exceptions []*Exception
	Sandboxes  []*Sandbox
	Packs      []*PackFile
	// Others are the files below openshell/ and the workspace file.
	Others []*RepoFile
	// Documents has every document in file order, to find the one a place lies in.
	Documents []*Header
}

// Profile returns the profile of that name, or nil.
func (r *Repo) Profile(name string) *Profile { return find(r.Profiles, name) }

// Ring returns the ring of that name, or nil.
func (r *Repo) Ring(name string) *Ring { return find(r.Rings, name) }

// Unit returns the unit of that name, or nil.
func (r *Repo) Unit(name string) *Unit { return find(r.Units, name) }

// Sandbox returns the Sandbox document of that name, or nil.
func (r *Repo) Sandbox(name string) *Sandbox {
	return find(r.Sandboxes, name)
}

// Preset returns the repo's own preset of that name, or nil.
func (r *Repo) Preset(name string) *Preset { return find(r.Presets, name) }

// DefaultRing returns the ring with membership.default, or nil.
func (r *Repo) DefaultRing() *Ring {
	for _, g := range r.Rings {
		if g.Membership.Default.V {
			return g
		}
	}
	return nil
}
