// Package copilot renders the managed settings of GitHub Copilot CLI. What the program does with them was observed on 1.0.102 (linux-x64, 2026-11-30) unless a
// row says otherwise.
package copilot

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room of GitHub Copilot CLI.
func Harness() *harness.Harness { return &room }

var (
	known  = harness.Version{Major: 1, Minor: 0, Patch: 102}
	oldest = harness.Version{Major: 1, Minor: 0, Patch: 79}
)

var room = harness.Harness{
	ID: policy.CopilotCLI, Known: known, Oldest: oldest, Render: render, Check: check, Import: importFiles, Capabilities: capabilities,
	Dirs: map[string][]string{
		"linux":   {"/etc/github-copilot"},
		"darwin":  {"/Library/Application Support/GitHubCopilot", "/etc/github-copilot/policy.d"},
		"windows": {`C:\Program Files\GitHubCopilot`, `C:\ProgramData\GitHub\Copilot\policy.d`},
	},
}

// table is what the renderer reads its own rows from.
var table = harness.Harness{ID: policy.CopilotCLI, Capabilities: capabilities}

const (
	seen      = "observed on 1.0.102, linux, 2026-11-30"
	seenOlder = "observed on 1.0.83 and 1.0.102, linux, 2026-11-30"
	readOther = "read: native runtime and settings schema of 1.0.102; not run on this system"
	readSet   = "read: managed-settings schema printed by 1.0.102"
	tooOld    = "copilot-cli gets a sandbox from 1.0.93 on, where the vendor supports it; for an older pin no sandbox is rendered and commands run unconfined"
	limitMCP  = "servers are not set up, under the lock none loads that users add, and the built-in GitHub server is exempt from both lists"
	notSeen   = "the managed settings of copilot-cli below 1.0.79 were not checked, so nothing is rendered for such a pin"
)

var (
	linux    = []string{"linux"}
	darwin   = []string{"darwin"}
	windows  = []string{"windows"}
	notLinux = []string{"darwin", "windows"}
)

const sandboxHow = "sandbox.enabled, failIfUnavailable and allowBypass: false"

var capabilities = []harness.Capability{
	{Concept: harness.Sandbox, Until: "1.0.93", Grade: harness.None, Limit: tooOld, Verified: true, Evidence: "observed on 1.0.79 to 1.0.92, linux, 2026-11-30: keys are dropped without a word"},
	{Concept: harness.Sandbox, OS: linux, Grade: harness.Enforced, How: sandboxHow, Verified: true, Evidence: seen},
	{Concept: harness.Sandbox, OS: notLinux, Grade: harness.Enforced, How: sandboxHow, Evidence: readOther},

	{Concept: harness.WritableRoots, Until: "1.0.93", Grade: harness.None, Limit: tooOld, Verified: true, Evidence: seenOlder},
	{Concept: harness.WritableRoots, Grade: harness.None, How: "sandbox.userPolicy.filesystem.readwritePaths, a ceiling",
		Limit:    "a writable root is a ceiling and grants nothing: each user must list the same path in their own settings",
		Verified: true, Evidence: seen},

	{Concept: harness.ProtectedPaths, Until: "1.0.93", Grade: harness.None, Limit: tooOld, Verified: true, Evidence: seenOlder},
	{Concept: harness.ProtectedPaths, OS: linux, Grade: harness.Enforced, How: "sandbox.userPolicy.filesystem.deniedPaths",
		Limit:    "holds for commands; the built-in file tools follow it on a best-effort basis, and globs and paths relative to the workspace cannot be written",
		Verified: true, Evidence: seen},
	{Concept: harness.ProtectedPaths, OS: darwin, Grade: harness.Enforced, How: "sandbox.userPolicy.filesystem.deniedPaths",
		Limit:    "holds for commands; the built-in file tools follow it on a best-effort basis, and globs and paths relative to the workspace cannot be written",
		Evidence: readOther},
	{Concept: harness.ProtectedPaths, OS: windows, Grade: harness.None, Limit: "the sandbox of copilot-cli on Windows cannot deny single paths, so protected paths are not held there",
		Evidence: "read: changelog of 1.0.76"},

	{Concept: harness.Egress, Until: "1.0.93", Grade: harness.None, Limit: tooOld, Verified: true, Evidence: "observed on 1.0.79, linux, 2026-11-30: the sandbox came on and egress stayed open"},
	{Concept: harness.Egress, OS: linux, Grade: harness.Enforced, How: "sandbox.userPolicy.network allowedHosts and blockedHosts, or allowOutbound: false",
		Limit: "an allowed name that resolves to a private address stays unreachable for commands, and a blocked name also blocks its subdomains", Verified: true, Evidence: seen},
	{Concept: harness.Egress, OS: notLinux, Grade: harness.Overridable, How: "sandbox.userPolicy.network allowedHosts and blockedHosts, or allowOutbound: false",
		Limit:    "the host lists bind commands through a proxy on this system, and a program that ignores the proxy reaches any host",
		Bypass:   []string{"a program that does not use the proxy variables"},
		Evidence: "read: vendor documentation calls the proxy cooperative on this system"},

	{Concept: harness.Fetch, Until: "1.0.93", Grade: harness.None, Limit: "the fetch tool follows the sandbox's host lists, and " + tooOld, Verified: true, Evidence: seenOlder},
	{Concept: harness.Fetch, OS: linux, Grade: harness.Enforced, How: "the sandbox's host lists bind web_fetch; permissions.limitTo on top",
		Limit: "permissions.limitTo alone would let *.x include x; the sandbox's list refuses it", Verified: true, Evidence: seen},
	{Concept: harness.Fetch, OS: notLinux, Grade: harness.Enforced, How: "the sandbox's host lists bind web_fetch; permissions.limitTo on top",
		Limit: "permissions.limitTo alone would let *.x include x; the sandbox's list refuses it", Evidence: readOther},

	{Concept: harness.Permissions, Until: "1.0.102", Grade: harness.None, Limit: "the start mode is rendered from 1.0.102 on, the first version it was checked in", Evidence: readSet},
	{Concept: harness.Permissions, Grade: harness.Default, How: "permissions.defaultMode",
		Limit:    "the permission mode is a start value that a user may change; rules are not translated, because one rule makes every unmatched operation ask",
		Bypass:   []string{"--allow-all-tools", "a change of mode in the session"},
		Evidence: readSet},

	{Concept: harness.BypassLock, Until: "1.0.79", Grade: harness.None, Limit: notSeen, Evidence: "not run"},
	{Concept: harness.BypassLock, OS: linux, Grade: harness.Enforced, How: "permissions.disableBypassPermissionsMode", Verified: true, Evidence: seen},
	{Concept: harness.BypassLock, OS: notLinux, Grade: harness.Enforced, How: "permissions.disableBypassPermissionsMode", Evidence: readOther},

	{Concept: harness.MCP, Until: "1.0.79", Grade: harness.None, Limit: notSeen, Evidence: "not run"},
	{Concept: harness.MCP, Until: "1.0.83", Grade: harness.Overridable, How: "deniedMcpServers",
		Limit: "allowManagedMcpServersOnly is known from 1.0.83 on; an older pin gets the denied names and no allow list", Bypass: []string{"a server under another name"},
		Evidence: "observed on 1.0.79 to 1.0.83, linux, 2026-11-30: which keys load"},
	{Concept: harness.MCP, OS: linux, Grade: harness.Enforced, How: "allowedMcpServers with allowManagedMcpServersOnly, deniedMcpServers",
		Limit: limitMCP, Verified: true, Evidence: seen},
	{Concept: harness.MCP, OS: notLinux, Grade: harness.Enforced, How: "allowedMcpServers with allowManagedMcpServersOnly, deniedMcpServers",
		Limit: limitMCP, Evidence: readOther},

	{Concept: harness.Hooks, Until: "1.0.83", Grade: harness.None, Limit: "allowManagedHooksOnly is known from 1.0.83 on; for an older pin no hook setting is rendered", Verified: true, Evidence: seenOlder},
	{Concept: harness.Hooks, OS: linux, Grade: harness.Enforced, How: "allowManagedHooksOnly, and hook files in policy.d",
		Limit: "a hook file whose owner or mode is wrong is skipped without a word, and a hook for some tools only cannot be written", Verified: true, Evidence: seen},
	{Concept: harness.Hooks, OS: notLinux, Grade: harness.Enforced, How: "allowManagedHooksOnly, and hook files in policy.d",
		Limit: "a hook file whose owner or mode is wrong is skipped without a word, and a hook for some tools only cannot be written", Evidence: readOther},

	{Concept: harness.Models, Grade: harness.None, Limit: "the managed settings of copilot-cli have no list of models, and their model key is a default in the vendor's own names", Verified: true, Evidence: seen},

	{Concept: harness.Telemetry, Until: "1.0.79", Grade: harness.None, Limit: notSeen, Evidence: "not run"},
	{Concept: harness.Telemetry, OS: linux, Grade: harness.Enforced, How: "telemetry", Limit: "grpc is not spoken", Verified: true, Evidence: seen},
	{Concept: harness.Telemetry, OS: notLinux, Grade: harness.Enforced, How: "telemetry", Limit: "grpc is not spoken", Evidence: readOther},

	{Concept: harness.Instructions, Grade: harness.None, Limit: "no managed setting of copilot-cli holds instructions", Evidence: readSet},
	{Concept: harness.Env, Grade: harness.None, Limit: "no managed setting of copilot-cli sets environment variables", Evidence: readSet},
	{Concept: harness.Overrides, Grade: harness.None, Limit: "no raw key of copilot-cli is on the list of allowed overrides", Evidence: "a decision of halo, not a limit of the program"},
	{Concept: harness.VersionPin, Grade: harness.None, Limit: "no managed setting of copilot-cli pins its version; enforce the pin where the program is installed", Verified: true, Evidence: seen},
}
