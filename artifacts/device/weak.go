package device

import (
	"fmt"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// rule is one user setting that works against a managed file. What each does was observed on Claude Code 2.1.332, Copilot CLI 1.0.102, Codex 0.171.0, Gemini CLI
// 0.61.0 and OpenCode 1.18.33 (linux, 2026-11-30); Cursor CLI was read about (vendor documentation, build 2026.09.28).
type rule struct {
	harness string
	// files are patterns below the home directory.
	files []string
	// keys is the path of the setting; "*" stands for any key. Empty means that the file itself is the finding.
	keys []string
	// bad says whether a value weakens, and how it is shown behind the key. Values of users are not shown, only those that the rule itself names.
	bad func(v any, m *managed) (shown string, weak bool)
	// effect is what the setting does, fix what to do about it.
	effect, fix string
	// held says what in the managed file holds anyway, or "". A held setting is information and not weak, unless alarm is set.
	held  func(m *managed) string
	alarm bool
}

// managed is what the managed files of one harness say.
type managed struct {
	// docs are the parsed managed files by the last element of their path.
	docs map[string]map[string]any
	// version is the installed version when known is true.
	version harness.Version
	known   bool
}

// at returns a value of a managed file.
func (m *managed) at(file string, keys ...string) any { return value(m.docs[file], keys...) }

func (m *managed) has(file string, keys ...string) bool { return m.at(file, keys...) != nil }

// holds returns how when the managed file has a setting that the installed version, if known, reads.
func (m *managed) holds(since, how, file string, keys ...string) string {
	if !m.has(file, keys...) || m.known && since != "" && m.version.Less(harness.MustVersion(since)) {
		return ""
	}
	if since != "" {
		how += " from " + since + " on"
	}
	return how
}

func equals(wants ...any) func(any, *managed) (string, bool) {
	return func(v any, _ *managed) (string, bool) {
		for _, w := range wants {
			if v == w {
				if s, ok := w.(string); ok {
					return fmt.Sprintf("= %q", s), true
				}
				return fmt.Sprintf("= %v", w), true
			}
		}
		return "", false
	}
}

// nonEmpty finds any value that has entries.
func nonEmpty(v any, _ *managed) (string, bool) {
	n := count(v)
	switch v.(type) {
	case []any, map[string]any:
		return entries(n), n > 0
	}
	return "", n > 0
}

func entries(n int) string {
	if n == 1 {
		return "(1 entry)"
	}
	return fmt.Sprintf("(%d entries)", n)
}

// listed finds entries of a list that begin with one of some prefixes.
func listed(prefixes ...string) func(any, *managed) (string, bool) {
	return func(v any, _ *managed) (string, bool) {
		list, _ := v.([]any)
		n := 0
		for _, e := range list {
			s, _ := e.(string)
			for _, p := range prefixes {
				if strings.HasPrefix(s, p) {
					n++
					break
				}
			}
		}
		return entries(n), n > 0
	}
}

const (
	managedSettings = "managed-settings.json"
	codexFile       = "requirements.toml"
	geminiFile      = "settings.json"
	opencodeFile    = "opencode.json"
)

func holds(since, how, file string, keys ...string) func(*managed) string {
	return func(m *managed) string { return m.holds(since, how, file, keys...) }
}

var (
	claudeUser   = []string{".claude/settings.json"}
	codexUser    = []string{".codex/config.toml", ".codex/*.config.toml"}
	copilotUser  = []string{".copilot/settings.json"}
	geminiUser   = []string{".gemini/settings.json"}
	opencodeUser = []string{".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"}
	cursorBox    = []string{".cursor/sandbox.json"}
	cursorConfig = []string{".cursor/cli-config.json", ".config/cursor/cli-config.json"}
)

// rules are all settings that doctor looks for. Nothing else of a user's file is looked at.
var rules = []rule{
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"sandbox", "excludedCommands"}, bad: nonEmpty,
		effect: "these commands run outside the sandbox, without any limit of paths or hosts", fix: "remove sandbox.excludedCommands; nothing in the managed settings holds it"},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"sandbox", "filesystem", "allowWrite"}, bad: nonEmpty,
		effect: "adds writable roots", fix: "remove sandbox.filesystem.allowWrite; only paths in the managed denyWrite stay closed"},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"sandbox", "filesystem", "allowRead"}, bad: nonEmpty,
		effect: "opens protected paths for reading again", fix: "remove sandbox.filesystem.allowRead",
		held: holds("2.1.126", "allowManagedReadPathsOnly ignores it", managedSettings, "sandbox", "filesystem", "allowManagedReadPathsOnly")},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "allow"}, bad: listed("WebFetch"),
		effect: "the fetch tool reaches these hosts", fix: "remove the WebFetch entries from permissions.allow",
		held: holds("2.1.76", "allowManagedPermissionRulesOnly ignores it", managedSettings, "allowManagedPermissionRulesOnly")},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "allow"}, bad: listed("Edit(/", "Edit(~", "Write(/", "Write(~"),
		effect: "adds writable roots to the sandbox", fix: "remove the Edit and Write entries from permissions.allow",
		held: holds("2.1.76", "allowManagedPermissionRulesOnly ignores it", managedSettings, "allowManagedPermissionRulesOnly")},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "additionalDirectories"}, bad: nonEmpty,
		effect: "adds writable roots to the sandbox", fix: "remove permissions.additionalDirectories; nothing in the managed settings holds it"},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "defaultMode"}, bad: equals("bypassPermissions"),
		effect: "starts without any permission prompt", fix: "remove permissions.defaultMode",
		held: holds("", "disableBypassPermissionsMode refuses it", managedSettings, "permissions", "disableBypassPermissionsMode")},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "defaultMode"}, bad: equals("auto"),
		effect: "a classifier answers permission prompts", fix: "remove permissions.defaultMode",
		held: func(m *managed) string {
			if h := m.holds("", "disableAutoMode refuses it", managedSettings, "permissions", "disableAutoMode"); h != "" {
				return h
			}
			return m.holds("", "disableAutoMode refuses it", managedSettings, "disableAutoMode")
		}},
	{harness: policy.ClaudeCode, files: claudeUser, keys: []string{"permissions", "defaultMode"}, bad: equals("acceptEdits"),
		effect: "edits are made without a question", fix: "remove permissions.defaultMode"},

	{harness: policy.Codex, files: codexUser, keys: []string{"sandbox_mode"}, bad: equals("danger-full-access"), alarm: true,
		effect: "asks to run without a sandbox", fix: "remove sandbox_mode; " + codexHeld},
	{harness: policy.Codex, files: codexUser, keys: []string{"profiles", "*", "sandbox_mode"}, bad: equals("danger-full-access"), alarm: true,
		effect: "asks to run without a sandbox", fix: "remove sandbox_mode from the profile; " + codexHeld},
	{harness: policy.Codex, files: codexUser, keys: []string{"default_permissions"}, bad: equals(":danger-full-access"), alarm: true,
		effect: "asks to run without a sandbox", fix: "remove default_permissions; " + codexHeld},
	{harness: policy.Codex, files: codexUser, keys: []string{"default_permissions"}, bad: ownProfile,
		effect: "selects a profile of the user, whose paths and network are the user's", fix: "remove default_permissions", held: codexProfiles},
	{harness: policy.Codex, files: codexUser, keys: []string{"permissions", "*", "network", "enabled"}, bad: equals(true),
		effect: "a profile of the user opens the network", fix: "remove the profile", held: codexProfiles},
	{harness: policy.Codex, files: codexUser, keys: []string{"permissions", "*", "filesystem", "*"}, bad: equals("write"),
		effect: "a profile of the user adds writable roots", fix: "remove the profile", held: codexProfiles},
	{harness: policy.Codex, files: codexUser, keys: []string{"permissions"}, bad: sameProfile, alarm: true,
		effect: "has the name of the managed profile, so codex refuses to start", fix: "rename the profile"},
	{harness: policy.Codex, files: codexUser, keys: []string{"sandbox_workspace_write", "network_access"}, bad: equals(true),
		effect: "opens the network in the sandbox", fix: "remove sandbox_workspace_write.network_access", held: codexProfiles},
	{harness: policy.Codex, files: codexUser, keys: []string{"sandbox_workspace_write", "writable_roots"}, bad: nonEmpty,
		effect: "adds writable roots", fix: "remove sandbox_workspace_write.writable_roots", held: codexProfiles},
	{harness: policy.Codex, files: codexUser, keys: []string{"approval_policy"}, bad: equals("never"),
		effect: "commands run without a question", fix: "remove approval_policy",
		held: holds("0.77.0", "allowed_approval_policies refuses it", codexFile, "allowed_approval_policies")},
	{harness: policy.Codex, files: codexUser, keys: []string{"hooks"}, bad: nonEmpty,
		effect: "runs hooks of the user outside the sandbox", fix: "remove hooks",
		held: holds("0.131.0", "allow_managed_hooks_only stops them", codexFile, "allow_managed_hooks_only")},
	{harness: policy.Codex, files: codexUser, keys: []string{"mcp_servers"}, bad: nonEmpty,
		effect: "MCP servers run outside the sandbox and its network rules", fix: "remove mcp_servers, or list the servers in the policy",
		held: holds("0.87.0", "the managed mcp_servers is a closed list", codexFile, "mcp_servers")},
	{harness: policy.Codex, files: codexUser, keys: []string{"model_provider"}, bad: nonEmpty,
		effect: "sends prompts to another provider", fix: "remove model_provider",
		held: holds("0.156.1", "the managed model_provider wins", codexFile, "model_provider")},
	{harness: policy.Codex, files: codexUser, keys: []string{"openai_base_url"}, bad: nonEmpty,
		effect: "sends prompts to another address", fix: "remove openai_base_url",
		held: holds("0.156.1", "the managed model_provider wins", codexFile, "model_provider")},
	{harness: policy.Codex, files: codexUser, keys: []string{"otel"}, bad: nonEmpty,
		effect: "sends telemetry elsewhere", fix: "remove otel", held: holds("0.166.0", "the managed otel wins", codexFile, "otel")},
	{harness: policy.Codex, files: codexUser, keys: []string{"analytics", "enabled"}, bad: equals(true),
		effect: "sends usage data to the vendor", fix: "remove analytics; no requirement holds it"},

	{harness: policy.CopilotCLI, files: copilotUser, keys: []string{"sandbox", "userPolicy", "filesystem", "readwritePaths"}, bad: nonEmpty,
		effect: "adds writable roots", fix: "remove sandbox.userPolicy.filesystem.readwritePaths",
		held: holds("", "only paths in the managed readwritePaths count", managedSettings, "sandbox", "userPolicy", "filesystem", "readwritePaths")},
	{harness: policy.CopilotCLI, files: copilotUser, keys: []string{"sandbox", "allowBypass"}, bad: equals(true),
		effect: "lets a command leave the sandbox", fix: "remove sandbox.allowBypass",
		held: func(m *managed) string {
			if m.at(managedSettings, "sandbox", "allowBypass") == false {
				return "the managed allowBypass is false"
			}
			return ""
		}},
	{harness: policy.CopilotCLI, files: copilotUser, keys: []string{"defaultPermissionMode"}, bad: nonEmpty,
		effect: "changes which operations are asked about", fix: "remove defaultPermissionMode",
		held: holds("", "disableBypassPermissionsMode keeps it from skipping questions", managedSettings, "permissions", "disableBypassPermissionsMode")},
	{harness: policy.CopilotCLI, files: []string{".copilot/hooks/*.json"},
		effect: "is a hook of the user", fix: "remove it", held: holds("1.0.83", "allowManagedHooksOnly stops it", managedSettings, "allowManagedHooksOnly")},
	{harness: policy.CopilotCLI, files: []string{".copilot/plugins/*", ".copilot/installed-plugins/*"},
		effect: "is a plugin of the user, which may bring hooks and servers", fix: "remove it, or list marketplaces in the managed settings",
		held: holds("", "strictKnownMarketplaces limits where plugins come from", managedSettings, "strictKnownMarketplaces")},

	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"tools", "sandbox"}, bad: equals(false, "false"), alarm: true,
		effect: "asks to run without a sandbox", fix: "remove tools.sandbox; the managed settings win while no variable moves them"},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"tools", "allowed"}, bad: nonEmpty,
		effect: "these tools run without a question", fix: "remove tools.allowed"},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"hooksConfig", "disabled"}, bad: nonEmpty,
		effect: "switches hooks off, managed ones too", fix: "remove hooksConfig.disabled; nothing in the managed settings holds it"},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"hooksConfig", "enabled"}, bad: equals(false),
		effect: "switches all hooks off", fix: "remove hooksConfig.enabled",
		held: holds("", "the managed hooksConfig.enabled wins", geminiFile, "hooksConfig", "enabled")},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"hooks"}, bad: nonEmpty,
		effect: "runs hooks of the user outside the sandbox", fix: "remove hooks; nothing in the managed settings holds it"},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"mcpServers"}, bad: geminiServers,
		effect: "MCP servers run outside the sandbox and its network rules", fix: "remove mcpServers, or list the servers in the policy", held: geminiMCP},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"security", "folderTrust", "enabled"}, bad: equals(false),
		effect: "every folder counts as trusted", fix: "remove security.folderTrust.enabled",
		held: holds("", "the managed security.folderTrust wins", geminiFile, "security", "folderTrust")},
	{harness: policy.GeminiCLI, files: geminiUser, keys: []string{"telemetry"}, bad: nonEmpty,
		effect: "changes where telemetry goes", fix: "remove telemetry", held: holds("", "the managed telemetry wins key by key", geminiFile, "telemetry")},
	{harness: policy.GeminiCLI, files: []string{".gemini/policies/*.toml"}, keys: []string{"rule"}, bad: allowRules,
		effect: "allows what no managed policy decides", fix: "remove the rules with decision allow; managed policies rank higher for what they match"},
	{harness: policy.GeminiCLI, files: []string{".gemini/policies/sandbox.toml"}, keys: []string{"modes", "*", "network"}, bad: equals(true),
		effect: "opens the network in the tool sandbox", fix: "remove network; nothing in the managed settings holds it"},
	{harness: policy.GeminiCLI, files: []string{".gemini/policies/sandbox.toml"}, keys: []string{"network"}, bad: equals(true),
		effect: "opens the network in the tool sandbox", fix: "remove network; nothing in the managed settings holds it"},
	{harness: policy.GeminiCLI, files: []string{".gemini/trustedFolders.json"}, keys: []string{}, bad: nonEmpty,
		effect: "trusts folders, whose own settings and .env files are read then", fix: "remove what is not to be trusted", held: func(*managed) string { return "managed settings rank above those of a folder" }},

	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"agent", "*", "permission"}, bad: nonEmpty,
		effect: "beats every managed permission", fix: "remove the permission of the agent; nothing in the managed file holds it"},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"mode"}, bad: nonEmpty,
		effect: "may carry permissions that beat the managed ones", fix: "remove mode"},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"permission", "*"}, bad: starKey,
		effect: "a key the user writes first keeps its place before the managed ones", fix: `remove "*" from permission`},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"permission"}, bad: starKey,
		effect: "a key the user writes first keeps its place before the managed ones", fix: `remove "*" from permission`},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"plugin"}, bad: nonEmpty,
		effect: "plugins bring tools that no permission names", fix: "remove plugin; nothing in the managed file holds it"},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"mcp"}, bad: nonEmpty,
		effect: "MCP servers bring tools that no permission names", fix: "remove mcp; only servers that the managed file names are held"},
	{harness: policy.OpenCode, files: opencodeUser, keys: []string{"share"}, bad: equals("auto", "manual"),
		effect: "sessions may be shared publicly", fix: "remove share", held: holds("", "the managed share wins", opencodeFile, "share")},
	{harness: policy.OpenCode, files: []string{".config/opencode/agent/*.md", ".config/opencode/agents/*.md"},
		effect: "is an agent of the user, whose permission beats every managed one", fix: "remove it, or check that it has no permission"},

	{harness: policy.CursorCLI, files: cursorBox, keys: []string{"type"}, bad: equals("insecure_none"), alarm: true,
		effect: "runs without a sandbox", fix: "remove type; only the team dashboard holds it"},
	{harness: policy.CursorCLI, files: cursorBox, keys: []string{"networkPolicy", "default"}, bad: equals("allow"),
		effect: "opens the network", fix: "remove networkPolicy.default"},
	{harness: policy.CursorCLI, files: cursorBox, keys: []string{"additionalReadwritePaths"}, bad: nonEmpty,
		effect: "adds writable roots, over protected paths too", fix: "remove additionalReadwritePaths"},
	{harness: policy.CursorCLI, files: cursorConfig, keys: []string{"sandbox", "mode"}, bad: equals("disabled"),
		effect: "runs without a sandbox", fix: "set sandbox.mode to enabled"},
	{harness: policy.CursorCLI, files: cursorConfig, keys: []string{"sandbox", "networkAccess"}, bad: equals("allow_all"),
		effect: "opens the network", fix: "remove sandbox.networkAccess"},
	{harness: policy.CursorCLI, files: cursorConfig, keys: []string{"approvalMode"}, bad: equals("unrestricted"),
		effect: "commands run without a question", fix: "remove approvalMode"},
}

const codexHeld = "requirements.toml refuses it from codex 0.77.0 on, older versions run without a sandbox"

func codexProfiles(m *managed) string {
	return m.holds("0.138.0", "allowed_permission_profiles is a closed list and overrides it", codexFile, "allowed_permission_profiles")
}

// ownProfile finds a selected profile that is neither built in nor the managed one.
func ownProfile(v any, m *managed) (string, bool) {
	s, ok := v.(string)
	return "to a profile of the user", ok && s != "" && !strings.HasPrefix(s, ":") && s != m.at(codexFile, "default_permissions")
}

// sameProfile finds a profile with the name of the managed one.
func sameProfile(v any, m *managed) (string, bool) {
	name, _ := m.at(codexFile, "default_permissions").(string)
	return "." + name, name != "" && value(v, name) != nil
}

func geminiServers(v any, _ *managed) (string, bool) {
	trusted := 0
	for _, t := range values(v, "*", "trust") {
		if t == true {
			trusted++
		}
	}
	n := count(v)
	if trusted > 0 {
		return fmt.Sprintf("(%d, %d of them trusted: no questions)", n, trusted), true
	}
	return entries(n), n > 0
}

// geminiMCP finds the managed policy that denies every server it does not name.
func geminiMCP(m *managed) string {
	for _, doc := range m.docs {
		list, _ := doc["rule"].([]any)
		for _, r := range list {
			if value(r, "mcpName") == "*" && value(r, "decision") == "deny" {
				return "a managed policy denies servers that it does not name"
			}
		}
	}
	return ""
}

func allowRules(v any, _ *managed) (string, bool) {
	list, _ := v.([]any)
	n := 0
	for _, r := range list {
		if value(r, "decision") == "allow" {
			n++
		}
	}
	return fmt.Sprintf("with decision allow (%d)", n), n > 0
}

// starKey finds the key "*" itself.
func starKey(v any, _ *managed) (string, bool) {
	t, _ := v.(map[string]any)
	_, ok := t["*"]
	return `with the key "*"`, ok
}

// variable is an environment variable that works against a managed file; a name that ends in "*" is a prefix.
type variable struct {
	harness, name string
	effect        string
	// only limits the finding to one value.
	only string
	// moves is the directory below the home whose place it takes, or "".
	moves string
	held  func(m *managed) string
}

var variables = []variable{
	{harness: policy.ClaudeCode, name: "CLAUDE_CONFIG_DIR", effect: "moves the user's settings; the managed ones stay in force", moves: ".claude"},
	{harness: policy.Codex, name: "CODEX_HOME", effect: "moves the user's settings; the managed ones stay in force", moves: ".codex"},
	{harness: policy.CopilotCLI, name: "COPILOT_HOME", effect: "moves the user's settings; the managed ones stay in force", moves: ".copilot"},
	{harness: policy.CopilotCLI, name: "COPILOT_ALLOW_ALL", effect: "skips permission questions",
		held: holds("", "disableBypassPermissionsMode refuses it", managedSettings, "permissions", "disableBypassPermissionsMode")},
	{harness: policy.CursorCLI, name: "CURSOR_CONFIG_DIR", effect: "moves the user's settings", moves: ".cursor"},
	{harness: policy.GeminiCLI, name: "GEMINI_CLI_SYSTEM_SETTINGS_PATH", effect: "replaces the managed settings: sandbox, hooks and locks are gone; only the policy folder stays"},
	{harness: policy.GeminiCLI, name: "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", effect: "replaces the managed defaults"},
	{harness: policy.GeminiCLI, name: "GEMINI_SANDBOX", effect: "switches the whole-process sandbox off; tool sandboxing stays", only: "false"},
	{harness: policy.GeminiCLI, name: "SANDBOX", effect: "makes the program believe that it is in a sandbox already"},
	{harness: policy.GeminiCLI, name: "GEMINI_CLI_HOME", effect: "moves the user's settings; the managed ones stay in force"},
	{harness: policy.GeminiCLI, name: "GEMINI_CLI_TRUST_WORKSPACE", effect: "trusts every folder"},
	{harness: policy.GeminiCLI, name: "SEATBELT_PROFILE", effect: "chooses another sandbox profile on macOS"},
	{harness: policy.GeminiCLI, name: "SANDBOX_FLAGS", effect: "adds flags to the sandbox container"},
	{harness: policy.GeminiCLI, name: "SANDBOX_MOUNTS", effect: "mounts more paths into the sandbox"},
	{harness: policy.GeminiCLI, name: "GEMINI_SANDBOX_IMAGE", effect: "chooses another sandbox image"},
	{harness: policy.GeminiCLI, name: "GEMINI_MODEL", effect: "chooses another model"},
	{harness: policy.GeminiCLI, name: "GOOGLE_GEMINI_BASE_URL", effect: "sends prompts to another address"},
	{harness: policy.GeminiCLI, name: "GEMINI_TELEMETRY_*", effect: "wins over the managed telemetry"},
	{harness: policy.OpenCode, name: "OPENCODE_PERMISSION", effect: "is merged last and beats the managed permissions"},
	{harness: policy.OpenCode, name: "OPENCODE_TEST_MANAGED_CONFIG_DIR", effect: "removes the whole managed layer"},
	{harness: policy.OpenCode, name: "OPENCODE_CONFIG", effect: "adds a settings file"},
	{harness: policy.OpenCode, name: "OPENCODE_CONFIG_CONTENT", effect: "adds settings"},
	{harness: policy.OpenCode, name: "OPENCODE_CONFIG_DIR", effect: "adds a settings folder, agents included"},
}

// credentials are variables that commands of an agent inherit unless they are masked.
var credentials = []string{
	"ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "COPILOT_GITHUB_TOKEN", "GEMINI_API_KEY", "GH_TOKEN", "GITHUB_TOKEN",
	"GITLAB_TOKEN", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "NPM_TOKEN", "OPENAI_API_KEY",
}

// startup are files that set variables for a user's programs; system are those for every user.
var (
	startup = []string{".profile", ".bash_profile", ".bash_login", ".bashrc", ".zshenv", ".zprofile", ".zshrc", ".pam_environment", ".env", ".gemini/.env", ".config/fish/config.fish",
		".config/environment.d/*.conf"}
	system = []string{"etc/environment", "etc/profile", "etc/bash.bashrc", "etc/zshenv", "etc/zsh/zshenv", "etc/profile.d/*.sh", "etc/environment.d/*.conf"}
)

// assigned finds the variables that a startup file sets: the first word of a line, behind export, set -x and the like. It reads text, it runs nothing: a variable that is
// set by a script in another way is not found.
func assigned(data []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		for len(fields) > 0 && (fields[0] == "export" || fields[0] == "declare" || fields[0] == "typeset" || fields[0] == "set" || fields[0] == "setenv" || strings.HasPrefix(fields[0], "-")) {
			shell := fields[0]
			fields = fields[1:]
			if len(fields) >= 2 && (shell == "setenv" || strings.HasPrefix(shell, "-") && strings.Contains(shell, "x")) && !strings.Contains(fields[0], "=") {
				out[fields[0]] = strings.Trim(fields[1], `"'`)
				fields = nil
			}
		}
		if len(fields) == 0 {
			continue
		}
		for _, f := range fields {
			name, v, ok := strings.Cut(f, "=")
			if !ok || !isName(name) {
				break
			}
			out[name] = strings.Trim(strings.TrimSuffix(v, ";"), `"'`)
		}
	}
	return out
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// fits reports whether a variable of that name and value is the finding.
func (v variable) fits(name, value string) bool {
	if prefix, ok := strings.CutSuffix(v.name, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return name == v.name && (v.only == "" || strings.EqualFold(v.only, value) || v.only == "false" && value == "0")
}
