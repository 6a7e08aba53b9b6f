package adopt

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"halos.dev/halo/compiler/harness/draft"
	"halos.dev/halo/compiler/policy"
)

// kinds are the files that the fuzz targets feed in.
var kinds = [...]struct{ harness, name string }{
	{policy.ClaudeCode, "managed-settings.json"}, {policy.ClaudeCode, "managed-mcp.json"}, {policy.ClaudeCode, "CLAUDE.md"},
	{policy.Codex, "requirements.toml"}, {policy.Codex, "config.toml"},
	{policy.CopilotCLI, "managed-settings.json"},
	{policy.GeminiCLI, "settings.json"}, {policy.GeminiCLI, "10.toml"},
	{policy.OpenCode, "opencode.jsonc"},
	{OpenShell, "policy.yaml"},
}

// secret is a text that must never be printed.
const secret = "ghp_0123456789abcdefghijABCDEFGHIJ"

// account checks what holds for every import: a profile that halo takes, one line for every leaf, and no secret in what is printed.
func account(t *testing.T, r *Result) {
	t.Helper()
	if _, err := Prove(t.Context(), r.Name, r.Profile, r.Extra); err != nil {
		t.Errorf("%v\n%s", err, r.Profile)
	}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "0123456789abcdefghij") || bytes.Contains(r.Profile, []byte("0123456789abcdefghij")) {
		t.Errorf("a secret is printed:\n%s\n%s", out.String(), r.Profile)
	}
	for _, l := range r.Lines {
		switch {
		case l.Outcome == draft.Mapped && l.Field == "", l.Outcome != draft.Mapped && l.Reason == "", l.Outcome == draft.Dropped && l.Code == "", l.Warning != "" && l.Code == "":
			t.Errorf("line is not whole: %+v", l)
		}
	}
}

// FuzzImport feeds any bytes to every reader: no panic, and what comes out is a profile that halo takes.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for i, k := range kinds {
			if filepath.Base(name) == k.name || filepath.Ext(name) == filepath.Ext(k.name) {
				f.Add(uint8(i), uint8(i), data)
			}
		}
	}
	f.Add(uint8(0), uint8(0), []byte(`{"env":{"TOKEN":"`+secret+`"},"permissions":{"deny":["Bash(echo `+secret+`)"]}}`))
	f.Fuzz(func(t *testing.T, kind, goos uint8, data []byte) {
		k := kinds[int(kind)%len(kinds)]
		r, err := Import(t.Context(), Input{Files: []draft.File{{Name: k.name, Data: data}}, Harness: k.harness, OS: policy.OSes[int(goos)%3]})
		if err != nil {
			if strings.Contains(err.Error(), "halo refuses") {
				t.Errorf("%v", err)
			}
			return
		}
		account(t, r)
	})
}
