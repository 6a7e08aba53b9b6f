package mdm

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/artifacts"
)

// TestPowerShell parses the scripts of the intune export, for plain and for odd names, with the PowerShell grammar of tree-sitter: PowerShell itself is not to be had
// where CI runs, so the scripts are parsed and not run. The two npm packages are looked for where CI installs them.
func TestPowerShell(t *testing.T) {
	tool(t, "node")
	home, _ := os.UserHomeDir()
	grammar := filepath.Join(cmp.Or(os.Getenv("HALO_CI_CACHE"), filepath.Join(home, ".cache", "halo-ci")), "npm", "powershell")
	if _, err := os.Stat(filepath.Join(grammar, "node_modules", "tree-sitter-powershell")); err != nil {
		t.Skipf("SKIP: npm install --prefix %s web-tree-sitter tree-sitter-powershell was not run, so no PowerShell script was parsed", grammar)
	}
	odd := make([]dest, 0, len(oddNames))
	for _, n := range oddNames {
		odd = append(odd, dest{"gemini-cli", `C:\ProgramData\gemini-cli\` + n + `\f ` + n, n})
	}
	slices.SortFunc(odd, func(a, b dest) int { return strings.Compare(a.path, b.path) })
	exports := []*Export{
		made(t, "intune", "windows", sample("windows"), nil),
		made(t, "intune", "windows", odd, func(m *artifacts.Manifest) { m.Org, m.Version = "a\n#>'$(x)é", "1\n'" }),
	}
	for _, e := range exports {
		dir := onDisk(t, e)
		files := 0
		for _, it := range e.Items {
			if it.Channel == Script {
				files++
			}
		}
		var names []string
		for name := range e.Files {
			if strings.HasSuffix(name, ".ps1") {
				names = append(names, filepath.Join(dir, name))
			}
		}
		slices.Sort(names)
		if len(names) != 5 {
			t.Fatalf("%d scripts", len(names))
		}
		// The baseline compiler of WebAssembly, since optimizing the grammar takes far longer than using it.
		out := output(t, "", "node", append([]string{"--liftoff-only", "testdata/parse.mjs", grammar}, names...)...)
		if want := fmt.Sprintf("%d ", files); strings.Count("\n"+out, "\n"+want) != len(names) {
			t.Errorf("not every script has %d files:\n%s", files, out)
		}
	}
}

// TestPowerShellQuote holds that a text comes out of the expression that psQuote makes of it, and that the expression has nothing that ends a PowerShell string early.
func TestPowerShellQuote(t *testing.T) {
	for _, s := range append(slices.Clone(oddNames), "", "'", "''", "‘", "a’b", "\n") {
		q := psQuote(s)
		got := ""
		if in, ok := strings.CutPrefix(q, "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('"); ok {
			data, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(in, "'))"))
			if err != nil {
				t.Errorf("%q: %v", s, err)
			}
			got = string(data)
		} else {
			in := q[1 : len(q)-1]
			got = strings.ReplaceAll(in, "''", "'")
			if strings.Contains(strings.ReplaceAll(in, "''", ""), "'") {
				t.Errorf("%q: %s ends early", s, q)
			}
		}
		if got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
