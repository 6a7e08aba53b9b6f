package adopt

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
)

// folders are the names of folders that belong to one program, in lower case.
var folders = map[string]string{
	"claude-code": policy.ClaudeCode, "claudecode": policy.ClaudeCode, ".claude": policy.ClaudeCode, "managed-settings.d": policy.ClaudeCode,
	"codex": policy.Codex, ".codex": policy.Codex,
	"github-copilot": policy.CopilotCLI, "githubcopilot": policy.CopilotCLI, ".copilot": policy.CopilotCLI, "policy.d": policy.CopilotCLI, "copilot-cli": policy.CopilotCLI,
	"gemini-cli": policy.GeminiCLI, "geminicli": policy.GeminiCLI, ".gemini": policy.GeminiCLI,
	"opencode": policy.OpenCode, ".opencode": policy.OpenCode,
	"openshell": OpenShell,
}

// names are the names of files that belong to one program.
var names = map[string]string{
	"managed-mcp.json": policy.ClaudeCode, "claude.md": policy.ClaudeCode,
	"requirements.toml": policy.Codex, "managed_config.toml": policy.Codex,
	"system-defaults.json": policy.GeminiCLI,
	"opencode.json":        policy.OpenCode, "opencode.jsonc": policy.OpenCode, "halo-instructions.md": policy.OpenCode,
}

// keys are keys at the top of a file, or one below it, that one program reads.
var keys = []struct{ harness, path string }{
	{policy.CopilotCLI, "sandbox/userPolicy"}, {policy.CopilotCLI, "sandbox/allowBypass"}, {policy.CopilotCLI, "permissions/limitTo"}, {policy.CopilotCLI, "telemetry/endpoint"},
	{policy.CopilotCLI, "forceLoginOrgs"}, {policy.CopilotCLI, "remoteControl"},
	{policy.ClaudeCode, "sandbox/network"}, {policy.ClaudeCode, "sandbox/filesystem"}, {policy.ClaudeCode, "sandbox/allowUnsandboxedCommands"}, {policy.ClaudeCode, "env"},
	{policy.ClaudeCode, "availableModels"}, {policy.ClaudeCode, "allowManagedPermissionRulesOnly"}, {policy.ClaudeCode, "requiredMinimumVersion"}, {policy.ClaudeCode, "permissions/additionalDirectories"},
	{policy.Codex, "allowed_sandbox_modes"}, {policy.Codex, "allowed_approval_policies"}, {policy.Codex, "experimental_network"}, {policy.Codex, "allowed_permission_profiles"}, {policy.Codex, "sandbox_mode"},
	{policy.GeminiCLI, "security/toolSandboxing"}, {policy.GeminiCLI, "security/disableYoloMode"}, {policy.GeminiCLI, "hooksConfig"}, {policy.GeminiCLI, "general/defaultApprovalMode"}, {policy.GeminiCLI, "rule"},
	{policy.OpenCode, "permission"}, {policy.OpenCode, "enabled_providers"}, {policy.OpenCode, "autoupdate"},
}

// whose says whose files they are. said is what a flag says, or "".
func whose(files []draft.File, said string) (string, error) {
	if said != "" {
		if said != OpenShell && !slices.Contains(policy.Harnesses, said) {
			return "", fmt.Errorf("--harness %q is not one of %s, %s", said, strings.Join(policy.Harnesses, ", "), OpenShell)
		}
		return said, nil
	}
	found, by := "", ""
	for _, f := range files {
		id := owner(f)
		if id == "" {
			return "", fmt.Errorf("%s: neither its name nor its contents say whose file it is; say it with --harness", f.Name)
		}
		if found != "" && id != found {
			return "", fmt.Errorf("%s is a file of %s and %s one of %s; import each by itself", by, found, f.Name, id)
		}
		found, by = id, f.Name
	}
	return found, nil
}

func owner(f draft.File) string {
	segments := strings.FieldsFunc(strings.ToLower(f.Name), func(r rune) bool { return r == '/' || r == '\\' })
	if len(segments) == 0 {
		return ""
	}
	base := segments[len(segments)-1]
	if id := names[base]; id != "" {
		return id
	}
	for _, s := range slices.Backward(segments[:len(segments)-1]) {
		if id := folders[s]; id != "" {
			return id
		}
	}
	return content(f, base)
}

// content looks at the keys of a file.
func content(f draft.File, base string) string {
	var root *draft.Node
	var err error
	switch {
	case strings.HasSuffix(base, ".toml"):
		root, err = draft.TOML(f.Name, f.Data)
	case strings.HasSuffix(base, ".json"), strings.HasSuffix(base, ".jsonc"):
		root, err = draft.JSON(f.Name, f.Data, draft.Dialect{BOM: true, Comments: true, Commas: true})
	case strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yml"):
		for line := range strings.Lines(string(f.Data)) {
			if strings.HasPrefix(line, "network_policies:") || strings.HasPrefix(line, "filesystem_policy:") {
				return OpenShell
			}
		}
		return ""
	}
	if err != nil || root == nil {
		return ""
	}
	found := ""
	for _, k := range keys {
		if root.At(strings.Split(k.path, "/")...) == nil {
			continue
		}
		if found != "" && found != k.harness {
			return ""
		}
		found = k.harness
	}
	return found
}

// system says for which operating system the files are.
func system(files []draft.File) string {
	for _, f := range files {
		name := strings.ToLower(strings.ReplaceAll(f.Name, `\`, "/"))
		switch {
		case strings.Contains(name, "programdata/"), strings.Contains(name, "program files/"), len(name) > 1 && name[1] == ':':
			return "windows"
		case strings.Contains(name, "library/application support/"), strings.Contains(name, "library/managed preferences/"):
			return "darwin"
		}
	}
	return "linux"
}
