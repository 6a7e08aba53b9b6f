package policy

import (
	"slices"

	"halos.dev/halo/compiler/host"
)

// BuiltinPreset is a list of hosts that ships with halo. Its content is part of the version of the program and is recorded in every release.
type BuiltinPreset struct {
	Name    string
	Hosts   []string
	Sources string
}

// Builtin are the presets that ship with halo, sorted by name; hosts in their documented order. Reviewed 2026-11-30.
var Builtin = []BuiltinPreset{
	{"model-providers", []string{"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "api.githubcopilot.com", "*.githubcopilot.com"},
		"the API host of each model vendor; GitHub's allowlist for Copilot"},
	{"package-registries", []string{"registry.npmjs.org", "pypi.org", "files.pythonhosted.org", "proxy.golang.org", "sum.golang.org", "index.crates.io", "static.crates.io",
		"repo.maven.apache.org", "rubygems.org"},
		"the default registries of npm, pip, go, cargo, Maven and RubyGems"},
	{"vcs", []string{"github.com", "api.github.com", "codeload.github.com", "*.githubusercontent.com", "gitlab.com", "bitbucket.org"},
		"the hosts that git and the forges' own tools clone and download from"},
}

// BuiltinPatterns returns the hosts of a built-in preset, or false.
func BuiltinPatterns(name string) ([]host.Pattern, bool) {
	i := slices.IndexFunc(Builtin, func(b BuiltinPreset) bool { return b.Name == name })
	if i < 0 {
		return nil, false
	}
	out := make([]host.Pattern, len(Builtin[i].Hosts))
	for j, h := range Builtin[i].Hosts {
		p, problem := host.ParsePattern(h)
		if problem != nil {
			// The data above is constant and tested.
			continue
		}
		out[j] = p
	}
	return out, true
}
