//go:build linux

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"halos.dev/halo/artifacts/device/probe"
	"halos.dev/halo/compiler/policy"
)

// CLI is one harness CLI as it is installed from npm.
type CLI struct {
	probe.CLI
	// Package is the npm package, Version the version that this lane was written against.
	Package, Version string

	check func(c CLI, ctx context.Context, prefix string, files []File) (Verdict, error)
}

// CLIs lists the harness CLIs that can be run, in the order of their ids.
func CLIs() []CLI {
	packages := map[string]CLI{
		policy.ClaudeCode: {Package: "@anthropic-ai/claude-code", Version: "2.1.332", check: CLI.checkClaude},
		policy.Codex:      {Package: "@openai/codex", Version: "0.171.0", check: CLI.checkCodex},
		policy.CopilotCLI: {Package: "@github/copilot", Version: "1.0.102", check: CLI.checkCopilot},
		policy.GeminiCLI:  {Package: "@google/gemini-cli", Version: "0.61.0", check: CLI.checkGemini},
		policy.OpenCode:   {Package: "opencode-ai", Version: "1.18.33", check: CLI.checkOpenCode},
	}
	var all []CLI
	for _, c := range probe.CLIs() {
		p := packages[c.ID]
		p.CLI = c
		all = append(all, p)
	}
	return all
}

// Prefix is the npm prefix of the CLI below an HALO_CI_CACHE directory, and the version installed there.
func (c CLI) Prefix(cache string) (dir, version string, err error) {
	dir = filepath.Join(cache, "npm", c.ID)
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", c.Package, "package.json"))
	if err != nil {
		return "", "", fmt.Errorf("find %s: %w", c.Package, err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(b, &p); err != nil {
		return "", "", fmt.Errorf("read version of %s: %w", c.Package, err)
	}
	return dir, p.Version, nil
}

// Verdict is what a CLI says about its policy files without a session.
type Verdict struct {
	// Fatal says that the CLI refuses to work with them.
	Fatal bool
	// Reports is what it says about them, empty when it is silent.
	Reports string
	// Effective is the policy as it understood it, where it tells.
	Effective json.RawMessage
}

// Check asks the CLI what it makes of files.
func (c CLI) Check(ctx context.Context, prefix string, files []File) (Verdict, error) {
	return c.check(c, ctx, prefix, files)
}

// checkClaude runs "claude doctor", which lists what is wrong and exits with 1 only for a document that it cannot parse.
func (c CLI) checkClaude(ctx context.Context, prefix string, files []File) (Verdict, error) {
	res, err := Do(ctx, prefix, Run{Run: probe.Run{Argv: []string{"claude", "doctor"}, Env: c.Env, Files: files}})
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Fatal: res.Exit != 0}
	var said []string
	for line := range strings.Lines(res.Output) {
		if strings.Contains(line, "managed-settings") || strings.Contains(line, "Managed settings failed") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	v.Reports = strings.Join(said, "\n")
	return v, nil
}

// checkCodex asks the app server for the requirements it read; warnings come as notifications. The server starts all the same when it
// cannot read them, where the other subcommands do not.
func (c CLI) checkCodex(ctx context.Context, prefix string, files []File) (Verdict, error) {
	res, err := Do(ctx, prefix, Run{Run: probe.Run{Argv: []string{"codex", "app-server"}, Files: files}, Requests: []Request{
		{"initialize", map[string]any{"clientInfo": map[string]any{"name": "halo", "version": "0"}, "capabilities": map[string]any{"experimentalApi": true}}},
		{"configRequirements/read", map[string]any{}},
	}})
	if err != nil {
		return Verdict{}, err
	}
	if len(res.Answers) < 2 {
		return Verdict{Fatal: true, Reports: res.Output}, nil
	}
	var a struct{ Error, Requirements json.RawMessage }
	if err := json.Unmarshal(res.Answers[1], &a); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Fatal: a.Error != nil, Reports: string(a.Error), Effective: a.Requirements}
	for _, note := range res.Notes {
		var n struct {
			Method string
			Params struct{ Summary, Details string }
		}
		// That a value was replaced by a required one is the policy at work: with web search off, the CLI says so of its own default.
		if json.Unmarshal(note, &n) == nil && n.Method == "configWarning" && !strings.Contains(n.Params.Summary, "falling back to required value") {
			v.Reports += n.Params.Summary + "\n" + n.Params.Details
		}
	}
	return v, nil
}

// checkCopilot lets the runtime validate the document and read the file; a file that is refused fails closed.
func (c CLI) checkCopilot(ctx context.Context, prefix string, files []File) (Verdict, error) {
	var content string
	for _, f := range files {
		if f.Path == "/etc/github-copilot/managed-settings.json" {
			content = string(f.Content)
		}
	}
	res, err := Do(ctx, prefix, Run{Run: probe.Run{Argv: []string{"copilot", "--headless", "--no-auto-update", "--stdio"}, Files: files}, Framed: true,
		Requests: []Request{
			{"connect", map[string]any{}},
			{"managedSettings.validate", map[string]any{"content": content, "layer": "device"}},
			{"managedSettings.resolve", map[string]any{}},
		}})
	if err != nil {
		return Verdict{}, err
	}
	if len(res.Answers) < 3 {
		return Verdict{Fatal: true, Reports: res.Output}, nil
	}
	var valid struct {
		Valid       bool
		Settings    json.RawMessage
		Diagnostics []struct{ Path, Severity, Message string }
	}
	var resolved struct{ Resolved struct{ FailClosed bool } }
	if err := json.Unmarshal(res.Answers[1], &valid); err != nil {
		return Verdict{}, err
	}
	if err := json.Unmarshal(res.Answers[2], &resolved); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Fatal: !valid.Valid || resolved.Resolved.FailClosed, Effective: valid.Settings}
	for _, d := range valid.Diagnostics {
		v.Reports += fmt.Sprintf("%s %s: %s\n", d.Severity, d.Path, d.Message)
	}
	return v, nil
}

// checkGemini starts a session without a tool call: the CLI has no command that only loads its settings and policies.
func (c CLI) checkGemini(ctx context.Context, prefix string, files []File) (Verdict, error) {
	res, err := Do(ctx, prefix, Run{Run: c.Session(files, nil)})
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Fatal: res.Asked == 0}
	var said []string
	for line := range strings.Lines(res.Output) {
		line = strings.TrimSpace(line)
		if v.Fatal || strings.Contains(line, "/etc/gemini-cli") || strings.Contains(line, "[ADMIN]") || strings.Contains(line, "Invalid configuration") ||
			strings.Contains(line, "policies") {
			said = append(said, line)
		}
	}
	v.Reports = strings.Join(said, "\n")
	return v, nil
}

// checkOpenCode prints the configuration as the CLI merged it.
func (c CLI) checkOpenCode(ctx context.Context, prefix string, files []File) (Verdict, error) {
	res, err := Do(ctx, prefix, Run{Run: probe.Run{Argv: []string{"opencode", "debug", "config"}, Env: c.Env, Files: files}})
	if err != nil {
		return Verdict{}, err
	}
	if res.Exit != 0 {
		return Verdict{Fatal: true, Reports: res.Output}, nil
	}
	at := strings.Index(res.Output, "{")
	if at < 0 || !json.Valid([]byte(res.Output[at:])) {
		return Verdict{}, fmt.Errorf("opencode debug config printed no JSON document: %s", res.Output)
	}
	return Verdict{Reports: strings.TrimSpace(res.Output[:at]), Effective: json.RawMessage(res.Output[at:])}, nil
}

// Target reads the files of one harness from a rendered target, the directory that holds <harness>/root.
func Target(dir, harness string) ([]File, error) {
	root := filepath.Join(dir, harness, "root")
	var files []File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, File{Path: "/" + filepath.ToSlash(rel), Content: content})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read target: %w", err)
	}
	return files, nil
}
