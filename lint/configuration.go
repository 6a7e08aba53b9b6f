package lint

import (
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/fspath"
	"halos.dev/halo/compiler/policy"
)

var configurationRoot = Rule{
	Code: &diag.Code{ID: "HALO2309", Severity: diag.Warning, Title: "writable root in a project's agent configuration", Since: "0.1.0",
		Text: "The root lies in a folder from which a harness or Git takes settings, hooks or servers of a project. An agent that may write there decides what runs in the next session, outside of its " +
			"sandbox. Name the folder that holds what the agent makes.",
		Before: "writableRoots: [/srv/app/.claude]", After: "writableRoots: [/srv/app/build]"},
	Find: func(p *Pass) {
		report := func(l policy.FilePaths, path string) {
			for i, r := range l.Items {
				// A folder of the home is the compiler's to judge.
				if _, home := fspath.ConfigDir(r.Path); home {
					continue
				}
				for _, s := range r.Path.Segments() {
					if slices.Contains(projectFolders, strings.ToLower(s)) {
						p.Report(r.Pos, indexed(path, i), "%s lies in %s, a folder of settings and programs of a project", r.Path, s)
						break
					}
				}
			}
		}
		for _, doc := range p.Repo.Layers() {
			report(doc.Sandbox.WritableRoots, "sandbox.writableRoots")
		}
		for _, doc := range p.Repo.Units {
			report(doc.Overlay.Sandbox.WritableRoots, "overlay.sandbox.writableRoots")
		}
	},
}

// projectFolders are folders of a repository from which harnesses, editors and Git start programs or read settings. From the vendors' documentation, read
// 2026-11-30.
var projectFolders = []string{".claude", ".codex", ".copilot", ".cursor", ".gemini", ".git", ".github", ".opencode", ".vscode"}

var openConfiguration = Rule{
	Code: &diag.Code{ID: "HALO2310", Severity: diag.Info, Title: "project configuration in the reach of the agent", Since: "0.1.0",
		Text: "The sandbox lets the agent write its workspace, and the harness takes settings from these files of the workspace. What the agent writes there is in force in the next session. Protect the " +
			"files, or close the door that they open: hooks.managedOnly for hooks, mcp.managedOnly for servers.",
		Before: "sandbox: {mode: workspace-write}", After: "sandbox: {mode: workspace-write, protectedPaths: [.cursor/sandbox.json]}"},
	Find: func(p *Pass) {
		done := map[*effective.Policy]bool{}
		for _, t := range p.Targets {
			eff := t.Policy
			if done[eff] || len(t.Units) > 0 || eff.Mode() != policy.ModeWorkspaceWrite {
				continue
			}
			done[eff] = true
			for _, c := range projectConfiguration {
				pin := eff.Pin(c.harness)
				if pin == nil || c.closed(eff) {
					continue
				}
				var open []string
				for _, file := range c.files {
					if !protects(eff, file) {
						open = append(open, file)
					}
				}
				if len(open) > 0 {
					p.Report(pin.Harness.Pos, "harnesses."+c.harness, "an agent may write %s in its workspace, from which %s takes %s", strings.Join(open, " and "), c.harness, c.what)
				}
			}
		}
	},
}

func protects(p *effective.Policy, file string) bool {
	return slices.ContainsFunc(p.Sandbox.ProtectedPaths.Items, func(q policy.FilePath) bool {
		return fspath.Matches(q.Path, "/workspace/"+file, "/workspace", "/home")
	})
}

// projectConfiguration are files of a workspace that change what a harness does although managed settings are in place, and the policy that makes them harmless.
// From the vendors' documentation and the CLIs' behaviour: Claude Code 2.1.332, Copilot CLI 1.0.102, Cursor CLI 2026.9.28, Gemini CLI 0.61.0, OpenCode 1.18.33.
var projectConfiguration = []struct {
	harness string
	files   []string
	what    string
	closed  func(*effective.Policy) bool
}{
	{policy.ClaudeCode, []string{".claude/settings.json"}, "hooks", managedHooks},
	{policy.ClaudeCode, []string{".mcp.json"}, "servers", managedServers},
	{policy.CursorCLI, []string{".cursor/sandbox.json"}, "its sandbox", never},
	{policy.GeminiCLI, []string{".gemini/settings.json"}, "hooks", never},
	{policy.OpenCode, []string{".opencode/agent", "opencode.json"}, "permissions", never},
}

func managedHooks(p *effective.Policy) bool   { return p.Hooks.ManagedOnly.V }
func managedServers(p *effective.Policy) bool { return p.MCP.ManagedOnly.V }
func never(*effective.Policy) bool            { return false }
