package device

import (
	"encoding/json"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// packages are the names of the programs on npm.
var packages = []struct{ harness, name string }{
	{policy.ClaudeCode, "@anthropic-ai/claude-code"},
	{policy.Codex, "@openai/codex"},
	{policy.CopilotCLI, "@github/copilot"},
	{policy.GeminiCLI, "@google/gemini-cli"},
	{policy.OpenCode, "opencode-ai"},
}

// moduleDirs are where npm and its relatives keep global packages, below the root of a device and below a home.
var (
	moduleDirs     = []string{"usr/lib/node_modules", "usr/local/lib/node_modules", "opt/homebrew/lib/node_modules", "opt/node/lib/node_modules"}
	homeModuleDirs = []string{".npm-global/lib/node_modules", ".local/lib/node_modules", ".bun/install/global/node_modules", "AppData/Roaming/npm/node_modules", ".nvm/versions/node/*"}
)

// nativeDirs are folders whose entries are named by version, as the vendors' own installers make them (Claude Code 2.1.332; Cursor CLI, read).
var nativeDirs = []struct{ harness, dir string }{
	{policy.ClaudeCode, ".local/share/claude/versions"},
	{policy.CursorCLI, ".local/share/cursor-agent/versions"},
}

// versions finds the installed harnesses with their versions, the oldest of each: the weakest copy is the one that matters. It reads package descriptions and names of
// folders; it runs no program, because doctor runs as root and programs of users are not root's to run. Beside each version stands how a room can start it, nil
// when that is not known.
func (x *doctor) versions() (map[string]string, map[string]*program) {
	out, programs := map[string]string{}, map[string]*program{}
	found := func(id, version string, at *program) {
		v, ok := harness.ParseVersion(version)
		old, had := harness.ParseVersion(out[id])
		if out[id] == "" || ok && (!had || v.Less(old)) {
			out[id], programs[id] = version, at
		}
	}
	look := func(u *userDir, base string, dirs []string) {
		for _, dir := range dirs {
			modules := []string{dir}
			if strings.HasSuffix(dir, "/*") {
				modules, _ = u.match(dir)
				for i := range modules {
					modules[i] += "/lib/node_modules"
				}
			}
			for _, m := range modules {
				for _, p := range packages {
					if v, bin := packageOf(u, path.Join(m, p.name, "package.json")); v != "" {
						found(p.harness, v, npmProgram(path.Join(filepath.ToSlash(base), m), p.name, bin, base != x.t.device.Root))
					}
				}
			}
		}
	}
	look(&userDir{x.t, ""}, x.t.device.Root, moduleDirs)
	for _, h := range x.o.Homes {
		x.homeVersions(h, look, found)
	}
	return out, programs
}

func (x *doctor) homeVersions(h Home, look func(*userDir, string, []string), found func(id, version string, at *program)) {
	u, err := openUser(h.Dir, h.Name)
	if err != nil {
		return
	}
	defer u.close()
	look(u, h.Dir, homeModuleDirs)
	for _, n := range nativeDirs {
		dir, err := u.t.dir(n.dir, false)
		if err != nil {
			continue
		}
		entries, _ := fs.ReadDir(dir.FS(), ".")
		dir.Close()
		// An installer keeps older versions beside the newest, which is the one that runs.
		var newest harness.Version
		name := ""
		for _, e := range entries {
			if v, ok := harness.ParseVersion(e.Name()); ok && (name == "" || newest.Less(v)) {
				newest, name = v, e.Name()
			}
		}
		if name != "" && len(name) < 64 {
			found(n.harness, printable(name), nativeProgram(n.harness, path.Join(filepath.ToSlash(h.Dir), n.dir), name))
		}
	}
}

// packageOf reads the version of an npm package, "" when it is not there or is no version, and the file of its program, "" when it names none or several.
func packageOf(u *userDir, rel string) (version, bin string) {
	data, err := u.read(rel)
	if err != nil {
		return "", ""
	}
	var doc struct {
		Version string `json:"version"`
		Bin     any    `json:"bin"`
	}
	if json.Unmarshal(data, &doc) != nil {
		return "", ""
	}
	if _, ok := harness.ParseVersion(doc.Version); !ok || printable(doc.Version) != doc.Version {
		return "", ""
	}
	switch b := doc.Bin.(type) {
	case string:
		bin = b
	case map[string]any:
		for _, v := range b {
			if s, ok := v.(string); ok && len(b) == 1 {
				bin = s
			}
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(bin)) {
		bin = ""
	}
	return doc.Version, bin
}
