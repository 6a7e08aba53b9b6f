package mdm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

var update = flag.Bool("update", false, "write the golden files")

// dest is one file of a made-up target.
type dest struct{ harness, path, content string }

// sample has one file of every harness and channel for each system.
func sample(os string) []dest {
	const claude = `{"env": {"A": "<&\"é"}, "n": 3, "permissions": {"deny": ["Read(~/.ssh)"]}, "sandbox": {"enabled": true}}` + "\n"
	const copilot = `{"sandbox": {"enabled": true, "userPolicy": {"network": {"allowedHosts": ["a.example"]}}}, "telemetry": {"endpoint": "https://o.example", "resourceAttributes": {"a.b": "c"}}}` + "\n"
	const opencode = `{"$schema": "https://opencode.ai/config.json", "share": "disabled"}` + "\n"
	switch os {
	case "darwin":
		return []dest{
			{"claude-code", "/Library/Application Support/ClaudeCode/managed-mcp.json", "{}\n"},
			{"claude-code", "/Library/Application Support/ClaudeCode/managed-settings.json", claude},
			{"codex", "/etc/codex/config.toml", "x = 1\n"},
			{"codex", "/etc/codex/requirements.toml", "y = 1\n"},
			{"copilot-cli", "/Library/Application Support/GitHubCopilot/managed-settings.json", copilot},
			{"gemini-cli", "/Library/Application Support/GeminiCli/policies/10-halo.toml", "z = 1\n"},
			{"opencode", "/Library/Application Support/opencode/opencode.json", opencode},
		}
	case "windows":
		return []dest{
			{"claude-code", `C:\Program Files\ClaudeCode\managed-mcp.json`, "{}\n"},
			{"claude-code", `C:\Program Files\ClaudeCode\managed-settings.json`, claude},
			{"codex", `C:\ProgramData\OpenAI\Codex\requirements.toml`, "y = 1\n"},
			{"copilot-cli", `C:\Program Files\GitHubCopilot\managed-settings.json`, copilot},
		}
	}
	return []dest{
		{"claude-code", "/etc/claude-code/managed-settings.json", claude},
		{"codex", "/etc/codex/requirements.toml", "y = 1\n"},
		{"gemini-cli", "/etc/gemini-cli/policies/10-halo.toml", strings.Repeat("z = 1\n", 60)},
	}
}

const coverage = `{"schemaVersion":1,"rings":[{"ring":"ga","harnesses":[{"harness":"claude-code","version":"2.1.332"},{"harness":"copilot-cli","version":"1.0.102"}]}]}`

// verified makes, signs, writes and verifies a release with one target for one system. change may alter the manifest before it is sealed.
func verified(t testing.TB, system string, files []dest, change func(*artifacts.Manifest)) *artifacts.Verified {
	t.Helper()
	return sealed(t, system, files, coverage, change)
}

func sealed(t testing.TB, system string, files []dest, coverage string, change func(*artifacts.Manifest)) *artifacts.Verified {
	t.Helper()
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	p := &artifacts.Plan{Manifest: artifacts.Manifest{Org: "acme", Version: "1.2.0", Sequence: 7, Issued: at, AsOf: at, Tool: artifacts.Tool{Name: "halo", Version: "test"}, Source: artifacts.Source{Digest: "sha256:" + strings.Repeat("0", 64)},
		Targets: []artifacts.Target{{ID: "ga", Ring: "ga", Units: []string{}, Profile: "base", OS: system}}}}
	target := &p.Manifest.Targets[0]
	for _, f := range files {
		target.Files = append(target.Files, artifacts.TargetFile{Harness: f.harness, Dest: f.path, Owner: owners[system], Mode: "0644"})
	}
	if change != nil {
		change(&p.Manifest)
	}
	for i, f := range files {
		tf := &target.Files[i]
		if tf.Path == "" {
			tf.Path = "targets/" + target.ID + "/" + system + "/" + f.harness + "/" + artifacts.RootPath(f.path)
		}
		p.Add(tf.Path, []byte(f.content))
	}
	p.Add("coverage.json", []byte(coverage))
	r, err := p.Seal()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "r")
	if err := r.Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	v, err := artifacts.Verify(context.Background(), artifacts.DirFS(dir), artifacts.VerifyOptions{Trust: sign.TrustKeys(s.Key), Now: at})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func formatOf(t testing.TB, name string) Format {
	t.Helper()
	for _, f := range Formats() {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return Format{}
}

// made exports a made-up target.
func made(t testing.TB, format, system string, files []dest, change func(*artifacts.Manifest)) *Export {
	t.Helper()
	v := verified(t, system, files, change)
	e, err := Make(v, formatOf(t, format), v.Manifest.Targets[0])
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onDisk writes an export below a new directory.
func onDisk(t testing.TB, e *Export) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range e.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tool skips, loudly, without a program.
func tool(t testing.TB, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("SKIP: %s is not installed, so its half of this test did not run", n)
		}
	}
}

// output runs a program.
func output(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	out, err := run(dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestGolden holds every format to its golden files.
func TestGolden(t *testing.T) {
	for _, f := range Formats() {
		for _, system := range f.OSes {
			t.Run(f.Name+"/"+system, func(t *testing.T) {
				e := made(t, f.Name, system, sample(system), nil)
				dir := filepath.Join("testdata", "golden", f.Name, system)
				got := map[string][]byte{}
				for name, data := range e.Files {
					if bytes.IndexByte(data, 0) >= 0 {
						data = fmt.Appendf(nil, "%s\n", hexSum(data)) // a package, which the package managers read back elsewhere
						name += ".sha256"
					}
					got[name] = data
				}
				if *update {
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
					for name, data := range got {
						path := filepath.Join(dir, filepath.FromSlash(name))
						if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
							t.Fatal(err)
						}
					}
				}
				want := map[string][]byte{}
				if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return err
					}
					name, _ := filepath.Rel(dir, path)
					want[filepath.ToSlash(name)], err = os.ReadFile(path)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				for name := range want {
					if got[name] == nil {
						t.Errorf("%s is not exported any more", name)
					}
				}
				for name, data := range got {
					if !bytes.Equal(data, want[name]) {
						t.Errorf("%s differs from the golden file; run go test -update and look at the difference:\n%s", name, data)
					}
				}
			})
		}
	}
}

// TestSameBytes exports twice from two copies of a release that are signed by different keys.
func TestSameBytes(t *testing.T) {
	for _, f := range Formats() {
		a, b := made(t, f.Name, f.OSes[0], sample(f.OSes[0]), nil), made(t, f.Name, f.OSes[0], sample(f.OSes[0]), nil)
		if !bytes.Equal(Sums(a.Files), Sums(b.Files)) {
			t.Errorf("%s: two runs differ", f.Name)
		}
	}
}

// TestOneChannel holds that every file of a target has exactly one channel and one carrier that exists, and that no document is both in a profile and in a script.
func TestOneChannel(t *testing.T) {
	for _, f := range Formats() {
		for _, system := range f.OSes {
			files := sample(system)
			e := made(t, f.Name, system, files, nil)
			if len(e.Items) != len(files) {
				t.Fatalf("%s/%s: %d items for %d files", f.Name, system, len(e.Items), len(files))
			}
			for _, it := range e.Items {
				if e.Files[it.Source] == nil {
					t.Errorf("%s/%s: %s is carried by %q, which is not exported", f.Name, system, it.Dest, it.Source)
				}
				if it.Channel != Profile && it.Channel != Registry {
					continue
				}
				encoded := base64.StdEncoding.EncodeToString(it.data)
				for name, data := range e.Files {
					if script := strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".ps1"); script && strings.Contains(strings.ReplaceAll(string(data), "\n", ""), encoded) {
						t.Errorf("%s/%s: %s goes by %s and %s writes it as well", f.Name, system, it.Dest, it.Channel, name)
					}
				}
			}
			var doc document
			if err := json.Unmarshal(e.Files[installName], &doc); err != nil {
				t.Fatal(err)
			}
			if len(doc.Files) != len(files) {
				t.Errorf("%s/%s: install.json has %d files, not %d", f.Name, system, len(doc.Files), len(files))
			}
			for _, x := range doc.Files {
				if x.Detection.Kind == "" || x.Removal.Kind == "" || x.SHA256 == "" {
					t.Errorf("%s/%s: install.json says not enough about %s", f.Name, system, x.Path)
				}
			}
		}
	}
}

// TestKeptAsFile holds that a document stays a file, with a warning, wherever the other form would lose something.
func TestKeptAsFile(t *testing.T) {
	const claude, copilot, opencode = "/Library/Application Support/ClaudeCode/managed-settings.json", "/Library/Application Support/GitHubCopilot/managed-settings.json", "/Library/Application Support/opencode/opencode.json"
	old := func(id, v string) string {
		return strings.Replace(coverage, `"harness":"`+id+`","version":"`, `"harness":"`+id+`","version":"`+v+`","was":"`, 1)
	}
	for _, tt := range []struct {
		name, harness, path, content, coverage, want string
	}{
		{"null", "claude-code", claude, `{"a": null}`, coverage, "/a is null"},
		{"control character", "claude-code", claude, `{"a": ["\u0001"]}`, coverage, "/a/0 has a control character"},
		{"control character in a key", "claude-code", claude, `{"a": {"\u0001": 1}}`, coverage, "has a control character"},
		{"number of more than 64 bits", "claude-code", claude, `{"a": 9223372036854775808}`, coverage, "more than 64 bits"},
		{"key twice", "claude-code", claude, `{"a": 1, "a": 2}`, coverage, "/a is there twice"},
		{"not an object", "claude-code", claude, `[]`, coverage, "not a JSON object"},
		{"version without support", "claude-code", claude, `{}`, old("claude-code", "2.1.50"), "before 2.1.51"},
		{"too large", "claude-code", claude, `{"a": "` + strings.Repeat("x", 2<<20) + `"}`, coverage, "larger than 2 MiB"},
		{"unknown version", "copilot-cli", copilot, `{}`, `{}`, "before 1.0.77"},
		{"version without sandbox", "copilot-cli", copilot, `{}`, old("copilot-cli", "1.0.76"), "before 1.0.77"},
		{"key that is not taken", "copilot-cli", copilot, `{"permissions": {"model": "x"}}`, coverage, "permissions.model"},
		{"key with a dot", "copilot-cli", copilot, `{"a.b": 1}`, coverage, "dot-joined"},
		{"order of rules", "opencode", opencode, `{"permission": {"bash": {"*": "ask", "ls": "allow"}}}`, coverage, "order"},
		{"rules of agents", "opencode", opencode, `{"agent": {"build": {}}}`, coverage, "order"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := sealed(t, "darwin", []dest{{tt.harness, tt.path, tt.content}}, tt.coverage, nil)
			e, err := Make(v, formatOf(t, "jamf"), v.Manifest.Targets[0])
			if err != nil {
				t.Fatal(err)
			}
			if e.Items[0].Channel != Script {
				t.Fatalf("goes by %s", e.Items[0].Channel)
			}
			if !slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.Code == CodeKeptAsFile && strings.Contains(f.Message, tt.want) }) {
				t.Errorf("no warning with %q in %v", tt.want, e.Findings)
			}
			for name := range e.Files {
				if strings.HasSuffix(name, ".mobileconfig") || strings.HasSuffix(name, ".plist") {
					t.Errorf("%s is exported beside the file", name)
				}
			}
		})
	}
}

// TestContradiction holds that nothing is exported from a manifest that no script could carry out.
func TestContradiction(t *testing.T) {
	const path = "targets/ga/linux/codex/root/etc/codex/requirements.toml"
	file := dest{"codex", "/etc/codex/requirements.toml", "x = 1\n"}
	for _, tt := range []struct {
		name   string
		files  []dest
		change func(*artifacts.Target)
	}{
		{"other owner", []dest{file}, func(x *artifacts.Target) { x.Files[0].Owner = "nobody:nogroup" }},
		{"other id", []dest{file}, func(x *artifacts.Target) { x.Ring, x.Files[0].Path = "beta", path }},
		{"line end in a name", []dest{file}, func(x *artifacts.Target) { x.ID, x.Ring, x.Files[0].Path = "ga\nrm", "ga\nrm", path }},
		{"two files for a place", []dest{file, {"other", "/etc/CODEX/requirements.toml", "x = 2\n"}}, func(*artifacts.Target) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verified(t, "linux", tt.files, func(m *artifacts.Manifest) { tt.change(&m.Targets[0]) })
			_, err := Make(v, formatOf(t, "deb"), v.Manifest.Targets[0])
			if bad, ok := errors.AsType[*artifacts.VerifyError](err); !ok || bad.Code != CodeContradiction {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNothing holds that a target without files is no export.
func TestNothing(t *testing.T) {
	v := verified(t, "linux", nil, nil)
	if _, err := Make(v, formatOf(t, "deb"), v.Manifest.Targets[0]); err == nil {
		t.Error("a package without files")
	} else if _, ok := errors.AsType[*EmptyError](err); !ok {
		t.Errorf("got %v", err)
	}
}
