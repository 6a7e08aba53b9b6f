// Package policy is the typed model of a policy repo: one type per kind of document, every leaf with its place. It knows the shape and the words of the
// documents; what they mean together is decided in packages effective and check.
package policy

import (
	"slices"

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

// APIVersion is the version of the language that a document is written in.
type APIVersion string

// The versions of the language. V1Alpha1 means the same as V1.
const (
	V1       APIVersion = "halos.dev/v1"
	V1Alpha1 APIVersion = "halos.dev/v1alpha1"
)

// Header is what every document begins with.
type Header struct {
	// Kind says what the document is.
	Kind string
	// Name is what other documents call this one. Names are unique within a kind; the name and the folder of the file carry no meaning.
	//
	// Example: base
	Name source.Str
	// Pos is the place of the document.
	Pos diag.Pos
	// Bad is set when the document has errors of its own; targets that use it are not built.
	Bad bool
	// lacks are the keys that the document cannot do without, unless simple mode gives them.
	lacks []lack
}

// lack is a key that is missing, with the finding that says so.
type lack struct {
	key     string
	finding diag.Diagnostic
}

// head is how documents of every kind are handled alike.
func (h *Header) head() *Header { return h }

type headed interface{ head() *Header }

// ID returns KIND/NAME, as diagnostics name documents; the root document needs no name.
func (h *Header) ID() string {
	if h.Name.V == "" {
		return h.Kind
	}
	return h.Kind + "/" + h.Name.V
}

// Halos is the root document of a policy repo, the file halos.yaml.
type Halos struct {
	Header
	// Org is the name of the organization. It stands in every release, and devices refuse a release of another one.
	//
	// Example: acme
	Org source.Str
	// Lifetime is how long a release is valid: a number of hours, days or weeks. Without it a release does not expire.
	//
	// It is kept in seconds.
	//
	// Example: 90d
	// Example: 12w
	Lifetime source.Int
	// Combinations lists the sets of units that people are in at once, so that releases have targets for them.
	//
	// Example: [[payments, contractors]]
	Combinations []source.Strs
	// Require lists what harnesses must be able to hold, for every profile. A build stops where the grade is not reached.
	Require []Requirement
	// Acknowledge lists warnings that were read and decided about.
	Acknowledge []Acknowledgement
	// Identity names the OIDC provider whose users and groups memberships refer to.
	Identity Identity
	// Simple has the keys of simple mode, nil when there is none.
	Simple *Simple
}

// Identity names the OIDC provider that memberships refer to.
type Identity struct {
	// Issuer is the issuer URL of the provider.
	//
	// Example: https://login.acme.example
	Issuer source.Str
	// ClientID is the client that devices sign in as.
	ClientID source.Str
	// Audience is the audience of its tokens; without it, the client.
	Audience source.Str
	// UserClaim is the claim with the name of the user.
	//
	// Default: email
	UserClaim source.Str
	// GroupsClaim is the claim with the groups of the user.
	//
	// Default: groups
	GroupsClaim source.Str
	// AdminGroups are the groups whose members administer the policy.
	AdminGroups source.Strs
}

// Acknowledgement accepts one kind of warning at some places until a date. It counts again after that, and an entry that hides nothing is a warning itself.
type Acknowledgement struct {
	// Code is the code of the warning.
	//
	// Example: HALO1701
	Code source.Str
	// Path says which files it holds for, as a glob; * does not cross a slash and ** does.
	//
	// Example: profiles/*.yaml
	Path source.Str
	// Why says for the next reader why the warning is accepted.
	Why source.Str
	// Until is the last day on which the entry holds, in UTC.
	//
	// Example: 2027-03-01
	Until Date
	// Pos is the place of the entry.
	Pos diag.Pos
}

// Date is a calendar day; Unix is the first second after it in UTC, the instant from which it is past.
type Date struct {
	source.Str
	Unix int64
}

// Requirement says that a concept must reach a grade on a harness, or the build stops.
type Requirement struct {
	// Concept is what the harness must hold; halo harnesses lists what each can.
	Concept source.Str
	// Harness is the harness that must hold it.
	Harness source.Str
	// OS lists the operating systems it is asked for; without it, all.
	OS source.Strs
	// Grade is the weakest grade that will do: enforced holds whatever a user or a repository does, overridable can be undone by them, default is only where
	// they begin.
	Grade source.Str
	// Pos is the place of the entry.
	Pos diag.Pos
}

// Gateway is the model gateway of the organization. A repo has at most one.
type Gateway struct {
	Header
	// BaseURL is where harnesses send model traffic. Every ring must be able to reach its host.
	//
	// Example: https://ai.acme.example
	BaseURL source.Str
	// Host is the host name of BaseURL, empty when the gateway is on the device itself (localhost or a loopback address).
	Host host.Name
	// Engine is the software that the gateway runs.
	//
	// Default: halo-proxy
	Engine source.Str
	// Protocols says, by harness, what it speaks to the gateway.
	//
	// Example: {claude-code: anthropic-messages}
	Protocols []source.Pair
	// Auth says how a device gets its credential.
	Auth GatewayAuth
	// Models maps the names of models that harnesses ask for to upstream models.
	Models []GatewayModel
	// Upstreams are the model providers behind the gateway, by name.
	Upstreams []Upstream
}

// GatewayAuth says how a device gets its credential. It never holds one.
type GatewayAuth struct {
	// HelperCommand is a command on the device that prints the credential.
	//
	// Example: /usr/local/bin/acme-token
	HelperCommand source.Str
	// IdentityHeader is the header in which the gateway is told the user.
	//
	// Example: X-Acme-User
	IdentityHeader source.Str
	// TTLSeconds is how long a credential is used before the command runs again, in seconds.
	TTLSeconds source.Int
}

// GatewayModel maps a model alias to upstream models.
type GatewayModel struct {
	// Alias is the name that harnesses ask for.
	Alias source.Str
	// Targets are the upstream models behind it.
	Targets []ModelTarget
}

// ModelTarget is one upstream model behind an alias.
type ModelTarget struct {
	// Upstream is one of upstreams.
	Upstream source.Str
	// Model is the name of the model there.
	Model source.Str
	// Weight is its share of the traffic among targets of one priority.
	Weight source.Int
	// Priority is the order in which targets are tried, lower first.
	Priority source.Int
	// TimeoutSeconds is how long an answer may take, in seconds.
	TimeoutSeconds source.Int
}

// Upstream is a model provider behind the gateway.
type Upstream struct {
	// Name is what models call it.
	Name source.Str
	// URL is where the provider is reached.
	//
	// Example: https://api.anthropic.com
	URL source.Str
	// Kind is the protocol of the provider.
	Kind source.Str
	// Project is the cloud project, for vertex.
	Project source.Str
	// Region is the cloud region, for bedrock and vertex.
	Region source.Str
	// APIVersion is the version of the provider's interface, for azure-openai.
	APIVersion source.Str
	// CredentialEnv is the environment variable of the gateway that holds the secret.
	//
	// Example: ANTHROPIC_API_KEY
	CredentialEnv source.Str
	// CredentialFile is the file on the gateway that holds the secret.
	CredentialFile source.Str
	// AuthForm is the authentication scheme that the secret is sent with.
	AuthForm source.Str
	// Serves lists the models that the provider may be asked for.
	Serves source.Strs
}

// The place of the provider's secret on the gateway: in a variable or in a file. The secret itself is never in a policy.
type credential Upstream

// Preset is a named list of hosts that profiles can allow. The presets model-providers, package-registries and vcs are built in.
type Preset struct {
	Header
	// Hosts are the hosts of the preset.
	//
	// Example: [wiki.acme.example, "*.git.acme.example"]
	Hosts []Host
	// Source is where the list comes from.
	Source source.Str
	// Reviewed is the day on which somebody last compared the list with its source.
	//
	// Example: 2026-11-30
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
	// Extends is the profile that this one is a child of. What the child does not write it takes over; lists of denials are added up.
	//
	// Example: base
	Extends source.Str
	Body
	// Base is what simple mode makes of this profile, over which the document lies; nil for most.
	Base *Profile
}

// Body is the policy in a profile or, restricted to what can only tighten, in a unit's overlay.
type Body struct {
	// Harnesses are the harnesses in use, each with its exact version: what a settings file can hold depends on it.
	//
	// Example: {claude-code: 2.1.332}
	Harnesses []Pin
	// Models says which models may be used.
	Models Models
	// Permissions are the tool permissions of a harness.
	Permissions Permissions
	// Sandbox says where commands may write and what they may not see.
	Sandbox Sandboxing
	// Egress says which hosts may be reached.
	Egress Egress
	// MCP says which MCP servers may run.
	MCP MCP
	// Hooks are commands that a harness runs at its events.
	Hooks Hooks
	// Telemetry says where a harness sends its own telemetry.
	Telemetry Telemetry
	// Instructions is text that every agent is given.
	//
	// Example: Ask before you push.
	Instructions source.Str
	// Env are environment variables that a harness sets. A secret here is refused.
	//
	// Example: {ACME_TEAM: platform}
	Env []source.Pair
	// Require lists what harnesses must be able to hold for this profile. A build stops where the grade is not reached.
	Require []Requirement
}

// Pin enables a harness at one exact version.
type Pin struct {
	// Harness is the id of the harness.
	Harness source.Str
	// Version is the one version that runs. Ranges are refused.
	//
	// Example: 2.1.332
	Version source.Str
	// Model is the model that the harness begins with.
	Model source.Str
	// Overrides are keys of the harness's own settings file, put in as they are. Only those that halo knows to be harmless are taken.
	Overrides map[string]any
	// OverridesPos is the place of Overrides.
	OverridesPos diag.Pos
	// OverrideKeys has the place of every key in Overrides, by dotted path.
	OverrideKeys []source.Pair
}

// Models says which models may be used.
type Models struct {
	// Default is the model that harnesses begin with.
	Default source.Str
	// Allowed are the models that may be chosen.
	Allowed source.Strs
	// Enforce takes the choice away from users.
	Enforce source.Bool
}

// Permissions are the tool permissions of a harness.
type Permissions struct {
	// Mode is what a harness asks about before it acts, from strictest to loosest: plan, default, acceptEdits, auto. bypassPermissions is always refused.
	Mode source.Str
	// Allow are tool rules that need no question.
	//
	// Example: [Bash(go test:*)]
	Allow source.Strs
	// Ask are tool rules that always ask.
	Ask source.Strs
	// Deny are tool rules that are always refused.
	//
	// Example: [Bash(curl:*)]
	Deny source.Strs
	// DisableBypass takes away the mode in which nothing is asked.
	DisableBypass source.Bool
	// SandboxRequired stops a harness that cannot start its sandbox.
	SandboxRequired source.Bool
}

// Sandboxing is where commands may write and what they may not see.
type Sandboxing struct {
	// Mode is what commands may write: everything, the workspace, or nothing. It is one value with two spellings, sandbox.mode and permissions.sandbox.
	Mode source.Str
	// ModeField says which spelling was written.
	ModeField string
	// WritableRoots are directories besides the workspace that commands may write to: absolute, or below ~/.
	//
	// Example: [/opt/build-cache, ~/.cache/acme]
	WritableRoots FilePaths
	// ProtectedPaths are paths that commands may neither read nor write: absolute, below ~/, or globs below the workspace.
	//
	// Example: [~/.ssh, ~/.aws, ".env*"]
	ProtectedPaths FilePaths
	// Policy is the Sandbox document that people of this profile work in.
	//
	// Example: engineering
	Policy source.Str
}

// Egress says which hosts may be reached.
type Egress struct {
	// Default is what happens to hosts on no list. Without it: deny when any host is allowed by name, else allow.
	Default source.Str
	// AllowedDomains are the hosts that may be reached: names in lower case, or "*." and a name for all its subdomains.
	//
	// Example: [github.com, "*.acme.example"]
	AllowedDomains Hosts
	// Presets are named lists of hosts that may be reached too: model-providers, package-registries, vcs, and the Preset documents of the repo.
	//
	// Example: [vcs]
	Presets source.Strs
	// DeniedDomains are the hosts that may never be reached, whatever else allows them. "*." may stand over a whole top-level domain here.
	//
	// Example: [pastebin.com, "*.pastebin.com"]
	DeniedDomains Hosts
}

// Written reports whether any key of the section was written.
func (e *Egress) Written() bool {
	return e.Default.IsSet() || e.AllowedDomains.IsSet() || e.Presets.IsSet() || e.DeniedDomains.IsSet()
}

// MCP says which MCP servers may run.
type MCP struct {
	// ManagedOnly leaves only the servers listed here.
	ManagedOnly source.Bool
	// Servers are the servers that harnesses are given.
	Servers []Server
	// ServersPos is the place of Servers.
	ServersPos diag.Pos
	// Denied are names of servers that may not run.
	Denied source.Strs
}

// Server is an MCP server, reached by URL or started by a command.
type Server struct {
	// Name is what harnesses call the server.
	Name source.Str
	// URL is where the server is reached, over https.
	//
	// Example: https://docs.acme.example/mcp
	URL source.Str
	// Command is the program that is the server, and its arguments.
	//
	// Example: [/opt/acme/bin/docs-server, --stdio]
	Command source.Strs
	// Headers are sent to a server with a URL. A secret here is refused.
	Headers []source.Pair
	// Pos is the place of the entry.
	Pos diag.Pos
}

// Hooks are commands that a harness runs at its events.
type Hooks struct {
	// ManagedOnly leaves only the hooks listed here.
	ManagedOnly source.Bool
	// Items are the hooks.
	Items []Hook
	// Pos is the place of Items.
	Pos diag.Pos
}

// Hook is one command at one event.
type Hook struct {
	// Event is when the command runs.
	Event source.Str
	// Matcher limits a tool event to some tools, in the harness's own spelling.
	//
	// Example: Bash
	Matcher source.Str
	// Command is the command line that runs.
	//
	// Example: /opt/acme/bin/audit-hook
	Command source.Str
	// Pos is the place of the entry.
	Pos diag.Pos
}

// Telemetry says where a harness sends its own telemetry.
type Telemetry struct {
	// Enabled turns telemetry on.
	Enabled source.Bool
	// OTLPEndpoint is the OpenTelemetry collector that gets it.
	//
	// Example: https://otel.acme.example:4317
	OTLPEndpoint source.Str
	// Protocol is how the collector is spoken to.
	Protocol source.Str
	// LogPrompts sends what people write to the model as well.
	LogPrompts source.Bool
	// Attributes are added to everything that is sent.
	//
	// Example: {team: platform}
	Attributes []source.Pair
}

// Ring is a group of people that gets a profile. Everybody is in exactly one ring.
type Ring struct {
	Header
	// Order is the place of the ring in a rollout: changes reach low numbers first.
	Order source.Int
	// Profile is the profile that the ring gets.
	//
	// Example: base
	Profile source.Str
	// Release is the release that the ring is held at.
	Release source.Str
	// Membership says who is in the ring.
	Membership Membership
	// Posture says what the gateway does about a device that has drifted from its release.
	//
	// Default: warn
	Posture source.Str
	// VersionGate says what is done about a harness of another version than the pinned one.
	//
	// Default: warn
	VersionGate source.Str
}

// Membership says who is in a ring or unit.
type Membership struct {
	// Users are the members by name.
	//
	// Example: [ann@acme.example]
	Users source.Strs
	// Groups are groups of the identity provider whose members are in.
	//
	// Example: [platform-security]
	Groups source.Strs
	// Percent is the share of everybody else that is in, with at most two decimals.
	//
	// It is kept in hundredths of a percent.
	//
	// Example: 12.5
	Percent source.Int
	// Default makes this the ring of everybody who is in no other. Exactly one ring has it.
	Default source.Bool
	// OptIn lets people join the ring themselves.
	OptIn source.Bool
}

// Unit is a part of the organization that tightens what its rings get.
type Unit struct {
	Header
	// Membership says who is in the unit.
	Membership Membership
	// Rings are the rings that have members of the unit; without it, all.
	Rings source.Strs
	// Parent is the unit that this one is a part of. Its overlay holds here too.
	Parent source.Str
	// Overlay is what the unit tightens. It may not loosen anything.
	Overlay Body
}

// PolicyTest is a document of expectations, which halo test checks.
type PolicyTest struct {
	Header
	// Tests are the expectations.
	Tests []Test
}

// Test is one expectation: a host or a path, for whom, and the answer.
type Test struct {
	// Host is the host that is asked about.
	//
	// Example: api.github.com
	Host source.Str
	// Path is the path that is asked about.
	//
	// Example: ~/.ssh/id_ed25519
	Path source.Str
	// Ring is whose policy is asked about; without it, the default ring's.
	Ring source.Str
	// OS is the operating system that is asked about.
	OS source.Str
	// Sandbox is the Sandbox document that decides, instead of the ring's policy alone.
	Sandbox source.Str
	// Expect is the answer that is right.
	Expect source.Str
	// Rule is the field and the entry that must have decided.
	//
	// Example: egress.deniedDomains pastebin.com
	Rule source.Str
	// Units are the units whose overlays hold as well.
	Units source.Strs
	// Port is the port that a sandbox is asked about; without it, every port counts as open.
	Port source.Int
	// Pos is the place of the entry.
	Pos diag.Pos
}

// Exception permits one loosening of one unit or ring until a date.
type Exception struct {
	Header
	// Unit is the unit that may loosen.
	Unit source.Str
	// Ring is the ring that may loosen.
	Ring source.Str
	// Field is the key that may be looser.
	//
	// Example: egress.allowedDomains
	Field source.Str
	// Entry is the entry of that key that may be there, or may be missing.
	//
	// Example: uploads.acme.example
	Entry source.Str
	// Owner is who answers for the exception.
	Owner source.Str
	// Reason says why it is needed.
	Reason source.Str
	// Ticket is where it was decided.
	Ticket source.Str
	// Expires is the last day on which it holds, in UTC.
	//
	// Example: 2027-03-01
	Expires Date
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
	Files    source.Files
	Root     *Halos
	Gateway  *Gateway
	Presets  []*Preset
	Profiles []*Profile
	// Left are the names of the profiles that Options.Question left out, sorted.
	Left       []string
	Rings      []*Ring
	Units      []*Unit
	Tests      []*PolicyTest
	Exceptions []*Exception
	Sandboxes  []*Sandbox
	Packs      []*PackFile
	// Others are the files below openshell/ and the workspace file.
	Others []*RepoFile
	// Strays are the names of the files below packs/ that are no packs/NAME/pack.yaml. They are not read.
	Strays []string
	// Documents has every document in file order, to find the one a place lies in.
	Documents []*Header
	// Made are the documents that simple mode made or lies below: the Gateway, the Profile, the Rings by their order.
	Made []*Header
}

// Profile returns the profile of that name, or nil.
func (r *Repo) Profile(name string) *Profile { return find(r.Profiles, name) }

// Layers returns the profiles, and those that simple mode made below a profile of the same name.
func (r *Repo) Layers() []*Profile {
	p := r.Profile(SimpleName)
	if p == nil || p.Base == nil {
		return r.Profiles
	}
	return append(slices.Clip(r.Profiles), p.Base)
}

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
