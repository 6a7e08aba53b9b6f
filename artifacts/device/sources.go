package device

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"halos.dev/halo/compiler/policy"
)

// source is a place of an administrator that a harness reads beside the managed files, and that outranks them or is merged with them. A pattern with "*" stands for
// every file that fits. Sources: the programs and vendor documentation that the harness tables name.
type source struct {
	harness string
	os      []string
	pattern string
	effect  string
}

var (
	darwin = []string{"darwin"}
	unix   = []string{"darwin", "linux"}
)

const oneChannel = "the harness reads this preference of device management and not the file"

var sources = []source{
	{policy.ClaudeCode, []string{"linux"}, "/etc/claude-code/managed-settings.d/*.json", "a drop-in is merged last and wins, also when it is looser"},
	{policy.ClaudeCode, []string{"linux"}, "/etc/claude-code/managed-mcp.json", "replaces the MCP servers of the policy"},
	{policy.ClaudeCode, darwin, "/Library/Application Support/ClaudeCode/managed-settings.d/*.json", "a drop-in is merged last and wins, also when it is looser"},
	{policy.ClaudeCode, darwin, "/Library/Application Support/ClaudeCode/managed-mcp.json", "replaces the MCP servers of the policy"},
	{policy.ClaudeCode, []string{"windows"}, `C:\Program Files\ClaudeCode\managed-settings.d\*.json`, "a drop-in is merged last and wins, also when it is looser"},
	{policy.ClaudeCode, []string{"windows"}, `C:\Program Files\ClaudeCode\managed-mcp.json`, "replaces the MCP servers of the policy"},
	{policy.ClaudeCode, darwin, "/Library/Managed Preferences/com.anthropic.claudecode.plist", oneChannel},
	{policy.ClaudeCode, darwin, "/Library/Managed Preferences/*/com.anthropic.claudecode.plist", oneChannel},
	{policy.Codex, unix, "/etc/codex/managed_config.toml", "its approval_policy, approvals_reviewer and sandbox_mode win over requirements.toml"},
	{policy.Codex, darwin, "/Library/Managed Preferences/com.openai.codex.plist", "its keys win over requirements.toml"},
	{policy.Codex, darwin, "/Library/Managed Preferences/*/com.openai.codex.plist", "its keys win over requirements.toml"},
	{policy.CopilotCLI, darwin, "/Library/Managed Preferences/com.github.copilot.plist", oneChannel},
	{policy.CopilotCLI, darwin, "/Library/Managed Preferences/*/com.github.copilot.plist", oneChannel},
	{policy.GeminiCLI, []string{"linux"}, "/etc/gemini-cli/policies/*.toml", "a policy of the same rank as the managed ones"},
	{policy.GeminiCLI, darwin, "/Library/Application Support/GeminiCli/policies/*.toml", "a policy of the same rank as the managed ones"},
	{policy.GeminiCLI, []string{"windows"}, `C:\ProgramData\gemini-cli\policies\*.toml`, "a policy of the same rank as the managed ones"},
	{policy.OpenCode, []string{"linux"}, "/etc/opencode/opencode.jsonc", "is read after opencode.json and wins"},
	{policy.OpenCode, darwin, "/Library/Application Support/opencode/opencode.jsonc", "is read after opencode.json and wins"},
	{policy.OpenCode, []string{"windows"}, `C:\ProgramData\opencode\opencode.jsonc`, "is read after opencode.json and wins"},
	{policy.OpenCode, darwin, "/Library/Managed Preferences/ai.opencode.managed.plist", "outranks the managed file"},
	{policy.OpenCode, darwin, "/Library/Managed Preferences/*/ai.opencode.managed.plist", "outranks the managed file"},
}

// sources looks for stronger sources beside the managed files. What a vendor's server sends to a program cannot be seen from the device.
func (x *doctor) sources() {
	for _, id := range x.harnesses() {
		for _, s := range sources {
			if s.harness != id || !slices.Contains(s.os, x.OS) {
				continue
			}
			found, err := x.t.glob(s.pattern)
			if err != nil {
				x.shadowed[id] = true
				x.add(Warn, "sources", id, CodeUnchecked, s.pattern, s.pattern+" could not be checked: "+userError(err).Error(), "run halo doctor as root")
			}
			for _, dest := range found {
				if slices.ContainsFunc(x.expected.Files, func(f Installed) bool { return f.Dest == dest }) {
					continue
				}
				x.shadowed[id] = true
				x.add(Fail, "sources", id, CodeShadow, dest, printable(dest)+" was not installed with the release: "+s.effect, "remove it; deliver through one channel")
			}
		}
		if x.t.device.Live() {
			for _, key := range registryPolicies(id) {
				x.shadowed[id] = true
				x.add(Fail, "sources", id, CodeShadow, key, key+" has values, which outrank the file", "remove the key; deliver through one channel")
			}
		}
		if !x.shadowed[id] {
			x.add(OK, "sources", id, nil, "", "selected: no other source on the device outranks them", "")
		}
	}
}

// glob lists what is at a path of the device, in which one or two elements may have "*". Links count: a harness follows them.
func (t *tree) glob(pattern string) ([]string, error) {
	sep := t.device.separator()
	parts := strings.Split(pattern, sep)
	i := slices.IndexFunc(parts, func(p string) bool { return strings.Contains(p, "*") })
	if i < 0 {
		i = len(parts) - 1
	}
	parent := strings.Join(parts[:i], sep)
	dir, err := t.dir(t.device.rel(parent), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		ok, _ := path.Match(parts[i], e.Name())
		// The programs skip names that begin with a dot.
		if !ok || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := parent + sep + e.Name()
		if i == len(parts)-1 {
			if !e.IsDir() {
				out = append(out, name)
			}
			continue
		}
		if e.IsDir() {
			below, err := t.glob(strings.Join(append([]string{name}, parts[i+1:]...), sep))
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
		}
	}
	slices.Sort(out)
	return out, nil
}
