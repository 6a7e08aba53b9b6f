// Package codex renders policies for the Codex CLI: requirements.toml, which nothing of the user beats, and config.toml with the defaults that have no
// requirement. It checks such files strictly and says how far each concept holds.
package codex

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room. Nothing is computed for it.
func Harness() *harness.Harness { return &room }

var room = harness.Harness{
	ID:           policy.Codex,
	Known:        harness.Version{Minor: 171},
	Oldest:       hasRequirements,
	Render:       render,
	Check:        check,
	Import:       importFiles,
	Capabilities: table[:],
	Dirs: map[string][]string{
		"darwin":  {dirUnix},
		"linux":   {dirUnix},
		"windows": {dirWindows},
	},
	Overrides: overrides[:],
}

// The managed directories (linux observed on 0.171.0; the others read in its darwin and win32 packages).
const (
	dirUnix    = "/etc/codex"
	dirWindows = `C:\ProgramData\OpenAI\Codex`
)

// overrides are settings of taste only; they are written as defaults.
var overrides = [...]string{
	"file_opener", "hide_agent_reasoning", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "show_raw_agent_reasoning", "tui.*",
}

// Versions that brought a key to requirements.toml: the first release that was run and knows it (2026-11-30).
var (
	hasRequirements = harness.Version{Minor: 77} // allowed_sandbox_modes, allowed_approval_policies
	hasMCP          = harness.Version{Minor: 87}
	hasRules        = harness.Version{Minor: 95}
	hasNetwork      = harness.Version{Minor: 99}            // experimental_network with flat lists, allowed_web_search_modes
	hasNetworkLock  = harness.Version{Minor: 116}           // managed_allowed_domains_only
	hasDomains      = harness.Version{Minor: 118}           // the domains table; older releases ignore it without a word
	hasDenyRead     = harness.Version{Minor: 122}           // permissions.filesystem.deny_read
	hasHooks        = harness.Version{Minor: 124}           // hooks
	hasHookLock     = harness.Version{Minor: 131}           // allow_managed_hooks_only
	hasProfiles     = harness.Version{Minor: 138}           // 0.133 to 0.137 refuse to start on a managed profile
	hasIdentity     = harness.Version{Minor: 146, Patch: 1} // MCP identity with arguments (0.138.0 refuses to start on it), models, check_for_update_on_startup
	hasProvider     = harness.Version{Minor: 156, Patch: 1} // model_provider
	hasInstructions = harness.Version{Minor: 156, Patch: 1} // additional_developer_instructions
	hasOtel         = harness.Version{Minor: 166}
)

const (
	observed = "observed on 0.171.0, linux, 2026-11-30"
	readMac  = "read: openai/codex configuration loader and the darwin-arm64 package of 0.171.0; not run on macOS"
	readWin  = "read: vendor documentation and the win32-x64 package of 0.171.0; not run on Windows"
	readOld  = "read: keys and refusals of this range were run on linux, sessions were not"
)

const (
	howSandbox   = "allowed_permission_profiles with one managed profile, default_permissions, allowed_sandbox_modes"
	howModes     = "allowed_sandbox_modes"
	howRoots     = "write entries of the managed profile"
	howProtected = "deny entries of the managed profile, permissions.filesystem.deny_read"
	howEgress    = "[experimental_network] table (sandboxed commands only)"
	howFetch     = "allowed_web_search_modes (there is no fetch tool)"
	howRules     = "rules.prefix_rules, permissions.filesystem.deny_read, allowed_web_search_modes"
	howBypass    = "allowed_approval_policies"
	howMCP       = "mcp_servers with identities (a closed list), config.toml mcp_servers"
	howHooks     = "hooks, allow_managed_hooks_only, features.hooks"
	howTelemetry = "otel"
	howText      = "additional_developer_instructions"
)

const (
	limitSandbox = "--add-dir and -C still add writable folders"
	limitOlder   = "0.77.0 is the oldest version that halo renders for: of an older one it is not known that a requirement holds this"
	limitModes   = "allowed_sandbox_modes refuses full access only: a user's own permission profile or [sandbox_workspace_write] may open every folder and the network"
	limitRoots   = "the roots are granted but are no ceiling, since --add-dir and -C add more, and a root that is a file, or that exists and that the user cannot write, keeps every session from starting"
	limitPaths   = "files behind a pattern are those that exist when a command starts, at most 8 folders deep"
	limitEgress  = "an allowed host that resolves to a private, link-local or loopback address is refused; " + limitReach
	limitReach   = "MCP servers, apps and the program's own traffic are not covered"
	limitRules   = "commands are known by their first words: one inside a script or another shell is not seen"
	limitDefault = "config.toml holds defaults only: the user's own config.toml, a trusted project's and -c win"
	limitText    = "the model is told, which is no enforcement"
	limitMCP     = "servers are known by name, command line or URL; a command's environment and working directory are not compared"
)

var (
	linux   = []string{"linux"}
	darwin  = []string{"darwin"}
	windows = []string{"windows"}

	addDir = []string{"--add-dir", "-C"}
	config = []string{"~/.codex/config.toml", ".codex/config.toml", "-c", "-p"}
	tables = []string{"~/.codex/config.toml default_permissions", "~/.codex/config.toml sandbox_workspace_write", "-c", "-p"}
)

// table says what was seen or read for each concept. The first row that fits counts.
var table = [...]harness.Capability{
	{Concept: harness.Sandbox, Until: "0.77.0", Grade: harness.None, Limit: limitOlder, Evidence: readOld},
	{Concept: harness.Sandbox, Until: "0.138.0", Grade: harness.Overridable, How: howModes, Limit: limitModes, Bypass: tables, Evidence: readOld},
	{Concept: harness.Sandbox, OS: linux, Grade: harness.Enforced, How: howSandbox, Limit: limitSandbox, Verified: true, Evidence: observed},
	{Concept: harness.Sandbox, OS: darwin, Grade: harness.Enforced, How: howSandbox, Limit: limitSandbox, Evidence: readMac},
	{Concept: harness.Sandbox, OS: windows, Grade: harness.Enforced, How: howSandbox, Limit: limitSandbox, Evidence: readWin},

	{Concept: harness.WritableRoots, Until: "0.138.0", Grade: harness.Default, How: "config.toml sandbox_workspace_write.writable_roots", Limit: limitDefault, Bypass: config, Evidence: readOld},
	{Concept: harness.WritableRoots, OS: linux, Grade: harness.Overridable, How: howRoots, Limit: limitRoots, Bypass: addDir, Verified: true, Evidence: observed},
	{Concept: harness.WritableRoots, OS: darwin, Grade: harness.Overridable, How: howRoots, Limit: limitRoots, Bypass: addDir, Evidence: readMac},
	{Concept: harness.WritableRoots, OS: windows, Grade: harness.Overridable, How: howRoots, Limit: limitRoots, Bypass: addDir, Evidence: readWin},

	{Concept: harness.ProtectedPaths, Until: "0.122.0", Grade: harness.None, Limit: "before 0.122.0 no requirement denies a path", Evidence: readOld},
	{Concept: harness.ProtectedPaths, Until: "0.138.0", Grade: harness.Overridable, How: "permissions.filesystem.deny_read",
		Limit: "before 0.138.0 only reading is denied, and relative patterns are not held", Bypass: tables, Evidence: readOld},
	{Concept: harness.ProtectedPaths, OS: linux, Grade: harness.Enforced, How: howProtected, Limit: limitPaths, Verified: true, Evidence: observed},
	{Concept: harness.ProtectedPaths, OS: darwin, Grade: harness.Enforced, How: howProtected, Limit: limitPaths, Evidence: readMac},
	{Concept: harness.ProtectedPaths, OS: windows, Grade: harness.Overridable, How: howProtected,
		Limit: "on Windows denied paths bind file tools and not what a shell command starts", Bypass: []string{"any shell command"}, Evidence: readWin},

	{Concept: harness.Egress, Until: "0.99.0", Grade: harness.None, Limit: "before 0.99.0 no requirement knows hosts: sandboxed commands have no network until the user opens all of it", Evidence: readOld},
	{Concept: harness.Egress, Until: "0.116.0", Grade: harness.Overridable, How: "[experimental_network] lists (sandboxed commands only)",
		Limit: "before 0.116.0 the allowed list has no lock: a user can add hosts, and allowed ones are reached only where the user turned the network on", Bypass: tables, Evidence: readOld},
	{Concept: harness.Egress, Until: "0.138.0", Grade: harness.Overridable, How: howEgress, Limit: "before 0.138.0 the sandbox itself is not held: " + limitModes, Bypass: tables, Evidence: readOld},
	{Concept: harness.Egress, OS: linux, Grade: harness.Enforced, How: howEgress, Limit: limitEgress, Verified: true, Evidence: observed},
	{Concept: harness.Egress, OS: darwin, Grade: harness.Enforced, How: howEgress, Limit: limitEgress, Evidence: readMac},
	{Concept: harness.Egress, OS: windows, Grade: harness.Overridable, How: howEgress,
		Limit: "on Windows the vendor calls the network rules limited, and nobody has confirmed them", Bypass: []string{"programs that ignore the proxy"}, Evidence: readWin},

	{Concept: harness.Fetch, Until: "0.99.0", Grade: harness.None, Limit: "before 0.99.0 the hosted web search cannot be switched off by a requirement", Evidence: readOld},
	{Concept: harness.Fetch, OS: linux, Grade: harness.Enforced, How: howFetch, Limit: "the hosted web search is on or off as a whole", Verified: true, Evidence: observed},
	{Concept: harness.Fetch, OS: darwin, Grade: harness.Enforced, How: howFetch, Limit: "the hosted web search is on or off as a whole", Evidence: readMac},
	{Concept: harness.Fetch, OS: windows, Grade: harness.Enforced, How: howFetch, Limit: "the hosted web search is on or off as a whole", Evidence: readWin},

	{Concept: harness.Permissions, Until: "0.95.0", Grade: harness.None, Limit: "before 0.95.0 no requirement holds rules for commands", Evidence: readOld},
	{Concept: harness.Permissions, OS: linux, Grade: harness.Overridable, How: howRules, Limit: limitRules, Bypass: []string{"sh -c"}, Verified: true, Evidence: observed},
	{Concept: harness.Permissions, OS: darwin, Grade: harness.Overridable, How: howRules, Limit: limitRules, Bypass: []string{"sh -c"}, Evidence: readMac},
	{Concept: harness.Permissions, OS: windows, Grade: harness.Overridable, How: howRules, Limit: limitRules, Bypass: []string{"any other shell"}, Evidence: readWin},

	{Concept: harness.BypassLock, Until: "0.77.0", Grade: harness.None, Limit: limitOlder, Evidence: readOld},
	{Concept: harness.BypassLock, OS: linux, Grade: harness.Enforced, How: howBypass, Verified: true, Evidence: observed},
	{Concept: harness.BypassLock, OS: darwin, Grade: harness.Enforced, How: howBypass, Evidence: readMac},
	{Concept: harness.BypassLock, OS: windows, Grade: harness.Enforced, How: howBypass, Evidence: readWin},

	{Concept: harness.MCP, Until: "0.87.0", Grade: harness.Default, How: "config.toml mcp_servers", Limit: "before 0.87.0 no requirement limits MCP servers", Bypass: config, Evidence: readOld},
	{Concept: harness.MCP, Until: "0.146.1", Grade: harness.Enforced, How: howMCP,
		Limit: "before 0.146.1 a command's arguments cannot be part of its identity, so servers that are commands are left out", Evidence: readOld},
	{Concept: harness.MCP, OS: linux, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Verified: true, Evidence: observed},
	{Concept: harness.MCP, OS: darwin, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Evidence: readMac},
	{Concept: harness.MCP, OS: windows, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Evidence: readWin},

	{Concept: harness.Hooks, Until: "0.124.0", Grade: harness.None, Limit: "before 0.124.0 no requirement holds hooks", Evidence: readOld},
	{Concept: harness.Hooks, Until: "0.131.0", Grade: harness.Overridable, How: "hooks", Limit: "before 0.131.0 hooks of the user run beside the managed ones", Bypass: config, Evidence: readOld},
	{Concept: harness.Hooks, OS: linux, Grade: harness.Enforced, How: howHooks, Verified: true, Evidence: observed},
	{Concept: harness.Hooks, OS: darwin, Grade: harness.Enforced, How: howHooks, Evidence: readMac},
	{Concept: harness.Hooks, OS: windows, Grade: harness.Enforced, How: howHooks, Evidence: readWin},

	{Concept: harness.Models, Until: "0.146.1", Grade: harness.Default, How: "config.toml model",
		Limit: "there is no list of allowed models, and the default is the user's to change", Bypass: []string{"-m", "-c", "~/.codex/config.toml model"}, Evidence: readOld},
	{Concept: harness.Models, OS: linux, Grade: harness.Default, How: "models.new_thread, model_provider",
		Limit: "there is no list of allowed models, and the default is the user's to change", Bypass: []string{"-m", "-c", "~/.codex/config.toml model"}, Verified: true, Evidence: observed},
	{Concept: harness.Models, OS: darwin, Grade: harness.Default, How: "models.new_thread, model_provider",
		Limit: "there is no list of allowed models, and the default is the user's to change", Bypass: []string{"-m", "-c", "~/.codex/config.toml model"}, Evidence: readMac},
	{Concept: harness.Models, OS: windows, Grade: harness.Default, How: "models.new_thread, model_provider",
		Limit: "there is no list of allowed models, and the default is the user's to change", Bypass: []string{"-m", "-c", "~/.codex/config.toml model"}, Evidence: readWin},

	{Concept: harness.Telemetry, Until: "0.166.0", Grade: harness.Default, How: "config.toml otel", Limit: limitDefault, Bypass: config, Evidence: readOld},
	{Concept: harness.Telemetry, OS: linux, Grade: harness.Enforced, How: howTelemetry, Verified: true, Evidence: observed},
	{Concept: harness.Telemetry, OS: darwin, Grade: harness.Enforced, How: howTelemetry, Evidence: readMac},
	{Concept: harness.Telemetry, OS: windows, Grade: harness.Enforced, How: howTelemetry, Evidence: readWin},

	{Concept: harness.Instructions, Until: "0.156.1", Grade: harness.Default, How: "config.toml developer_instructions", Limit: limitDefault, Bypass: config, Evidence: readOld},
	{Concept: harness.Instructions, OS: linux, Grade: harness.Enforced, How: howText, Limit: limitText, Verified: true, Evidence: observed},
	{Concept: harness.Instructions, OS: darwin, Grade: harness.Enforced, How: howText, Limit: limitText, Evidence: readMac},
	{Concept: harness.Instructions, OS: windows, Grade: harness.Enforced, How: howText, Limit: limitText, Evidence: readWin},

	{Concept: harness.Env, Grade: harness.Default, How: "config.toml shell_environment_policy.set", Limit: limitDefault, Bypass: config,
		Evidence: "read: shell_environment_policy is no requirement (its warning was seen on 0.171.0), so only the system config.toml can hold it"},
	{Concept: harness.Overrides, Grade: harness.Default, How: "config.toml, the keys of the override list", Limit: limitDefault, Bypass: config,
		Evidence: "read: the system config.toml is the weakest layer (openai/codex configuration loader)"},
	{Concept: harness.VersionPin, Grade: harness.None, Limit: "no setting holds a version: enforce it where the program is installed, or in the device report",
		Evidence: "read: keys minimum_version and required_version are unknown to 0.171.0, which says so"},
}

// row returns the row of the table for a target.
func row(c harness.Concept, t harness.Target) harness.Capability {
	h := harness.Harness{Capabilities: table[:]}
	return h.Capability(c, t.OS, t.Version)
}
