// Package gemini renders the system settings and the admin policies of Gemini CLI. What the program does with them was observed on 0.61.0 (linux-x64, 2026-11-30)
// unless a row says otherwise. What must hold is put into the policy folder, which no variable moves, the rest into the settings file, which one does.
package gemini

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room of Gemini CLI.
func Harness() *harness.Harness { return &room }

var (
	known  = harness.Version{Major: 0, Minor: 61}
	oldest = harness.Version{Major: 0, Minor: 36}
)

var room = harness.Harness{
	ID: policy.GeminiCLI, Known: known, Oldest: oldest, Render: render, Check: check, Import: importFiles, Capabilities: capabilities,
	Dirs: map[string][]string{
		"linux":   {"/etc/gemini-cli"},
		"darwin":  {"/Library/Application Support/GeminiCli"},
		"windows": {`C:\ProgramData\gemini-cli`},
	},
	Overrides: []string{"ui.*", "general.preferredEditor", "general.openEditorInNewWindow", "general.vimMode", "general.enableNotifications", "general.notificationMethod",
		"general.checkpointing.enabled", "general.sessionRetention.*", "context.fileName", "context.importFormat"},
}

var table = harness.Harness{ID: policy.GeminiCLI, Capabilities: capabilities}

var (
	linux    = []string{"linux"}
	notLinux = []string{"darwin", "windows"}
	// movable is what makes the program read other settings than the system's.
	movable = []string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH"}
	network = []string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH", "~/.gemini/policies/sandbox.toml", "an agreed widening of the sandbox"}
)

const (
	seen  = "observed on 0.61.0, linux, 2026-11-30"
	other = "read: program bundle of 0.61.0; not run on this system"
	early = "gemini-cli is rendered from 0.36.0 on, the first version that has tool sandboxing and admin policies in their present form; an older pin holds none of it"
)

const (
	sandboxHow          = "security.toolSandboxing, security.disableYoloMode and security.disableAlwaysAllow"
	sandboxLimit        = "tools run confined until a variable moves the settings file or the user agrees to widen the sandbox; on Linux bwrap must be installed"
	protectedPathsHow   = "admin policy rules for the file tools"
	protectedPathsLimit = "holds for the file tools by the text of the path, which denies a file of the same name elsewhere too; commands can still read all but .env files, and a search without a path still shows lines"
	egressHow           = "security.toolSandboxing: commands have no network"
	egressLimit         = "commands have no network at all, so allowed hosts are not reached either, and the user's own sandbox policy can open it"
	fetchHow            = "admin policy rules for web_fetch"
	fetchLimit          = "web_fetch takes free text: an allow list becomes a question about every fetch, and a denied host is stopped in its plain spelling only, not behind a redirect; the web search is another tool and left as it is"
	permissionsHow      = "admin policy rules for whole tools, command prefixes and fetched domains"
	permissionsLimit    = "a command rule is matched with the text of a command, so another spelling passes, and a question about commands skips those that the program takes for safe"
	bypassLockHow       = "security.disableYoloMode and security.disableAlwaysAllow"
	bypassLockLimit     = "the lock is in the settings file, which a variable moves"
	mcpHow              = "admin policy rules by server name, mcpServers"
	mcpLimit            = "servers are told apart by name only: when a variable moves the settings file, a user's server of an admitted name is admitted"
	hooksHow            = "hooks in the settings file"
	hooksLimit          = "hooks run until a user lists them in hooksConfig.disabled or a variable moves the settings file, and the hooks of users cannot be stopped"
	modelsHow           = "model.name"
	modelsLimit         = "the model is a default: -m and GEMINI_MODEL choose another, and there is no list of models"
	telemetryHow        = "telemetry"
	telemetryLimit      = "the variables GEMINI_TELEMETRY_* win over the settings file"
	overridesHow        = "raw keys of ui, general and context, merged last"
	overridesLimit      = "the settings file can be moved by a variable"
)

var capabilities = []harness.Capability{
	{Concept: harness.Sandbox, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Sandbox, OS: linux, Grade: harness.Overridable, How: sandboxHow, Limit: sandboxLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.Sandbox, OS: notLinux, Grade: harness.Overridable, How: sandboxHow, Limit: sandboxLimit, Bypass: movable, Evidence: other},

	{Concept: harness.WritableRoots, Grade: harness.None, Limit: "no setting of gemini-cli makes a path outside the workspace writable in its tool sandbox", Verified: true, Evidence: seen},

	{Concept: harness.ProtectedPaths, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.ProtectedPaths, OS: linux, Grade: harness.Overridable, How: protectedPathsHow, Limit: protectedPathsLimit, Bypass: []string{"a command that reads the file", "another spelling of the path"}, Verified: true, Evidence: seen},
	{Concept: harness.ProtectedPaths, OS: notLinux, Grade: harness.Overridable, How: protectedPathsHow, Limit: protectedPathsLimit, Bypass: []string{"a command that reads the file", "another spelling of the path"}, Evidence: other},

	{Concept: harness.Egress, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Egress, OS: linux, Grade: harness.Overridable, How: egressHow, Limit: egressLimit, Bypass: network, Verified: true, Evidence: seen},
	{Concept: harness.Egress, OS: notLinux, Grade: harness.Overridable, How: egressHow, Limit: egressLimit, Bypass: network, Evidence: other},

	{Concept: harness.Fetch, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Fetch, OS: linux, Grade: harness.Overridable, How: fetchHow, Limit: fetchLimit, Bypass: []string{"a redirect to a denied host", "the answer yes"}, Verified: true, Evidence: seen},
	{Concept: harness.Fetch, OS: notLinux, Grade: harness.Overridable, How: fetchHow, Limit: fetchLimit, Bypass: []string{"a redirect to a denied host", "the answer yes"}, Evidence: other},

	{Concept: harness.Permissions, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Permissions, OS: linux, Grade: harness.Overridable, How: permissionsHow, Limit: permissionsLimit, Bypass: []string{"another spelling of a command"}, Verified: true, Evidence: seen},
	{Concept: harness.Permissions, OS: notLinux, Grade: harness.Overridable, How: permissionsHow, Limit: permissionsLimit, Bypass: []string{"another spelling of a command"}, Evidence: other},

	{Concept: harness.BypassLock, Until: "0.15.4", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.BypassLock, Until: "0.36.0", Grade: harness.Overridable, How: "security.disableYoloMode", Limit: bypassLockLimit, Bypass: movable, Evidence: "read: program bundle of 0.15.4"},
	{Concept: harness.BypassLock, OS: linux, Grade: harness.Overridable, How: bypassLockHow, Limit: bypassLockLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.BypassLock, OS: notLinux, Grade: harness.Overridable, How: bypassLockHow, Limit: bypassLockLimit, Bypass: movable, Evidence: other},

	{Concept: harness.MCP, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.MCP, OS: linux, Grade: harness.Overridable, How: mcpHow, Limit: mcpLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.MCP, OS: notLinux, Grade: harness.Overridable, How: mcpHow, Limit: mcpLimit, Bypass: movable, Evidence: other},

	{Concept: harness.Hooks, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Hooks, OS: linux, Grade: harness.Overridable, How: hooksHow, Limit: hooksLimit, Bypass: []string{"hooksConfig.disabled", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"}, Verified: true, Evidence: seen},
	{Concept: harness.Hooks, OS: notLinux, Grade: harness.Overridable, How: hooksHow, Limit: hooksLimit, Bypass: []string{"hooksConfig.disabled", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"}, Evidence: other},

	{Concept: harness.Models, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Models, OS: linux, Grade: harness.Default, How: modelsHow, Limit: modelsLimit, Bypass: []string{"-m", "GEMINI_MODEL"}, Verified: true, Evidence: seen},
	{Concept: harness.Models, OS: notLinux, Grade: harness.Default, How: modelsHow, Limit: modelsLimit, Bypass: []string{"-m", "GEMINI_MODEL"}, Evidence: other},

	{Concept: harness.Telemetry, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Telemetry, OS: linux, Grade: harness.Overridable, Verified: true, How: telemetryHow, Limit: telemetryLimit, Bypass: []string{"GEMINI_TELEMETRY_*", "OTEL_EXPORTER_OTLP_ENDPOINT", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"}, Evidence: "observed on 0.61.0, linux, 2026-11-30: the endpoint is used; read: the variables win"},
	{Concept: harness.Telemetry, OS: notLinux, Grade: harness.Overridable, How: telemetryHow, Limit: telemetryLimit, Bypass: []string{"GEMINI_TELEMETRY_*", "OTEL_EXPORTER_OTLP_ENDPOINT", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"}, Evidence: other},

	{Concept: harness.Instructions, Grade: harness.None, Limit: "no setting of gemini-cli holds instructions of the organization", Verified: true, Evidence: seen},
	{Concept: harness.Env, Grade: harness.None, Limit: "no setting of gemini-cli sets environment variables", Verified: true, Evidence: seen},

	{Concept: harness.Overrides, Until: "0.36.0", Grade: harness.None, Limit: early, Evidence: "read: program bundles of older versions"},
	{Concept: harness.Overrides, OS: linux, Grade: harness.Overridable, How: overridesHow, Limit: overridesLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.Overrides, OS: notLinux, Grade: harness.Overridable, How: overridesHow, Limit: overridesLimit, Bypass: movable, Evidence: other},

	{Concept: harness.VersionPin, Grade: harness.None, Limit: "gemini-cli cannot be pinned: general.enableAutoUpdate: false only stops it from updating itself", Verified: true, Evidence: seen},
}
