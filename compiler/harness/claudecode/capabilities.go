// Package claudecode renders policies for Claude Code: managed-settings.json, managed-mcp.json and the organization's CLAUDE.md, checks such files strictly,
// and says how far each concept holds.
package claudecode

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room. Nothing is computed for it.
func Harness() *harness.Harness { return &room }

var room = harness.Harness{
	ID:           policy.ClaudeCode,
	Known:        harness.Version{Major: 2, Minor: 1, Patch: 332},
	Oldest:       harness.Version{Major: 2, Minor: 0, Patch: 30},
	Render:       render,
	Check:        check,
	Import:       importFiles,
	Capabilities: table[:],
	Dirs: map[string][]string{
		"darwin":  {dirDarwin},
		"linux":   {dirLinux},
		"windows": {dirWindows},
	},
	Overrides: overrides[:],
}

// The managed directories: constants of the program, which no variable moves (linux observed on 2.1.332; the others read in its darwin and win32 packages).
const (
	dirDarwin  = "/Library/Application Support/ClaudeCode"
	dirLinux   = "/etc/claude-code"
	dirWindows = `C:\Program Files\ClaudeCode`
)

// overrides are settings of taste only: none runs a command, grants anything or reaches a host.
var overrides = [...]string{
	"attribution", "cleanupPeriodDays", "companyAnnouncements", "includeCoAuthoredBy", "language", "outputStyle", "prefersReducedMotion", "respectGitignore",
	"showTurnDuration", "spinnerTipsEnabled", "spinnerTipsOverride", "spinnerVerbs", "theme",
}

// Versions that brought a key, from the CHANGELOG of anthropics/claude-code unless the comment says otherwise.
var (
	hasManagedLists = harness.Version{Major: 2, Minor: 1, Patch: 69}  // allowManagedDomainsOnly works
	hasManagedOnly  = harness.Version{Major: 2, Minor: 1, Patch: 76}  // allowManaged{Hooks,McpServers}Only: first sampled there
	hasFilesystem   = harness.Version{Major: 2, Minor: 1, Patch: 78}  // sandbox.filesystem with plain absolute paths
	hasFailClosed   = harness.Version{Major: 2, Minor: 1, Patch: 83}  // sandbox.failIfUnavailable
	hasDenied       = harness.Version{Major: 2, Minor: 1, Patch: 113} // sandbox.network.deniedDomains
	hasReadLock     = harness.Version{Major: 2, Minor: 1, Patch: 126} // allowManagedReadPathsOnly: first sampled there; the domain lock was repaired in it
	hasVersionPin   = harness.Version{Major: 2, Minor: 1, Patch: 163} // required{Minimum,Maximum}Version
	hasModelLock    = harness.Version{Major: 2, Minor: 1, Patch: 175} // enforceAvailableModels
	hasAutoLock     = harness.Version{Major: 2, Minor: 1, Patch: 219} // permissions.disableAutoMode: in the schema that documents this version
	hasServers      = harness.Version{Major: 2, Minor: 1, Patch: 259} // managedMcpServers: first sampled there
	hasExactModels  = harness.Version{Major: 2, Minor: 1, Patch: 284} // availableModelsMatch: first sampled there
)

const (
	observed = "observed on 2.1.332, linux, 2026-11-30"
	readMac  = "read: settings schema and paths in the darwin-arm64 package of 2.1.332, vendor documentation; not run on macOS"
	readWin  = "read: settings schema and paths in the win32-x64 package of 2.1.332, vendor documentation; not run on Windows"
	readLog  = "read: CHANGELOG of anthropics/claude-code and the settings types of @anthropic-ai/claude-agent-sdk; not run at this version"
)

const (
	windowsShell = "on native Windows no sandbox block is rendered: both backends are behind a vendor gate, and requiring one locks users out where the gate is off"
	excluded     = "a user's own sandbox.excludedCommands runs the listed commands outside the sandbox once a prompt or a rule of theirs permits them"
)

var (
	unix    = []string{"darwin", "linux"}
	linux   = []string{"linux"}
	darwin  = []string{"darwin"}
	windows = []string{"windows"}

	escapes = []string{"~/.claude/settings.json sandbox.excludedCommands", "--settings"}
	roots   = []string{"~/.claude/settings.json sandbox.filesystem.allowWrite", "~/.claude/settings.json permissions.additionalDirectories", "--add-dir", "--settings"}
	reads   = []string{"~/.claude/settings.json sandbox.excludedCommands", "~/.claude/settings.json sandbox.filesystem.allowRead", "--settings"}
	bare    = []string{"--bare", "CLAUDE_CODE_SIMPLE"}
	untold  = []string{"--bare", "--safe-mode", "CLAUDE_CODE_SIMPLE"}
	fetches = []string{"~/.claude/settings.json permissions.allow", "--allowedTools", "--settings", "--dangerously-skip-permissions"}
)

const (
	howSandbox   = "sandbox.enabled, failIfUnavailable, allowUnsandboxedCommands false"
	howRoots     = "sandbox.filesystem.allowWrite"
	howProtected = "sandbox.filesystem.denyRead and denyWrite (Bash), Read and Edit deny rules (file tools and Bash)"
	howRules     = "Read and Edit deny rules (file tools)"
	howEgress    = "sandbox network lists (Bash) and WebFetch deny rules (fetch tool)"
	howFetch     = "WebFetch deny rules, WebFetch allow rules"
	howPerms     = "permissions.deny, permissions.ask, permissions.allow"
	howBypass    = "permissions.disableBypassPermissionsMode"
	howMCP       = "managed-mcp.json (the exclusive set), allowedMcpServers with allowManagedMcpServersOnly, deniedMcpServers"
	howHooks     = "hooks, allowManagedHooksOnly"
	howModels    = "availableModels, enforceAvailableModels, availableModelsMatch, model"
	howTelemetry = "env OTEL_* and CLAUDE_CODE_ENABLE_TELEMETRY"
	howText      = "CLAUDE.md in the managed directory"
	howPin       = "requiredMinimumVersion, requiredMaximumVersion"
)

const (
	limitRoots     = "users can add writable roots of their own, and file tools still ask outside the session folder"
	limitProtected = "shell coverage of globs is by the files that exist when a command starts, and " + excluded
	limitOldPaths  = "before 2.1.126 a user's own allowRead opens a protected path again, and " + excluded
	limitRules     = "only file tools are held: no sandbox is rendered on native Windows, so a shell command reads and writes the path"
	limitFetch     = "a host on no list is asked about, by a person or by the classifier of auto mode, and a user's own WebFetch allow rule opens it"
	limitPerms     = "the lists hold; users can add allow rules for what no list of the policy names, and the start mode is theirs to change"
	limitHooks     = "a bare session (--bare, CLAUDE_CODE_SIMPLE) starts without its SessionStart hooks; the hooks of other events run"
	limitMCP       = "denied servers are known by name, which the user chooses: a renamed server runs unless servers are managed only"
	limitModels    = "before 2.1.284 an entry also admits every longer version that begins with it"
	limitText      = "the model is told, which is no enforcement, and a flag starts a session without the text"
)

// table says what was seen or read for each concept. The first row that fits counts.
var table = [...]harness.Capability{
	{Concept: harness.Sandbox, OS: windows, Grade: harness.None, Limit: windowsShell, Evidence: readWin},
	{Concept: harness.Sandbox, OS: unix, Until: "2.1.83", Grade: harness.Overridable, How: "sandbox.enabled, allowUnsandboxedCommands false",
		Limit: "before 2.1.83 commands run unsandboxed with a warning when the sandbox is unavailable, and " + excluded, Bypass: escapes, Evidence: readLog},
	{Concept: harness.Sandbox, OS: linux, Grade: harness.Overridable, How: howSandbox, Limit: excluded, Bypass: escapes, Verified: true, Evidence: observed},
	{Concept: harness.Sandbox, OS: darwin, Grade: harness.Overridable, How: howSandbox, Limit: excluded, Bypass: escapes, Evidence: readMac},

	{Concept: harness.WritableRoots, OS: windows, Grade: harness.None, Limit: windowsShell, Evidence: readWin},
	{Concept: harness.WritableRoots, OS: unix, Until: "2.1.78", Grade: harness.None, Limit: "before 2.1.78 the sandbox takes no plain absolute path as a writable root", Evidence: readLog},
	{Concept: harness.WritableRoots, OS: linux, Grade: harness.Overridable, How: howRoots, Limit: limitRoots, Bypass: roots, Verified: true, Evidence: observed},
	{Concept: harness.WritableRoots, OS: darwin, Grade: harness.Overridable, How: howRoots, Limit: limitRoots, Bypass: roots, Evidence: readMac},

	{Concept: harness.ProtectedPaths, OS: windows, Grade: harness.Overridable, How: howRules, Limit: limitRules, Bypass: []string{"any shell command"}, Evidence: readWin},
	{Concept: harness.ProtectedPaths, OS: unix, Until: "2.1.126", Grade: harness.Overridable, How: howProtected, Limit: limitOldPaths, Bypass: reads, Evidence: readLog},
	{Concept: harness.ProtectedPaths, OS: linux, Grade: harness.Overridable, How: howProtected, Limit: limitProtected, Bypass: escapes, Verified: true, Evidence: observed},
	{Concept: harness.ProtectedPaths, OS: darwin, Grade: harness.Overridable, How: howProtected, Limit: limitProtected, Bypass: escapes, Evidence: readMac},

	{Concept: harness.Egress, OS: windows, Grade: harness.None, How: "WebFetch deny rules (fetch tool) only",
		Limit: "shell commands reach every host: " + windowsShell, Evidence: readWin},
	{Concept: harness.Egress, OS: unix, Until: "2.1.69", Grade: harness.Overridable, How: "WebFetch deny rules",
		Limit: "before 2.1.69 the lock on the allow list does not work, so no list is rendered and every host is asked about", Bypass: escapes, Evidence: readLog},
	{Concept: harness.Egress, OS: unix, Until: "2.1.83", Grade: harness.Overridable, How: "sandbox.network.allowedDomains with allowManagedDomainsOnly, WebFetch deny rules",
		Limit:  "before 2.1.83 commands run unsandboxed when the sandbox is unavailable, before 2.1.113 denied hosts are known to the fetch tool only, before 2.1.126 the lock has gaps, and " + excluded,
		Bypass: escapes, Evidence: readLog},
	{Concept: harness.Egress, OS: unix, Until: "2.1.113", Grade: harness.Overridable, How: "sandbox.network.allowedDomains with allowManagedDomainsOnly, WebFetch deny rules",
		Limit: "before 2.1.113 denied hosts are rendered for the fetch tool only, before 2.1.126 the lock has gaps, and " + excluded, Bypass: escapes, Evidence: readLog},
	{Concept: harness.Egress, OS: unix, Until: "2.1.126", Grade: harness.Overridable, How: howEgress,
		Limit: "before 2.1.126 the lock on the allow list has gaps, and " + excluded, Bypass: escapes, Evidence: readLog},
	{Concept: harness.Egress, OS: linux, Grade: harness.Overridable, How: howEgress, Limit: excluded, Bypass: escapes, Verified: true, Evidence: observed},
	{Concept: harness.Egress, OS: darwin, Grade: harness.Overridable, How: howEgress, Limit: excluded, Bypass: escapes, Evidence: readMac},

	{Concept: harness.Fetch, OS: linux, Grade: harness.Overridable, How: howFetch, Limit: limitFetch, Bypass: fetches, Verified: true, Evidence: observed},
	{Concept: harness.Fetch, OS: darwin, Grade: harness.Overridable, How: howFetch, Limit: limitFetch, Bypass: fetches, Evidence: readMac},
	{Concept: harness.Fetch, OS: windows, Grade: harness.Overridable, How: howFetch, Limit: limitFetch, Bypass: fetches, Evidence: readWin},

	{Concept: harness.Permissions, OS: linux, Grade: harness.Enforced, How: howPerms, Limit: limitPerms, Verified: true, Evidence: observed},
	{Concept: harness.Permissions, OS: darwin, Grade: harness.Enforced, How: howPerms, Limit: limitPerms, Evidence: readMac},
	{Concept: harness.Permissions, OS: windows, Grade: harness.Enforced, How: howPerms, Limit: limitPerms, Evidence: readWin},

	{Concept: harness.BypassLock, OS: linux, Grade: harness.Enforced, How: howBypass, Verified: true, Evidence: observed},
	{Concept: harness.BypassLock, OS: darwin, Grade: harness.Enforced, How: howBypass, Evidence: readMac},
	{Concept: harness.BypassLock, OS: windows, Grade: harness.Enforced, How: howBypass, Evidence: readWin},

	{Concept: harness.MCP, Until: "2.1.76", Grade: harness.Overridable, How: "managed-mcp.json (the exclusive set), deniedMcpServers",
		Limit: "before 2.1.76 the lock on the allow list is not known, and " + limitMCP, Evidence: readLog},
	{Concept: harness.MCP, OS: linux, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Verified: true, Evidence: observed},
	{Concept: harness.MCP, OS: darwin, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Evidence: readMac},
	{Concept: harness.MCP, OS: windows, Grade: harness.Enforced, How: howMCP, Limit: limitMCP, Evidence: readWin},

	{Concept: harness.Hooks, Until: "2.1.76", Grade: harness.Default, How: "hooks",
		Limit: "before 2.1.76 hooks of the user and the project cannot be shut out", Evidence: readLog},
	{Concept: harness.Hooks, OS: linux, Grade: harness.Enforced, How: howHooks, Limit: limitHooks, Verified: true, Evidence: observed},
	{Concept: harness.Hooks, OS: darwin, Grade: harness.Enforced, How: howHooks, Limit: limitHooks, Evidence: readMac},
	{Concept: harness.Hooks, OS: windows, Grade: harness.Enforced, How: howHooks, Limit: limitHooks, Evidence: readWin},

	{Concept: harness.Models, Until: "2.1.175", Grade: harness.Default, How: "availableModels, model",
		Limit: "before 2.1.175 the list does not bind the default model: another model is refused and the vendor's default runs instead", Evidence: readLog},
	{Concept: harness.Models, Until: "2.1.284", Grade: harness.Overridable, How: "availableModels, enforceAvailableModels, model", Limit: limitModels, Bypass: []string{"--model"}, Evidence: readLog},
	{Concept: harness.Models, OS: linux, Grade: harness.Enforced, How: howModels, Verified: true, Evidence: observed},
	{Concept: harness.Models, OS: darwin, Grade: harness.Enforced, How: howModels, Evidence: readMac},
	{Concept: harness.Models, OS: windows, Grade: harness.Enforced, How: howModels, Evidence: readWin},

	{Concept: harness.Telemetry, Until: "2.1.217", Grade: harness.Overridable, How: howTelemetry,
		Limit: "before 2.1.217 variables of the process can win over managed ones", Bypass: []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"}, Evidence: readLog},
	{Concept: harness.Telemetry, OS: linux, Grade: harness.Enforced, How: howTelemetry, Verified: true, Evidence: observed},
	{Concept: harness.Telemetry, OS: darwin, Grade: harness.Enforced, How: howTelemetry, Evidence: readMac},
	{Concept: harness.Telemetry, OS: windows, Grade: harness.Enforced, How: howTelemetry, Evidence: readWin},

	{Concept: harness.Instructions, OS: linux, Grade: harness.Overridable, How: howText, Limit: limitText, Bypass: untold, Verified: true, Evidence: observed},
	{Concept: harness.Instructions, OS: darwin, Grade: harness.Overridable, How: howText, Limit: limitText, Bypass: untold, Evidence: readMac},
	{Concept: harness.Instructions, OS: windows, Grade: harness.Overridable, How: howText, Limit: limitText, Bypass: untold, Evidence: readWin},

	{Concept: harness.Env, OS: linux, Grade: harness.Enforced, How: "env", Verified: true, Evidence: observed},
	{Concept: harness.Env, OS: darwin, Grade: harness.Enforced, How: "env", Evidence: readMac},
	{Concept: harness.Env, OS: windows, Grade: harness.Enforced, How: "env", Evidence: readWin},

	{Concept: harness.Overrides, Grade: harness.Enforced, How: "the keys of the override list, as they are written",
		Limit: "only settings of taste can be overridden", Evidence: "read: managed settings rank above user and project settings (vendor documentation)"},

	{Concept: harness.VersionPin, Until: "2.1.163", Grade: harness.None, Limit: "before 2.1.163 the version bounds are not known and would be ignored", Evidence: readLog},
	{Concept: harness.VersionPin, OS: linux, Grade: harness.Enforced, How: howPin, Verified: true, Evidence: observed},
	{Concept: harness.VersionPin, OS: darwin, Grade: harness.Enforced, How: howPin, Evidence: readMac},
	{Concept: harness.VersionPin, OS: windows, Grade: harness.Enforced, How: howPin, Evidence: readWin},
}

// row returns the row of the table for a target.
func row(c harness.Concept, t harness.Target) harness.Capability {
	h := harness.Harness{Capabilities: table[:]}
	return h.Capability(c, t.OS, t.Version)
}
