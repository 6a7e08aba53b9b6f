package probe

import (
	"slices"

	"halos.dev/halo/compiler/policy"
)

// CLI is one harness CLI: how to start a session of it with a stand-in for its model, as a user who allows himself everything he can. Argv, Env and User were
// observed on the versions that testscript/real names.
type CLI struct {
	// ID is the harness id.
	ID string
	// Argv and Env start a session without a person; User are the files of a user who wants out.
	Argv, Env []string
	User      []File
	// shell and read name the tools and the arguments that hold the command and the path.
	shell, shellArg string
	read, readArg   string
	more            map[string]any
}

// CLIs lists the harness CLIs that can be run, in the order of their ids. Cursor CLI talks to its vendor's service only, so no stand-in can lead it.
func CLIs() []CLI {
	home := func(path, content string) File { return File{Path: Home + "/" + path, Content: []byte(content)} }
	return []CLI{
		{
			ID:   policy.ClaudeCode,
			Argv: []string{"claude", "-p", "go", "--permission-mode", "default"},
			Env: []string{"ANTHROPIC_BASE_URL=" + modelURL, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
				"DISABLE_AUTOUPDATER=1"},
			User: []File{home(".claude/settings.json", `{
				"permissions": {"allow": ["Bash", "Read", "WebFetch"]},
				"sandbox": {"enabled": false, "allowUnsandboxedCommands": true, "network": {"allowedDomains": ["unlisted.example"]}}
			}`)},
			shell: "Bash", shellArg: "command", read: "Read", readArg: "file_path",
		},
		{
			ID:   policy.Codex,
			Argv: []string{"codex", "exec", "go"},
			Env:  []string{"STANDIN_KEY=none"},
			User: []File{home(".codex/config.toml", `
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
			ID:   policy.CopilotCLI,
			Argv: []string{"copilot", "-p", "go", "--allow-tool", "shell", "--allow-tool", "write", "--allow-all-paths", "--no-sandbox", "--no-auto-update"},
			Env: []string{"COPILOT_PROVIDER_BASE_URL=" + modelURL + "/v1", "COPILOT_PROVIDER_API_KEY=none", "COPILOT_PROVIDER_TYPE=openai",
				"COPILOT_MODEL=stand-in", "COPILOT_OFFLINE=true"},
			User:  []File{home(".copilot/settings.json", `{"sandbox": {"enabled": false}}`)},
			shell: "bash", shellArg: "command", read: "view", readArg: "path", more: map[string]any{"description": "probe"},
		},
		{
			ID:   policy.GeminiCLI,
			Argv: []string{"gemini", "-p", "go", "-m", "gemini-2.5-flash", "--sandbox=false"},
			Env:  []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + modelURL, "TERM=xterm-256color", "GEMINI_SANDBOX=false"},
			User: []File{
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
			ID:   policy.OpenCode,
			Argv: []string{"opencode", "run", "go"},
			Env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"},
			User: []File{home(".config/opencode/opencode.json", `{
				"model": "standin/m", "small_model": "standin/m",
				"provider": {"standin": {"npm": "@ai-sdk/openai-compatible", "name": "stand-in",
					"options": {"baseURL": "`+modelURL+`/v1", "apiKey": "none"}, "models": {"m": {"name": "m"}}}},
				"permission": {"bash": "allow", "external_directory": "allow", "read": "allow", "webfetch": "allow"}
			}`)},
			shell: "bash", shellArg: "command", read: "read", readArg: "filePath", more: map[string]any{"description": "probe"},
		},
	}
}

// Find returns the CLI of a harness.
func Find(id string) (CLI, bool) {
	all := CLIs()
	i := slices.IndexFunc(all, func(c CLI) bool { return c.ID == id })
	if i < 0 {
		return CLI{}, false
	}
	return all[i], true
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
func (c CLI) Session(files []File, script []Call) Run {
	return Run{Argv: c.Argv, Env: c.Env, Files: slices.Concat(c.User, files), Script: script}
}
