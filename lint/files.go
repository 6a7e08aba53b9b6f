package lint

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/diag"
)

var projectFiles = Rule{
	Code: &diag.Code{ID: "HALO2307", Severity: diag.Warning, Title: "project file that weakens the policy", Since: "0.1.0",
		Text: "The policy repo itself has settings of a harness that loosen what it holds. Whoever works on the policy with an agent works under them, and a repo that others copy spreads them. Remove the " +
			"setting, or the file."},
	Find: func(p *Pass) {
		for _, f := range projectSettings {
			data, err := readSmall(p.FS, f.name)
			if err != nil {
				continue
			}
			// Blanks and line ends are free in these formats; a key is found without them.
			dense := strings.Join(strings.Fields(string(data)), "")
			for _, setting := range f.settings {
				if strings.Contains(dense, strings.ReplaceAll(setting, " ", "")) {
					p.ReportFile(f.name, "the file has %s, which loosens what %s holds", setting, f.harness)
				}
			}
		}
		p.projectServers()
		agents, _ := fs.Glob(p.FS, ".opencode/agent*/*.md")
		for _, name := range agents {
			if data, err := readSmall(p.FS, name); err == nil && frontMatterHas(data, "permission:") {
				p.ReportFile(name, "the agent has permissions of its own, which go before every managed permission of opencode")
			}
		}
	},
}

// readSmall reads a regular file that is small enough to be settings.
func readSmall(fsys fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil, fs.ErrInvalid
	}
	return fs.ReadFile(fsys, name)
}

// frontMatterHas reports whether a line of the header between --- lines begins with a key.
func frontMatterHas(data []byte, key string) bool {
	head, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return false
	}
	head, _, _ = bytes.Cut(head, []byte("\n---"))
	return bytes.HasPrefix(head, []byte(key)) || bytes.Contains(head, []byte("\n"+key))
}

// projectServers reports MCP servers that files of the repo start and no policy knows.
func (p *Pass) projectServers() {
	known := map[string]bool{}
	managed := false
	for _, doc := range p.Repo.Layers() {
		managed = managed || doc.MCP.ManagedOnly.V
		for _, s := range doc.MCP.Servers {
			known[s.Name.V] = true
		}
	}
	if !managed {
		return
	}
	for _, file := range []string{".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"} {
		data, err := readSmall(p.FS, file)
		if err != nil {
			continue
		}
		var doc struct {
			MCPServers map[string]any `json:"mcpServers"`
			Servers    map[string]any `json:"servers"`
		}
		if json.Unmarshal(data, &doc) != nil {
			continue
		}
		names := slices.AppendSeq(slices.Collect(maps.Keys(doc.MCPServers)), maps.Keys(doc.Servers))
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !known[name] {
				p.ReportFile(file, "the file starts the MCP server %q, which no profile lists, beside mcp.managedOnly", name)
			}
		}
	}
}

// projectSettings are the files that harnesses read from a repository, and settings in them that loosen. From each vendor's settings reference, read 2026-11-30.
var projectSettings = []struct {
	name, harness string
	settings      []string
}{
	{".claude/settings.json", "claude-code", claudeSettings},
	{".claude/settings.local.json", "claude-code", claudeSettings},
	{".codex/config.toml", "codex", []string{`"danger-full-access"`, `":danger-full-access"`, `approval_policy = "never"`, `network_access = true`}},
	{".gemini/settings.json", "gemini-cli", []string{`"sandbox": false`, `"trust": true`}},
	{".gemini/.env", "gemini-cli", []string{"GEMINI_SANDBOX=false", "GEMINI_CLI_SYSTEM_SETTINGS_PATH="}},
	{".env", "gemini-cli", []string{"GEMINI_SANDBOX=false", "GEMINI_CLI_SYSTEM_SETTINGS_PATH="}},
	{".cursor/sandbox.json", "cursor-cli", []string{`"insecure_none"`, `"default": "allow"`, `"additionalReadwritePaths": ["`}},
	{"opencode.json", "opencode", openCodeSettings},
	{"opencode.jsonc", "opencode", openCodeSettings},
	{".opencode/opencode.json", "opencode", openCodeSettings},
}

var claudeSettings = []string{`"defaultMode": "bypassPermissions"`, `"excludedCommands": ["`, `"dangerouslyDisableSandbox": true`, `"enableAllProjectMcpServers": true`, `"allowUnsandboxedCommands": true`,
	`"allowRead": ["`, `"allowWrite": ["`, `"additionalDirectories": ["`}

var openCodeSettings = []string{`"*": "allow"`, `"bash": "allow"`}

var lineEndings = Rule{
	Code: &diag.Code{ID: "HALO2308", Severity: diag.Warning, Title: "pack bytes at the mercy of a checkout", Since: "0.1.0",
		Text:  "A sandbox pack is known by the digest of its exact bytes. Without a line for packs in .gitattributes, a checkout on Windows rewrites line endings, and the same commit has another digest there.",
		After: "packs/** -text"},
	Find: func(p *Pass) {
		if len(p.Repo.Packs) == 0 {
			return
		}
		attributes, _ := readSmall(p.FS, ".gitattributes")
		covered := false
		for line := range strings.Lines(string(attributes)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || !coversPacks(fields[0]) {
				continue
			}
			for _, a := range fields[1:] {
				covered = covered || a == "-text" || a == "binary" || a == "eol=lf"
			}
		}
		if !covered {
			p.ReportFile(".gitattributes", "no line keeps the bytes of packs as they are")
		}
		for _, pack := range p.Repo.Packs {
			if pack.CRLF {
				p.Report(diag.NewPos(pack.File, 1, 1), "", "the pack has Windows line endings, which are part of its digest")
			}
		}
	},
}

// coversPacks reports whether a .gitattributes pattern matches pack files.
func coversPacks(pattern string) bool {
	pattern = strings.TrimPrefix(pattern, "/")
	switch pattern {
	case "*", "**", "packs/**", "packs/*/*", "packs/*/pack.yaml", "*.yaml", "pack.yaml", "**/pack.yaml", "**/packs/**":
		return true
	}
	ok, err := path.Match(pattern, "packs/x/pack.yaml")
	return err == nil && ok
}

func indexed(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
