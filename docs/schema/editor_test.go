package schema_test

import (
	"cmp"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/artifacts/scaffold"
)

// TestEditor opens a new repo in yaml-language-server, the server behind most editors, and a file with mistakes. The server is looked for where CI installs it.
func TestEditor(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIP: node is not installed, so no editor has read the schemas")
	}
	home, _ := os.UserHomeDir()
	server := filepath.Join(cmp.Or(os.Getenv("HALO_CI_CACHE"), filepath.Join(home, ".cache", "halo-ci")), "npm", "yaml-language-server")
	if _, err := os.Stat(filepath.Join(server, "node_modules", "yaml-language-server")); err != nil {
		t.Skipf("SKIP: npm install --prefix %s yaml-language-server was not run, so no editor has read the schemas", server)
	}
	files, err := scaffold.Files("acme", "2.1.332", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	files["profiles/wrong.yaml"] = []byte(wrong)
	dir := t.TempDir()
	args := []string{filepath.Join("testdata", "validate.cjs"), server}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".yaml" {
			args = append(args, file)
		}
	}
	out, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var found []string
	shown := 0
	for line := range strings.Lines(string(out)) {
		switch line = strings.TrimSpace(line); {
		case !strings.Contains(line, " shows "):
			found = append(found, line)
		case strings.Contains(line, "The version of the"):
			shown++
		default:
			t.Errorf("a key is not described: %s", line)
		}
	}
	if want := strings.Count(strings.Join(args, " "), ".yaml"); shown != want {
		t.Errorf("%d files show what their first key is for, want %d", shown, want)
	}
	slices.Sort(found)
	if got, want := strings.Join(found, "\n"), strings.TrimSpace(findings); got != want {
		t.Errorf("the editor says\n%s\nwant\n%s", got, want)
	}
}

const wrong = `# yaml-language-server: $schema=../.halo/schema/repo.json
apiVersion: halos.dev/v1
kind: Profile
name: Wrong
egress:
  default: Deny
  allowedDomains: ["https://github.com"]
mcp:
  servers:
    - {name: both, url: https://docs.acme.example, command: [docs]}
    - {name: neither}
sandbox:
  pack: web
permision: {}
---
# yaml-language-server: $schema=../.halo/schema/repo.json
apiVersion: halos.dev/v1
kind: Ring
name: unfinished
order: first
membership: {percent: 12.5}
`

const findings = `
wrong.yaml:10: give one of url and command
wrong.yaml:11: Missing property "url".
wrong.yaml:13: name a Sandbox document with sandbox.policy, and the pack in that document
wrong.yaml:14: Property permision is not allowed.
wrong.yaml:20: Incorrect type. Expected "integer".
wrong.yaml:4: want a name: a-z, 0-9, dot, underscore and hyphen, at most 63 characters, not ending in a dot, and no Windows device name
wrong.yaml:6: Value is not accepted. Valid values: "allow", "deny".
wrong.yaml:7: want a host name in lower case without scheme, port or path, or "*." and a name of at least two labels
`
