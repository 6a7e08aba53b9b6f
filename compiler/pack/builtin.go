package pack

import (
	"embed"
	"fmt"
	"slices"
)

// builtinFiles are DefenseClaw's packs: github.com/cisco-ai-defense/defenseclaw, policies/sandbox, as they were with the blocklist of feedEntries. They carry no version.
//
//go:embed builtin/open.yaml builtin/balanced.yaml builtin/strict.yaml
var builtinFiles embed.FS

// BuiltinNames returns the names of the built-in packs, loosest first.
func BuiltinNames() []string { return slices.Clone(profiles) }

// IsBuiltin reports whether name always means a pack that is built into DefenseClaw.
func IsBuiltin(name string) bool { return slices.Contains(profiles, name) }

// Builtin returns a built-in pack. Its digest is that of the data in this program: DefenseClaw's own changes between releases.
func Builtin(name string) (*Pack, error) {
	file, err := builtin(name)
	if err != nil {
		return nil, err
	}
	return file.Pack, nil
}

func builtin(name string) (*File, error) {
	data, err := BuiltinBytes(name)
	if err != nil {
		return nil, err
	}
	where := "builtin:" + name
	p, problems := read(where, data, builtinName)
	if err := firstError(where, problems); err != nil {
		return nil, err
	}
	p.BuiltIn = true
	return &File{Pack: p, Data: data}, nil
}

// BuiltinBytes returns the text of a built-in pack.
func BuiltinBytes(name string) ([]byte, error) {
	if !IsBuiltin(name) {
		return nil, fmt.Errorf("%q is not a built-in pack", name)
	}
	return builtinFiles.ReadFile("builtin/" + name + ".yaml")
}

// reviewFloor is what DefenseClaw adds to the review list of every pack: the files that steer an agent or decide what gets installed
// (internal/openshell/packs/resolve.go, read 2026-11; the names grow between releases).
var reviewFloor = []string{
	"**/.claude/**", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json", "**/.codex/**", "AGENTS.md", "AGENTS.override.md", "**/.cursor/**", ".cursorrules",
	"**/.gemini/**", "GEMINI.md", "**/.kiro/**", "**/.amazonq/**", "**/.continue/**", "**/.roo/**", ".roomodes", ".clinerules", "**/.clinerules/**",
	"**/.opencode/**", "opencode.json", "opencode.jsonc", ".aider.conf.yml", "**/.devin/**", "**/.openhands/**", "**/.omnigent/**",
	".github/copilot-instructions.md", ".github/instructions/**", ".github/prompts/**", ".github/chatmodes/**", ".github/hooks/**", ".github/copilot/**",
	"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock", "poetry.lock", "uv.lock", "Pipfile.lock",
	"pdm.lock", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock", "pubspec.lock", "Podfile.lock", "packages.lock.json", "gradle.lockfile", "pack.yaml",
}
