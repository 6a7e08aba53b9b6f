// Package opencode renders the managed configuration of OpenCode 1.x. What the program does with it was observed on 1.18.33 (linux-x64, 2026-11-30) unless a row
// says otherwise. OpenCode 2 is another program with another format; nothing is rendered for it.
package opencode

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room of OpenCode.
func Harness() *harness.Harness { return &room }

var (
	known  = harness.Version{Major: 1, Minor: 18, Patch: 33}
	oldest = harness.Version{Major: 1, Minor: 1, Patch: 53}
)

var room = harness.Harness{
	ID: policy.OpenCode, Known: known, Oldest: oldest, Render: render, Check: check, Import: importFiles, Capabilities: capabilities,
	Dirs: map[string][]string{
		"linux":   {"/etc/opencode"},
		"darwin":  {"/Library/Application Support/opencode"},
		"windows": {`C:\ProgramData\opencode`},
	},
}

var table = harness.Harness{ID: policy.OpenCode, Capabilities: capabilities}

const (
	seen      = "observed on 1.18.33, linux, 2026-11-30"
	other     = "read: folder switch in 1.18.33; not run on this system"
	early     = "opencode reads no managed folder before 1.1.53, so nothing is rendered for an older pin"
	seenEarly = "observed: the program of 1.1.34 has no managed folder, that of 1.1.53 has, linux, 2026-11-30"
	readLate  = "read: vendor documentation of OpenCode 2"
	late      = "OpenCode 2 is another program with another format and was not run, so nothing is rendered for it"
)

var (
	linux    = []string{"linux"}
	notLinux = []string{"darwin", "windows"}
	// movable is what makes the program ignore the whole managed folder.
	movable = []string{"OPENCODE_TEST_MANAGED_CONFIG_DIR"}
	// rules is what beats a managed permission.
	rules = []string{"OPENCODE_PERMISSION", "OPENCODE_TEST_MANAGED_CONFIG_DIR", "permission of an agent in ~/.config/opencode or in a repository's .opencode/agent", "key order of a user's own permission map",
		"--auto (answers every question with yes)"}
)

const (
	noSandbox   = "opencode has no sandbox: commands run with all rights of the user"
	guard       = "permissions of opencode are guard rails: an agent file, a repository, a variable or the order of a user's keys undoes them"
	rootsHow    = "permission.external_directory allow"
	rootsLimit  = "holds for the file tools only, commands write anywhere, and " + guard
	pathsHow    = "permission.external_directory, permission.read and permission.edit deny"
	pathsLimit  = "holds for the file tools only: a command that reads the file by redirection or a script is not stopped, nor is grep; an entry that is a single file outside the workspace is not reliably denied, a folder of the same name inside it is denied too, and " + guard
	fetchHow    = "permission.webfetch and permission.websearch deny or ask"
	fetchLimit  = "the fetch tool has no rule per host: with an allow list every fetch becomes a question, and " + guard
	permsHow    = "permission per tool, and patterns of commands"
	permsLimit  = "a pattern is matched with the text of a command, so another spelling passes, and " + guard
	mcpHow      = "mcp: servers defined, denied names switched off"
	mcpLimit    = "a server under another name is not touched, and the definitions fall when a variable moves the managed folder"
	modelsHow   = "enabled_providers and provider.*.whitelist"
	modelsLimit = "the list holds against a user's files and -m, and falls when a variable moves the managed folder"
	textHow     = "instructions: a file in the managed folder"
	textLimit   = "the file of instructions is left out when a variable moves the managed folder"
)

var capabilities = []harness.Capability{
	{Concept: harness.Sandbox, Grade: harness.None, Limit: noSandbox, Verified: true, Evidence: seen},

	{Concept: harness.WritableRoots, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.WritableRoots, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.WritableRoots, OS: linux, Grade: harness.Overridable, How: rootsHow, Limit: rootsLimit, Bypass: rules, Verified: true, Evidence: seen},
	{Concept: harness.WritableRoots, OS: notLinux, Grade: harness.Overridable, How: rootsHow, Limit: rootsLimit, Bypass: rules, Evidence: other},

	{Concept: harness.ProtectedPaths, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.ProtectedPaths, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.ProtectedPaths, OS: linux, Grade: harness.Overridable, How: pathsHow, Limit: pathsLimit, Bypass: rules, Verified: true, Evidence: seen},
	{Concept: harness.ProtectedPaths, OS: notLinux, Grade: harness.Overridable, How: pathsHow, Limit: pathsLimit, Bypass: rules, Evidence: other},

	{Concept: harness.Egress, Grade: harness.None, Limit: "opencode has no sandbox, so commands reach every host", Verified: true, Evidence: seen},

	{Concept: harness.Fetch, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.Fetch, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.Fetch, OS: linux, Grade: harness.Overridable, How: fetchHow, Limit: fetchLimit, Bypass: rules, Verified: true, Evidence: seen},
	{Concept: harness.Fetch, OS: notLinux, Grade: harness.Overridable, How: fetchHow, Limit: fetchLimit, Bypass: rules, Evidence: other},

	{Concept: harness.Permissions, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.Permissions, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.Permissions, OS: linux, Grade: harness.Overridable, How: permsHow, Limit: permsLimit, Bypass: rules, Verified: true, Evidence: seen},
	{Concept: harness.Permissions, OS: notLinux, Grade: harness.Overridable, How: permsHow, Limit: permsLimit, Bypass: rules, Evidence: other},

	{Concept: harness.BypassLock, Grade: harness.None, Limit: "--auto, which answers every question with yes, cannot be switched off in opencode", Verified: true, Evidence: seen},

	{Concept: harness.MCP, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.MCP, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.MCP, OS: linux, Grade: harness.Overridable, How: mcpHow, Limit: mcpLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.MCP, OS: notLinux, Grade: harness.Overridable, How: mcpHow, Limit: mcpLimit, Bypass: movable, Evidence: other},

	{Concept: harness.Hooks, Grade: harness.None, Limit: "opencode has no hooks, and its plugins cannot be restricted", Verified: true, Evidence: seen},

	{Concept: harness.Models, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.Models, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.Models, OS: linux, Grade: harness.Overridable, How: modelsHow, Limit: modelsLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.Models, OS: notLinux, Grade: harness.Overridable, How: modelsHow, Limit: modelsLimit, Bypass: movable, Evidence: other},

	{Concept: harness.Telemetry, Grade: harness.None, Limit: "opencode has no setting for a telemetry endpoint", Verified: true, Evidence: seen},

	{Concept: harness.Instructions, Until: "1.1.53", Grade: harness.None, Limit: early, Verified: true, Evidence: seenEarly},
	{Concept: harness.Instructions, Since: "2.0.0", Grade: harness.None, Limit: late, Evidence: readLate},
	{Concept: harness.Instructions, OS: linux, Grade: harness.Overridable, How: textHow, Limit: textLimit, Bypass: movable, Verified: true, Evidence: seen},
	{Concept: harness.Instructions, OS: notLinux, Grade: harness.Overridable, How: textHow, Limit: textLimit, Bypass: movable, Evidence: other},

	{Concept: harness.Env, Grade: harness.None, Limit: "no setting of opencode sets environment variables", Verified: true, Evidence: seen},
	{Concept: harness.Overrides, Grade: harness.None, Limit: "no raw key of opencode is on the list of allowed overrides", Evidence: "a decision of halo, not a limit of the program"},
	{Concept: harness.VersionPin, Grade: harness.None, Limit: "opencode cannot be pinned: autoupdate: false only stops it from updating itself", Verified: true, Evidence: seen},
}
