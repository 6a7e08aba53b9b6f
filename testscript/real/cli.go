//go:build linux

package real

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CLI is one harness CLI: how to start a session of it with a stand-in for its model, as a user who allows himself everything he can.
type CLI struct {
	// ID is the harness id.
	ID string
	// Package is the npm package, Version the version that this lane was written against.
	Package, Version string

	// argv and env start a session without a person; user are the files of a user who wants out.
	argv, env []string
	user      []File
	// shell and read name the tools and the arguments that hold the command and the path.
	shell, shellArg string
	read, readArg   string
	more            map[string]any
	check           func(c CLI, ctx context.Context, prefix string, files []File) (Verdict, error)
}

// CLIs lists the harness CLIs that can be run, in the order of their ids.
func CLIs() []CLI {
	home := func(path, content string) File { return File{Path: Home + "/" + path, Content: []byte(content)} }
	return []CLI{
		{
			ID: "claude-code", Package: "@anthropic-ai/claude-code", Version: "2.1.332",
			check: CLI.checkClaude,
			argv:  []string{"claude", "-p", "go", "--permission-mode", "default"},
			env: []string{"ANTHROPIC_BASE_URL=" + modelURL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"DISABLE_AUTOUPDATER=1"},
			user: []File{home(".claude/settings.json", `{
				"permissions": {"allow": ["Bash", "Read", "WebFetch"]},
				"sandbox": {"enabled": false, "allowUnsandboxedCommands": true, "network": {"allowedDomains": ["unlisted.example"]}}
			}`)},
			shell: "Bash", shellArg: "command", read: "Read", readArg: "file_path",
		},
		{
			ID: "codex", Package: "@openai/codex", Version: "0.171.0",
			check: CLI.checkCodex,
			argv:  []string{"codex", "exec", "go"},
			env:   []string{"STANDIN_KEY=none"},
			user: []File{home(".codex/config.toml", `
				model = "stand-in"
				model_provider = "standin"
				sandbox_mode = "danger-full-access"
				approval_policy = "on-request"
				[model_providers.standin]
				name = "stand-in"
				base_url = "`+modelURL+`/v1"
				wire_api = "responses"
				env_key = "STANDIN_KEY"
				request_max_retries = 0
				stream_max_retries = 0
			`)},
			shell: "exec_command", shellArg: "cmd", more: map[string]any{"yield_time_ms": 15000},
		},
		{
			ID: "copilot-cli", Package: "@github/copilot", Version: "1.0.102",
			check: CLI.checkCopilot,
			argv:  []string{"copilot", "-p", "go", "--allow-tool", "shell", "--allow-tool", "write", "--allow-all-paths", "--no-sandbox", "--no-auto-update"},
			env: []string{"COPILOT_PROVIDER_BASE_URL=" + modelURL + "/v1", "COPILOT_PROVIDER_API_KEY=none", "COPILOT_PROVIDER_TYPE=openai",
				"COPILOT_MODEL=stand-in", "COPILOT_OFFLINE=true"},
			user:  []File{home(".copilot/settings.json", `{"sandbox": {"enabled": false}}`)},
			shell: "bash", shellArg: "command", read: "view", readArg: "path", more: map[string]any{"description": "probe"},
		},
		{
			ID: "gemini-cli", Package: "@google/gemini-cli", Version: "0.61.0",
			check: CLI.checkGemini,
			argv:  []string{"gemini", "-p", "go", "-m", "gemini-2.5-flash", "--sandbox=false"},
			env:   []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + modelURL, "TERM=xterm-256color", "GEMINI_SANDBOX=false"},
			user: []File{
				// With its interactive shell the CLI takes some twenty seconds over each command here.
				home(".gemini/settings.json", `{
					"security": {"auth": {"selectedType": "gemini-api-key"}, "toolSandboxing": false},
					"tools": {"shell": {"enableInteractiveShell": false}}
				}`),
				home(".gemini/trustedFolders.json", `{"`+Work+`": "TRUST_FOLDER"}`),
				home(".gemini/policies/all.toml", `
					[[rule]]
					toolName = ["run_shell_command", "read_file", "write_file", "replace", "web_fetch"]
					decision = "allow"
					priority = 999
				`),
			},
			shell: "run_shell_command", shellArg: "command", read: "read_file", readArg: "file_path", more: map[string]any{"description": "probe"},
		},
		{
			ID: "opencode", Package: "opencode-ai", Version: "1.18.33",
			check: CLI.checkOpenCode,
			argv:  []string{"opencode", "run", "go"},
			env:   []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
			user: []File{home(".config/opencode/opencode.json", `{
				"model": "standin/m", "small_model": "standin/m",
				"provider": {"standin": {"npm": "@ai-sdk/openai-compatible", "name": "stand-in",
					"options": {"baseURL": "`+modelURL+`/v1", "apiKey": "none"}, "models": {"m": {"name": "m"}}}},
				"permission": {"bash": "allow", "external_directory": "allow", "read": "allow", "webfetch": "allow"}
			}`)},
			shell: "bash", shellArg: "command", read: "read", readArg: "filePath", more: map[string]any{"description": "probe"},
		},
	}
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

// Shell is a call of the CLI's shell tool.
func (c CLI) Shell(command string) Call { return c.call(c.shell, c.shellArg, command) }

// Read is a call of the CLI's file reading tool. Codex has none; its Read is a shell command.
func (c CLI) Read(path string) Call {
	if c.read == "" {
		return c.Shell("cat " + path)
	}
	return Call{Tool: c.read, Args: map[string]any{c.readArg: path}}
}

func (c CLI) call(tool, arg, value string) Call {
	args := map[string]any{arg: value}
	for k, v := range c.more {
		args[k] = v
	}
	return Call{Tool: tool, Args: args}
}

// Session is a run in which the stand-in for the model plays script, with files beside the user's own.
func (c CLI) Session(prefix string, files []File, script []Call) Run {
	return Run{Prefix: prefix, Argv: c.argv, Env: c.env, Files: slices.Concat(c.user, files), Script: script}
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
	res, err := Do(ctx, Run{Prefix: prefix, Argv: []string{"claude", "doctor"}, Env: c.env, Files: files})
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
	res, err := Do(ctx, Run{Prefix: prefix, Argv: []string{"codex", "app-server"}, Files: files, Requests: []Request{
		{"initialize", object{"clientInfo": object{"name": "halo", "version": "0"}, "capabilities": object{"experimentalApi": true}}},
		{"configRequirements/read", object{}},
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
	res, err := Do(ctx, Run{Prefix: prefix, Argv: []string{"copilot", "--headless", "--no-auto-update", "--stdio"}, Framed: true, Files: files,
		Requests: []Request{
			{"connect", object{}},
			{"managedSettings.validate", object{"content": content, "layer": "device"}},
			{"managedSettings.resolve", object{}},
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
	res, err := Do(ctx, c.Session(prefix, files, nil))
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
	res, err := Do(ctx, Run{Prefix: prefix, Argv: []string{"opencode", "debug", "config"}, Env: c.env, Files: files})
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
