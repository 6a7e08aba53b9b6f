package lint

import (
	"bytes"
	"io/fs"
	"path"
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
			data, err := fs.ReadFile(p.FS, f.name)
			if err != nil || len(data) > 1<<20 {
				continue
			}
			for _, word := range f.words {
				if bytes.Contains(data, []byte(word)) {
					p.ReportFile(f.name, "the file has %s, which loosens what %s holds", strconv.Quote(word), f.harness)
				}
			}
		}
	},
}

// projectSettings are the files that harnesses read from a repository, and words in them that loosen. From each vendor's settings reference, read 2026-11-30.
var projectSettings = []struct {
	name, harness string
	words         []string
}{
	{".claude/settings.json", "claude-code", []string{"bypassPermissions", "excludedCommands", "dangerouslyDisableSandbox", "enableAllProjectMcpServers"}},
	{".claude/settings.local.json", "claude-code", []string{"bypassPermissions", "excludedCommands", "dangerouslyDisableSandbox", "enableAllProjectMcpServers"}},
	{".codex/config.toml", "codex", []string{"danger-full-access", "approval_policy = \"never\"", "network_access = true"}},
	{".gemini/settings.json", "gemini-cli", []string{"\"sandbox\": false", "\"trust\": true"}},
	{".gemini/.env", "gemini-cli", []string{"GEMINI_SANDBOX=false"}},
	{".env", "gemini-cli", []string{"GEMINI_SANDBOX=false"}},
	{".cursor/sandbox.json", "cursor-cli", []string{"insecure_none"}},
	{"opencode.json", "opencode", []string{"\"*\": \"allow\"", "\"bash\": \"allow\""}},
}

var lineEndings = Rule{
	Code: &diag.Code{ID: "HALO2308", Severity: diag.Warning, Title: "pack bytes at the mercy of a checkout", Since: "0.1.0",
		Text:  "A sandbox pack is known by the digest of its exact bytes. Without a line for packs in .gitattributes, a checkout on Windows rewrites line endings, and the same commit has another digest there.",
		After: "packs/** -text"},
	Find: func(p *Pass) {
		if len(p.Repo.Packs) == 0 {
			return
		}
		attributes, _ := fs.ReadFile(p.FS, ".gitattributes")
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
