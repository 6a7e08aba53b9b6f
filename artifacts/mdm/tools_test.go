package mdm

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/artifacts"
)

// The tests of this file read exports back with the programs that they are for, and run the scripts below a root of their own.

// readPlist decodes an XML plist to maps, lists, strings, bools and numbers as JSON has them.
func readPlist(t testing.TB, data []byte) any {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(data))
	var value func(xml.StartElement) any
	next := func() xml.Token {
		for {
			tok, err := dec.Token()
			if err != nil {
				t.Fatalf("plist: %v", err)
			}
			switch tok := tok.(type) {
			case xml.StartElement, xml.EndElement:
				return tok
			}
		}
	}
	text := func(start xml.StartElement) string {
		var s string
		if err := dec.DecodeElement(&s, &start); err != nil {
			t.Fatal(err)
		}
		return s
	}
	value = func(start xml.StartElement) any {
		switch start.Name.Local {
		case "string", "key":
			return text(start)
		case "integer", "real":
			return json.Number(text(start))
		case "true", "false":
			text(start)
			return start.Name.Local == "true"
		case "array":
			list := []any{}
			for {
				in, ok := next().(xml.StartElement)
				if !ok {
					return list
				}
				list = append(list, value(in))
			}
		case "dict":
			m := map[string]any{}
			for {
				in, ok := next().(xml.StartElement)
				if !ok {
					return m
				}
				m[text(in)] = value(next().(xml.StartElement))
			}
		}
		t.Fatalf("plist: element %s", start.Name.Local)
		return nil
	}
	for {
		if start, ok := next().(xml.StartElement); ok && start.Name.Local != "plist" {
			return value(start)
		}
	}
}

// forced returns the settings of each domain in a decoded configuration profile.
func forced(profile any) map[string]any {
	out := map[string]any{}
	for _, p := range profile.(map[string]any)["PayloadContent"].([]any) {
		for domain, v := range p.(map[string]any)["PayloadContent"].(map[string]any) {
			out[domain] = v.(map[string]any)["Forced"].([]any)[0].(map[string]any)["mcx_preference_settings"]
		}
	}
	return out
}

func fromJSON(t testing.TB, s string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestProfile reads the profile and the plists back with plistutil and compares the settings with the documents of the release.
func TestProfile(t *testing.T) {
	files := sample("darwin")
	e := made(t, "jamf", "darwin", files, nil)
	dir := onDisk(t, e)
	want := map[string]any{
		"com.anthropic.claudecode": fromJSON(t, files[1].content),
		"com.openai.codex": map[string]any{
			"config_toml_base64":       base64.StdEncoding.EncodeToString([]byte(files[2].content)),
			"requirements_toml_base64": base64.StdEncoding.EncodeToString([]byte(files[3].content)),
		},
		"com.github.copilot": map[string]any{
			"sandbox.enabled":                         "true",
			"sandbox.userPolicy.network.allowedHosts": `["a.example"]`,
			"telemetry.endpoint":                      "https://o.example",
			"telemetry.resourceAttributes":            `{"a.b":"c"}`,
		},
		"ai.opencode.managed": fromJSON(t, files[6].content),
	}
	check := func(t *testing.T, read func(t *testing.T, path string) any) {
		profile := read(t, filepath.Join(dir, "halo-ga.mobileconfig"))
		if got := forced(profile); !reflect.DeepEqual(got, want) {
			t.Errorf("settings\n got %v\nwant %v", got, want)
		}
		for domain, settings := range want {
			if got := read(t, filepath.Join(dir, "plists", domain+".plist")); !reflect.DeepEqual(got, settings) {
				t.Errorf("%s.plist\n got %v\nwant %v", domain, got, settings)
			}
		}
		top := profile.(map[string]any)
		for key, v := range map[string]any{"PayloadType": "Configuration", "PayloadVersion": json.Number("1"), "PayloadScope": "System", "PayloadIdentifier": "dev.halos.policy.acme.ga", "PayloadRemovalDisallowed": true} {
			if top[key] != v {
				t.Errorf("%s is %v, not %v", key, top[key], v)
			}
		}
		ids := []string{top["PayloadUUID"].(string)}
		for _, p := range top["PayloadContent"].([]any) {
			ids = append(ids, p.(map[string]any)["PayloadUUID"].(string))
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != len(want)+1 {
			t.Errorf("%d different UUIDs", n)
		}
	}
	t.Run("as written", func(t *testing.T) {
		check(t, func(t *testing.T, path string) any {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return readPlist(t, data)
		})
	})
	t.Run("plistutil", func(t *testing.T) {
		tool(t, "plistutil")
		check(t, func(t *testing.T, path string) any {
			// It writes the other form than it reads: to binary and back.
			binary := filepath.Join(t.TempDir(), "b.plist")
			output(t, "", "plistutil", "-i", path, "-o", binary)
			data, err := os.ReadFile(binary)
			if err != nil || !bytes.HasPrefix(data, []byte("bplist00")) {
				t.Fatalf("plistutil read no plist from %s: %v", path, err)
			}
			return readPlist(t, []byte(output(t, "", "plistutil", "-i", binary)))
		})
	})
}

// TestUUIDs holds that a UUID follows from the content: other settings, another UUID; the same settings in another release, the same payload.
func TestUUIDs(t *testing.T) {
	payloads := func(e *Export) map[string]string {
		out := map[string]string{}
		top := readPlist(t, e.Files["halo-ga.mobileconfig"]).(map[string]any)
		out[""] = top["PayloadUUID"].(string)
		for _, p := range top["PayloadContent"].([]any) {
			p := p.(map[string]any)
			out[p["PayloadIdentifier"].(string)] = p["PayloadUUID"].(string)
		}
		return out
	}
	files := sample("darwin")
	one := payloads(made(t, "jamf", "darwin", files, nil))
	other := payloads(made(t, "jamf", "darwin", files, func(m *artifacts.Manifest) { m.Sequence++ }))
	files[1].content = `{"n": 4}`
	changed := payloads(made(t, "jamf", "darwin", files, nil))
	for id, u := range one {
		if id != "" && other[id] != u {
			t.Errorf("%s: the same settings have another UUID in another release", id)
		}
		if same := changed[id] == u; same != (id != "" && !strings.HasSuffix(id, "com.anthropic.claudecode")) {
			t.Errorf("%s: after a change of claude-code alone, same UUID is %v", id, same)
		}
	}
	if one[""] == other[""] {
		t.Error("another release has the same profile UUID")
	}
}

// tree lists the files below a root with mode and content.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out["/"+rel] = fmt.Sprintf("%04o %s", info.Mode().Perm(), data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// placed is the tree that the items of a channel make.
func placed(e *Export, c Channel) map[string]string {
	out := map[string]string{}
	for _, it := range e.Items {
		if it.Channel == c {
			out[it.Dest] = it.Mode + " " + string(it.data)
		}
	}
	return out
}

func asRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIP: not root, so the scripts, which set owners, did not run")
	}
}

// shells are the shells that the scripts must run in: macOS has had bash and zsh behind /bin/sh.
func shells() [][]string {
	out := [][]string{{"sh"}}
	for _, s := range [][]string{{"bash", "--posix"}, {"zsh", "--emulate", "sh"}} {
		if _, err := exec.LookPath(s[0]); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// script runs a script of an export below a root.
func script(t testing.TB, shell []string, dir, name, root string) (string, int) {
	t.Helper()
	cmd := exec.Command(shell[0], append(slices.Clone(shell[1:]), name)...)
	cmd.Dir = dir
	cmd.Env = []string{"HALO_ROOT=" + root}
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// TestScripts runs the scripts of the jamf export: a device without, with foreign and with changed files, an update, and removal.
func TestScripts(t *testing.T) {
	asRoot(t)
	const record = "/var/lib/halo/mdm.list"
	for i, shell := range shells() {
		t.Run(shell[0], func(t *testing.T) {
			e := made(t, "jamf", "darwin", sample("darwin"), nil)
			dir, root := onDisk(t, e), t.TempDir()
			do := func(name string, want int) string {
				t.Helper()
				out, got := script(t, shell, dir, "scripts/"+name, root)
				if got != want {
					t.Fatalf("%s: exit status %d, want %d\n%s", name, got, want, out)
				}
				return out
			}
			is := func(want map[string]string) {
				t.Helper()
				got := tree(t, root)
				delete(got, record)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("files\n got %q\nwant %q", got, want)
				}
			}
			write := func(path, content string, mode os.FileMode) {
				t.Helper()
				path = root + path
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
					t.Fatal(err)
				}
			}
			const gemini, mcp = "/Library/Application Support/GeminiCli/policies/10-halo.toml", "/Library/Application Support/ClaudeCode/managed-mcp.json"
			const settings = "/Library/Application Support/ClaudeCode/managed-settings.json"
			want := placed(e, Script)

			if out := do("audit.sh", 1); !strings.Contains(out, "<result>missing: "+mcp) {
				t.Errorf("audit says %q", out)
			}
			is(map[string]string{})

			// Foreign files: one in the place of a managed one, one that would mix with the profile, a link.
			write(gemini, "mine\n", 0o600)
			write(settings, "mine too\n", 0o644)
			write("/target", "kept\n", 0o644)
			if err := errors.Join(os.MkdirAll(filepath.Dir(root+mcp), 0o755), os.Symlink(root+"/target", root+mcp)); err != nil {
				t.Fatal(err)
			}
			if out := do("audit.sh", 1); !strings.Contains(out, "not a regular file: "+mcp) || !strings.Contains(out, "changed: "+gemini) || !strings.Contains(out, "file beside the profile: "+settings) {
				t.Errorf("audit says %q", out)
			}
			if out := do("install.sh", 0); strings.Count(out, "halo: kept ") != 3 {
				t.Errorf("install says %q", out)
			}
			for _, p := range []string{gemini, settings, mcp, "/target"} {
				if p == "/target" {
					want[p] = "0644 kept\n"
				} else {
					want[p+".before-halo"] = map[string]string{gemini: "0600 mine\n", settings: "0644 mine too\n", mcp: "0777 kept\n"}[p]
				}
			}
			is(want)
			if out := do("audit.sh", 0); out != "<result>ok</result>\n" {
				t.Errorf("audit says %q", out)
			}
			if out := do("install.sh", 0); strings.Contains(out, "kept") {
				t.Errorf("a second run says %q", out)
			}
			is(want)
			if os.Remove(root+mcp+".before-halo") != nil || os.Remove(root+"/target") != nil {
				t.Fatal("cannot remove")
			}
			delete(want, "/target")
			delete(want, mcp+".before-halo")

			if i > 0 {
				do("remove.sh", 0) // the rest does not depend on the shell
				return
			}

			// Drift: content, mode, owner, a directory that others can write, absence.
			for name, change := range map[string]func() error{
				"changed":                         func() error { return os.WriteFile(root+gemini, []byte("other"), 0o644) },
				"wrong owner or mode":             func() error { return os.Chmod(root+gemini, 0o666) },
				"wrong owner or mode:":            func() error { return os.Chown(root+gemini, 1000, 0) },
				"directory that others can write": func() error { return os.Chmod(filepath.Dir(root+gemini), 0o777) },
				"missing":                         func() error { return os.Remove(root + gemini) },
			} {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				if out := do("audit.sh", 1); !strings.Contains(out, strings.TrimSuffix(name, ":")) {
					t.Errorf("after %s audit says %q", name, out)
				}
				do("install.sh", 0)
				is(want)
				do("audit.sh", 0)
			}

			// A newer release without that file removes it; without a record the removal of the old one still knows its own files.
			next := sample("darwin")
			next = append(next[:5:5], next[6:]...)
			next[0].content = `{"mcpServers": {}}` + "\n"
			newer := made(t, "jamf", "darwin", next, func(m *artifacts.Manifest) { m.Sequence++ })
			dir = onDisk(t, newer)
			if out := do("audit.sh", 1); !strings.Contains(out, "left from an older release: "+gemini) {
				t.Errorf("audit says %q", out)
			}
			do("install.sh", 0)
			kept := maps.Clone(want)
			maps.DeleteFunc(kept, func(p, _ string) bool { return !strings.HasSuffix(p, ".before-halo") })
			want = placed(newer, Script)
			maps.Copy(want, kept)
			is(want)
			do("audit.sh", 0)
			write("/etc/other", "stays\n", 0o644)
			do("remove.sh", 0)
			kept["/etc/other"] = "0644 stays\n"
			is(kept)
			if _, err := os.Stat(root + record); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the record stays: %v", err)
			}
			do("install.sh", 0)
			if err := os.Remove(root + record); err != nil {
				t.Fatal(err)
			}
			do("remove.sh", 0)
			is(kept)

			// What cannot be done is said, and nothing is torn.
			if err := os.MkdirAll(root+mcp, 0o755); err != nil {
				t.Fatal(err)
			}
			if out := do("install.sh", 1); !strings.Contains(out, mcp+" is a directory") {
				t.Errorf("install says %q", out)
			}
			if err := errors.Join(os.RemoveAll(filepath.Dir(root+mcp)), os.Symlink("/tmp", filepath.Dir(root+mcp))); err != nil {
				t.Fatal(err)
			}
			if out := do("install.sh", 1); !strings.Contains(out, "ClaudeCode is a symbolic link") {
				t.Errorf("install says %q", out)
			}
		})
	}
}

// TestShellcheck holds every shell script of every format to shellcheck.
func TestShellcheck(t *testing.T) {
	tool(t, "shellcheck")
	n := 0
	for _, f := range Formats() {
		for _, system := range f.OSes {
			dir := onDisk(t, made(t, f.Name, system, sample(system), nil))
			for name := range tree(t, dir) {
				if strings.HasSuffix(name, ".sh") {
					n++
					output(t, dir, "shellcheck", "-s", "sh", "."+name)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no script was checked")
	}
}

// TestDeb reads the package with dpkg-deb and installs, verifies, replaces and removes it with dpkg below a root of its own.
func TestDeb(t *testing.T) {
	tool(t, "dpkg-deb", "dpkg")
	asRoot(t)
	e := made(t, "deb", "linux", sample("linux"), nil)
	dir := onDisk(t, e)
	deb := filepath.Join(dir, "halo-policy-ga_7+1.2.0_all.deb")
	for field, want := range map[string]string{"Package": "halo-policy-ga", "Version": "7+1.2.0", "Architecture": "all", "Conflicts": "halo-policy"} {
		if got := strings.TrimSpace(output(t, "", "dpkg-deb", "-f", deb, field)); got != want {
			t.Errorf("%s is %q, not %q", field, got, want)
		}
	}
	extracted := t.TempDir()
	output(t, "", "dpkg-deb", "-x", deb, extracted)
	if got, want := tree(t, extracted), placed(e, Package); !reflect.DeepEqual(got, want) {
		t.Errorf("files\n got %q\nwant %q", got, want)
	}
	if list := output(t, "", "dpkg-deb", "-c", deb); strings.Count(list, "root/root") != strings.Count(list, "\n") {
		t.Errorf("not everything belongs to root:\n%s", list)
	}

	root := t.TempDir()
	if err := errors.Join(os.MkdirAll(root+"/var/lib/dpkg/info", 0o755), os.MkdirAll(root+"/var/lib/dpkg/updates", 0o755), os.WriteFile(root+"/var/lib/dpkg/status", nil, 0o644),
		os.MkdirAll(root+"/etc/codex", 0o755), os.WriteFile(root+"/etc/codex/requirements.toml", []byte("foreign\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	dpkg := func(args ...string) (string, error) {
		return run("", "dpkg", append([]string{"--root=" + root}, args...)...)
	}
	etc := func() map[string]string { return prefixed(tree(t, root+"/etc"), "/etc") }
	must := func(args ...string) {
		t.Helper()
		if out, err := dpkg(args...); err != nil {
			t.Fatalf("dpkg %v: %v\n%s", args, err, out)
		}
	}
	must("-i", deb)
	if got, want := etc(), placed(e, Package); !reflect.DeepEqual(got, want) {
		t.Errorf("installed\n got %q\nwant %q", got, want)
	}
	if out, err := dpkg("--verify", "halo-policy-ga"); err != nil || out != "" {
		t.Errorf("dpkg --verify: %v %q", err, out)
	}
	if err := os.WriteFile(root+"/etc/codex/requirements.toml", []byte("drift\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := dpkg("--verify", "halo-policy-ga"); !strings.Contains(out, "requirements.toml") {
		t.Errorf("dpkg --verify does not see drift: %q", out)
	}
	// A newer release wins over a local edit and removes what it lacks.
	newer := made(t, "deb", "linux", sample("linux")[1:], func(m *artifacts.Manifest) { m.Sequence++ })
	must("-i", filepath.Join(onDisk(t, newer), "halo-policy-ga_8+1.2.0_all.deb"))
	if got, want := etc(), placed(newer, Package); !reflect.DeepEqual(got, want) {
		t.Errorf("after the update\n got %q\nwant %q", got, want)
	}
	if out, err := run("", "dpkg", "--compare-versions", "7+1.2.0", "lt", "8+1.2.0~rc1"); err != nil {
		t.Errorf("the sequence does not order versions: %s", out)
	}
	// The package of another target cannot stand beside it.
	other := made(t, "deb", "linux", sample("linux"), func(m *artifacts.Manifest) { m.Targets[0].ID, m.Targets[0].Ring = "beta", "beta" })
	if out, err := dpkg("-i", filepath.Join(onDisk(t, other), "halo-policy-beta_7+1.2.0_all.deb")); err == nil {
		t.Errorf("two policies at once:\n%s", out)
	}
	must("--purge", "halo-policy-ga")
	if got := etc(); len(got) != 0 {
		t.Errorf("left after purge: %q", got)
	}
}

func prefixed(m map[string]string, prefix string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[prefix+k] = v
	}
	return out
}

// TestRPM does the same with rpm.
func TestRPM(t *testing.T) {
	tool(t, "rpm")
	asRoot(t)
	e := made(t, "rpm", "linux", sample("linux"), nil)
	file := filepath.Join(onDisk(t, e), "halo-policy-ga-7+1.2.0-1.noarch.rpm")
	if out := output(t, "", "rpm", "-K", file); !strings.Contains(out, "digests OK") {
		t.Errorf("rpm -K: %s", out)
	}
	if got := output(t, "", "rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{OS}", file); got != "halo-policy-ga 7+1.2.0 1 noarch linux" {
		t.Errorf("rpm -qp: %s", got)
	}
	for path, want := range placed(e, Package) {
		if out := output(t, "", "rpm", "-qp", "--qf", "[%{FILENAMES} %{FILEMODES:octal} %{FILEUSERNAME}:%{FILEGROUPNAME}\n]", file); !strings.Contains(out, path+" 10"+want[:4]+" root:root\n") {
			t.Errorf("%s is not in\n%s", path, out)
		}
	}
	if out := output(t, "", "rpm", "-qp", "--configfiles", file); out != "" {
		t.Errorf("configuration files, which rpm would not overwrite: %s", out)
	}
	root := t.TempDir()
	rpm := func(args ...string) (string, error) {
		return run("", "rpm", append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := rpm(args...); err != nil {
			t.Fatalf("rpm %v: %v\n%s", args, err, out)
		}
	}
	etc := func() map[string]string { return prefixed(tree(t, root+"/etc"), "/etc") }
	if err := errors.Join(os.MkdirAll(root+"/etc/codex", 0o755), os.WriteFile(root+"/etc/codex/requirements.toml", []byte("foreign\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	must("--initdb")
	// rpm on Debian wants to be told that there is no package database of the system behind it.
	must("-U", "--nodeps", file)
	if got, want := etc(), placed(e, Package); !reflect.DeepEqual(got, want) {
		t.Errorf("installed\n got %q\nwant %q", got, want)
	}
	must("--verify", "--nodeps", "halo-policy-ga")
	if err := os.WriteFile(root+"/etc/codex/requirements.toml", []byte("drift\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := rpm("--verify", "--nodeps", "halo-policy-ga"); err == nil || !strings.Contains(out, "requirements.toml") {
		t.Errorf("rpm --verify does not see drift: %q", out)
	}
	newer := made(t, "rpm", "linux", sample("linux")[1:], func(m *artifacts.Manifest) { m.Sequence++ })
	must("-U", filepath.Join(onDisk(t, newer), "halo-policy-ga-8+1.2.0-1.noarch.rpm"))
	if got, want := etc(), placed(newer, Package); !reflect.DeepEqual(got, want) {
		t.Errorf("after the update\n got %q\nwant %q", got, want)
	}
	if out, err := rpm("-U", file); err == nil {
		t.Errorf("an older release replaced a newer one: %s", out)
	}
	other := made(t, "rpm", "linux", sample("linux"), func(m *artifacts.Manifest) { m.Targets[0].ID, m.Targets[0].Ring = "beta", "beta" })
	if out, err := rpm("-U", filepath.Join(onDisk(t, other), "halo-policy-beta-7+1.2.0-1.noarch.rpm")); err == nil || !strings.Contains(out, "conflicts with") {
		t.Errorf("two policies at once: %v\n%s", err, out)
	}
	must("-e", "halo-policy-ga")
	if got := etc(); len(got) != 0 {
		t.Errorf("left after removal: %q", got)
	}
}

// TestXML holds that the ADMX, the ADML and the values of the policy are well-formed and carry the documents whole.
func TestXML(t *testing.T) {
	files := sample("windows")
	e := made(t, "intune", "windows", files, nil)
	for _, name := range []string{"registry/halo.admx", "registry/en-US/halo.adml"} {
		dec := xml.NewDecoder(bytes.NewReader(e.Files[name]))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	var rows []omaURI
	if err := json.Unmarshal(e.Files["registry/oma-uri.json"], &rows); err != nil {
		t.Fatal(err)
	}
	var admx struct {
		Policies []struct {
			Name     string `xml:"name,attr"`
			Key      string `xml:"key,attr"`
			Elements []struct {
				ID        string `xml:"id,attr"`
				ValueName string `xml:"valueName,attr"`
			} `xml:"elements>text"`
		} `xml:"policies>policy"`
	}
	if err := xml.Unmarshal(e.Files["registry/halo.admx"], &admx); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for i, p := range admx.Policies {
		var doc struct {
			Data []struct {
				ID    string `xml:"id,attr"`
				Value string `xml:"value,attr"`
			} `xml:"data"`
		}
		if err := xml.Unmarshal([]byte("<x>"+rows[i+1].Value+"</x>"), &doc); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(rows[i+1].OMAURI, "~Policy~Halo/"+p.Name) || len(doc.Data) != len(p.Elements) {
			t.Fatalf("row %d is not of policy %s", i+1, p.Name)
		}
		for j, d := range doc.Data {
			if d.ID != p.Elements[j].ID {
				t.Errorf("value %s for element %s", d.ID, p.Elements[j].ID)
			}
			values[p.Key+" "+p.Elements[j].ValueName] = d.Value
		}
	}
	settings := values[`SOFTWARE\Policies\ClaudeCode Settings`]
	if !reflect.DeepEqual(fromJSON(t, settings), fromJSON(t, files[1].content)) || strings.ContainsFunc(settings, func(r rune) bool { return r > '~' || r < ' ' }) {
		t.Errorf("claude-code gets %q", settings)
	}
	delete(values, `SOFTWARE\Policies\ClaudeCode Settings`)
	want := map[string]string{"sandbox.enabled": "true", "sandbox.userPolicy.network.allowedHosts": `["a.example"]`, "telemetry.endpoint": "https://o.example", "telemetry.resourceAttributes": `{"a.b":"c"}`}
	if !reflect.DeepEqual(values, prefixed(want, `SOFTWARE\Policies\GitHubCopilot `)) {
		t.Errorf("copilot-cli gets %q", values)
	}
}

// oddNames are legal names of files that would do harm where a quote is missing.
var oddNames = []string{"it's.toml", "$(touch pwned).toml", "`touch pwned`.toml", "a;b&c.toml", "-rf", "{{ lookup('pipe','touch pwned') }}.toml", "{% raw %}", "%s%n.toml", "#x", "a  b.toml",
	"é.toml", "‘’‚‛.toml", "日本 x.toml", "!x", "[a-z]", "~", "$HOME", "@FILES@", "HALO-END", "!unsafe x", "'; touch pwned; '", "x' ] ; touch pwned #", "😀.toml"}

// TestHostileNames puts files of odd names on a device by every channel that can run here, and holds that they arrive and that nothing else happens.
func TestHostileNames(t *testing.T) {
	asRoot(t)
	random := rand.New(rand.NewPCG(1, 2))
	names := slices.Clone(oddNames)
	for range 4 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString([]string{"'", "$", "`", "(", ")", ";", "&", " x", "{{", "}}", "%", "#", "!", "~", "é", "’", "-", "=", ",", "a", "@", "[", "]", "^"}[random.IntN(24)])
		}
		if n := strings.TrimLeft(b.String(), " "); n != "" && n != "." && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	build := func(format, system, prefix, sep string) *Export {
		files := make([]dest, 0, len(names))
		for _, n := range names {
			files = append(files, dest{"gemini-cli", prefix + n + sep + "f " + n, "content of " + n + "\n"})
		}
		slices.SortFunc(files, func(a, b dest) int { return strings.Compare(a.path, b.path) })
		return made(t, format, system, files, func(m *artifacts.Manifest) { m.Org, m.Version = "a\nb'\"<&>$(x) {{ y }}, é]]>", "1.0\n'$(x)\"" })
	}
	same := func(got, want map[string]string) {
		t.Helper()
		for p, w := range want {
			if got[p] != w {
				t.Errorf("%q: got %q, want %q", p, got[p], w)
			}
		}
		for p := range got {
			if want[p] == "" && p != "/var/lib/halo/mdm.list" {
				t.Errorf("%q is there as well", p)
			}
		}
	}
	e := build("jamf", "darwin", "/Library/Application Support/GeminiCli/", "/")
	dir, root, shell := onDisk(t, e), t.TempDir(), []string{"sh"}
	before := tree(t, dir)
	if out, code := script(t, shell, dir, "scripts/install.sh", root); code != 0 {
		t.Fatal(out)
	}
	same(tree(t, root), placed(e, Script))
	if out, code := script(t, shell, dir, "scripts/audit.sh", root); code != 0 {
		t.Error(out)
	}
	var commands []string
	for _, it := range e.Items {
		// The command of install.json below a root, which stands before the place in the same word.
		commands = append(commands, strings.Replace(detectCommand("linux", &it), "'/Library", shQuote(root)+"'/Library", 1))
	}
	if out, err := run(dir, "sh", "-c", strings.Join(commands, " && ")); err != nil {
		t.Errorf("detection: %v %s", err, out)
	}
	if out, code := script(t, shell, dir, "scripts/remove.sh", root); code != 0 {
		t.Fatal(out)
	}
	same(tree(t, root), map[string]string{})
	if after := tree(t, dir); !reflect.DeepEqual(before, after) {
		t.Error("something else was done")
	}
	if top, ok := readPlist(t, made(t, "jamf", "darwin", sample("darwin"), func(m *artifacts.Manifest) { m.Org = "a\nb<&>\"'" }).Files["halo-ga.mobileconfig"]).(map[string]any); !ok || top["PayloadOrganization"] != `a?b<&>"'` {
		t.Errorf("organization %q", top["PayloadOrganization"])
	}
	if _, err := exec.LookPath("dpkg-deb"); err == nil {
		e, dir, out := build("deb", "linux", "/etc/gemini-cli/", "/"), "", t.TempDir()
		dir = onDisk(t, e)
		output(t, "", "dpkg-deb", "-x", filepath.Join(dir, e.Items[0].Source), out)
		same(tree(t, out), placed(e, Package))
		if got := output(t, "", "dpkg-deb", "-f", filepath.Join(dir, e.Items[0].Source), "Maintainer"); !strings.HasPrefix(got, "a?b'\"-&-$(x) {{ y }}- ?]]- <") {
			t.Errorf("maintainer %q", got)
		}
	}
	if _, err := exec.LookPath("rpm"); err == nil {
		e := build("rpm", "linux", "/etc/gemini-cli/", "/")
		out := output(t, "", "rpm", "-qp", "--qf", "[%{FILENAMES}\n]", filepath.Join(onDisk(t, e), e.Items[0].Source))
		for _, it := range e.Items {
			if !strings.Contains(out, it.Dest+"\n") {
				t.Errorf("rpm lists no %q", it.Dest)
			}
		}
	}
}

// FuzzQuote holds that a shell sees the text that was quoted and XML and YAML readers the one that was written.
func FuzzQuote(f *testing.F) {
	for _, n := range oddNames {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !xmlText(s) {
			return
		}
		var got string
		if err := xml.Unmarshal([]byte("<x>"+xmlEscape(s)+"</x>"), &got); err != nil || got != s {
			t.Errorf("XML: %q became %q: %v", s, got, err)
		}
		var attr struct {
			A string `xml:"a,attr"`
		}
		if err := xml.Unmarshal([]byte(`<x a="`+xmlEscape(s)+`"/>`), &attr); err != nil || attr.A != s {
			t.Errorf("XML attribute: %q became %q: %v", s, attr.A, err)
		}
		if back, ok := unquoteShell(shQuote(s)); !ok || back != s {
			t.Errorf("shell: %q became %q", s, back)
		}
		if q := psQuote(s); strings.ContainsFunc(q, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("PowerShell: %q is not ASCII", q)
		}
		// The escapes of YAML that are used are those of JSON, but for \U.
		if y := yamlString(s); !strings.Contains(y, `\U`) {
			if err := json.Unmarshal([]byte(y), &got); err != nil || got != s {
				t.Errorf("YAML: %q became %q: %v", s, got, err)
			}
		}
		if n := slug(s); n != "" && (len(n) > maxSlug+9 || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != "") {
			t.Errorf("slug %q", n)
		}
	})
}

// unquoteShell reads one word of single quotes and escaped single quotes.
func unquoteShell(s string) (string, bool) {
	var b strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, `\'`):
			b.WriteByte('\'')
			s = s[2:]
		case s[0] == '\'':
			in, rest, ok := strings.Cut(s[1:], "'")
			if !ok {
				return "", false
			}
			b.WriteString(in)
			s = rest
		default:
			return "", false
		}
	}
	return b.String(), true
}
