// Package cursor is the room of Cursor CLI, for which nothing is rendered: the one file of an administrator that it reads on a device is a list of hooks. Sandbox, hosts,
// paths and permissions are set in the vendor's team dashboard, or in files that belong to the user or the repository. All of this was read, in the vendor's
// documentation and in public studies of build 2026.09.28; the program was not run.
package cursor

import (
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/harness/gap"
	"halos.dev/halo/compiler/policy"
)

// Harness returns the room of Cursor CLI.
func Harness() *harness.Harness { return &room }

// Cursor names its builds by date; the newest that was read about stands for all of them.
var (
	known  = harness.Version{Major: 2026, Minor: 9, Patch: 28}
	oldest = harness.Version{}
)

var room = harness.Harness{ID: policy.CursorCLI, Known: known, Oldest: oldest, Render: render, Check: check, Capabilities: capabilities}

var table = harness.Harness{ID: policy.CursorCLI, Capabilities: capabilities}

const (
	evidence = "read: vendor documentation, and public studies of build 2026.09.28; the program was never run"
	admin    = "no file of an administrator on the device holds it for cursor-cli; set it in the team dashboard"
)

var (
	userFiles = []string{"~/.cursor/sandbox.json", "~/.cursor/cli-config.json", "a repository's .cursor/sandbox.json", "--force", "--sandbox disabled", "CURSOR_CONFIG_DIR"}
	asking    = []string{"--force", "approvalMode in ~/.cursor/cli-config.json", "CURSOR_CONFIG_DIR"}
)

var capabilities = []harness.Capability{
	{Concept: harness.Sandbox, Grade: harness.None, Limit: admin, Bypass: userFiles, Evidence: evidence},
	{Concept: harness.WritableRoots, Grade: harness.None, Limit: admin, Bypass: userFiles, Evidence: evidence},
	{Concept: harness.ProtectedPaths, Grade: harness.None, Limit: admin, Bypass: userFiles, Evidence: evidence},
	{Concept: harness.Egress, Grade: harness.None, Limit: admin, Bypass: userFiles, Evidence: evidence},
	{Concept: harness.Fetch, Grade: harness.None, Limit: admin, Bypass: asking, Evidence: evidence},
	{Concept: harness.Permissions, Grade: harness.None, Limit: admin, Bypass: asking, Evidence: evidence},
	{Concept: harness.BypassLock, Grade: harness.None, Limit: admin, Bypass: asking, Evidence: evidence},
	{Concept: harness.MCP, Grade: harness.None, Limit: admin, Evidence: evidence},
	{Concept: harness.Hooks, Grade: harness.None, Limit: "the hooks of users, of repositories and of Claude Code always run in cursor-cli, and the administrator's file of hooks is not rendered", Evidence: evidence},
	{Concept: harness.Models, Grade: harness.None, Limit: admin, Evidence: evidence},
	{Concept: harness.Telemetry, Grade: harness.None, Limit: "cursor-cli has no setting for a telemetry endpoint", Evidence: evidence},
	{Concept: harness.Instructions, Grade: harness.None, Limit: admin, Evidence: evidence},
	{Concept: harness.Env, Grade: harness.None, Limit: "no setting of cursor-cli sets environment variables", Evidence: evidence},
	{Concept: harness.Overrides, Grade: harness.None, Limit: "there is no rendered file that a raw key could go into", Evidence: "a decision of halo, not a limit of the program"},
	{Concept: harness.VersionPin, Grade: harness.None, Limit: "no setting of cursor-cli pins its version", Evidence: evidence},
}

// render answers with one gap for every concept that the policy uses.
func render(t harness.Target) ([]harness.File, []harness.Gap) {
	g := gap.New(&table, t)
	var last harness.Concept
	for _, f := range gap.Fields(t.Policy, policy.CursorCLI) {
		if f.Concept == last {
			continue
		}
		last = f.Concept
		row := table.Capability(f.Concept, t.OS, t.Version)
		g.Add(harness.Gap{Concept: f.Concept, Field: f.Path, Grade: harness.None, Reason: gap.Unsupported(policy.CursorCLI, f.Path), Remedy: row.Limit, Bypass: row.Bypass})
	}
	if t.GatewayURL != "" {
		g.Add(harness.Gap{Concept: harness.Models, Field: "gateway.baseURL", Grade: harness.None, Reason: "no file of an administrator on the device holds the address of a gateway for cursor-cli, so its traffic is not sent to it"})
	}
	return nil, g.Gaps()
}

// check refuses every file: none is rendered.
func check(_ harness.Target, files []harness.File) []harness.Finding {
	var out []harness.Finding
	for _, f := range files {
		out = append(out, harness.Finding{Dest: f.Dest, Message: "is rendered for cursor-cli, which reads none of halo's files"})
	}
	return out
}
