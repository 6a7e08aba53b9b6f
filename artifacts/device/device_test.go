package device

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/compiler/harness/all"
)

// TestManagedDir holds destinations to the directories of their harness.
func TestManagedDir(t *testing.T) {
	for _, x := range []struct {
		os, harness, dest string
		ok                bool
	}{
		{"linux", "codex", "/etc/codex/requirements.toml", true},
		{"linux", "gemini-cli", "/etc/gemini-cli/policies/10-halo-egress.toml", true},
		{"darwin", "claude-code", "/Library/Application Support/ClaudeCode/managed-settings.json", true},
		{"windows", "claude-code", `C:\Program Files\ClaudeCode\managed-settings.json`, true},
		{"linux", "codex", "/etc/codex", false},
		{"linux", "codex", "/etc/codex/", false},
		{"linux", "codex", "/etc/codexx/requirements.toml", false},
		{"linux", "codex", "/etc/claude-code/managed-settings.json", false},
		{"linux", "codex", "/etc/codex/../passwd", false},
		{"linux", "codex", "/etc/codex/./x", false},
		{"linux", "codex", "/etc/codex//x", false},
		{"linux", "codex", `/etc/codex/..\..\x`, false},
		{"linux", "codex", "etc/codex/requirements.toml", false},
		{"linux", "cursor-cli", "/etc/cursor/hooks.json", false},
		{"linux", "unknown", "/etc/codex/requirements.toml", false},
		{"windows", "claude-code", `C:\Program Files\ClaudeCode\..\x`, false},
		{"windows", "claude-code", `C:\Program Files\ClaudeCode\x:stream`, false},
		{"windows", "claude-code", `C:\Program Files\ClaudeCode/x`, false},
		{"windows", "claude-code", `D:\Program Files\ClaudeCode\x`, false},
		{"freebsd", "codex", "/etc/codex/requirements.toml", false},
	} {
		d := Device{OS: x.os, Harnesses: all.Harnesses()}
		if got := d.managedDir(x.harness, x.dest) != ""; got != x.ok {
			t.Errorf("%s %s %q: managed is %v, want %v", x.os, x.harness, x.dest, got, x.ok)
		}
	}
}

// TestSelect names what is missing.
func TestSelect(t *testing.T) {
	target := func(id, ring string, units ...string) artifacts.Target {
		return artifacts.Target{ID: id, Ring: ring, Units: units, OS: "linux"}
	}
	m := &artifacts.Manifest{Targets: []artifacts.Target{target("a", "a"), target("a+x", "a", "x"), target("a+x+y", "a", "x", "y"), target("b", "b")}}
	for _, x := range []struct {
		ring, units, os, want string
	}{
		{"a", "", "linux", "a"},
		{"a", "x", "linux", "a+x"},
		{"a", "y x", "linux", "a+x+y"},
		{"a", "y x y", "linux", "a+x+y"},
		{"a", "", "darwin", "the release has a for linux, not for darwin"},
		{"c", "", "linux", `the release has no ring "c"; its rings are a, b`},
		{"b", "x", "linux", "there is no unit x, or its rings do not name b"},
		{"b", "y x", "linux", "add the set to combinations in halos.yaml: [x, y]"},
		{"a+x", "", "linux", "a+x"},
	} {
		got, err := Select(m, x.ring, strings.Fields(x.units), x.os)
		switch {
		case err == nil && got.ID != x.want:
			t.Errorf("%s %q %s: target %s, want %s", x.ring, x.units, x.os, got.ID, x.want)
		case err != nil && !strings.Contains(err.Error(), x.want):
			t.Errorf("%s %q %s: %v, want %s", x.ring, x.units, x.os, err, x.want)
		}
	}
}

// TestSystemLinks goes through the links that macOS has in its root, and through no others.
func TestSystemLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right on Windows")
	}
	for _, x := range []struct {
		os, to string
		ok     bool
	}{
		{"darwin", "private/etc", true},
		{"darwin", "/private/etc", true},
		{"darwin", "elsewhere", false},
		{"linux", "private/etc", false},
	} {
		root := t.TempDir()
		for _, dir := range []string{"private/etc", "elsewhere"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(x.to, filepath.Join(root, "etc")); err != nil {
			t.Fatal(err)
		}
		d := Device{Root: root, OS: x.os, Harnesses: all.Harnesses()}
		tr, err := d.open(false)
		if err != nil {
			t.Fatal(err)
		}
		err = tr.put("/etc/codex/requirements.toml", []byte("x"), "", 0o644)
		tr.close()
		if r, refused := errors.AsType[*Refusal](err); x.ok != (err == nil) || !x.ok && (!refused || r.Code != CodeUnsafe) {
			t.Errorf("%s etc -> %s: %v, want through: %v", x.os, x.to, err, x.ok)
		}
		if _, err := os.Stat(filepath.Join(root, "private/etc/codex/requirements.toml")); x.ok != (err == nil) {
			t.Errorf("%s etc -> %s: %v", x.os, x.to, err)
		}
	}
}

// TestRecordDamaged refuses every damaged record: none of them is an empty one.
func TestRecordDamaged(t *testing.T) {
	d := installed(t, managedOpen)
	file := filepath.Join(d.Root, "var/lib/halo", recordName)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":       {},
		"cut":         good[:len(good)/2],
		"two":         append(slices.Clone(good), good...),
		"other field": bytes.Replace(good, []byte(`"org"`), []byte(`"orgs"`), 1),
		"other os":    bytes.Replace(good, []byte(`"os": "linux"`), []byte(`"os": "darwin"`), 1),
		"no digest":   bytes.Replace(good, []byte("sha256:"), []byte("md5:"), 1),
		"below zero":  bytes.Replace(good, []byte(`"sequence": 1`), []byte(`"sequence": -1`), 1),
		"elsewhere":   bytes.Replace(good, []byte("/etc/codex/requirements.toml"), []byte("/etc/passwd"), 1),
		"led away":    bytes.Replace(good, []byte("/etc/codex/requirements.toml"), []byte("/etc/codex/../passwd"), 1),
		"stale":       bytes.Replace(good, []byte("\n}"), []byte(",\n  \"stale\": [\"/etc/passwd\"]\n}"), 1),
	} {
		if bytes.Equal(data, good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := d.LoadRecord()
		if r, ok := errors.AsType[*Refusal](err); !ok || r.Code != CodeState {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
		if _, err := d.Uninstall(t.Context(), false); err == nil {
			t.Errorf("%s: uninstalled", name)
		}
	}
}

// TestKeptTrust keeps keys and trust files apart.
func TestKeptTrust(t *testing.T) {
	d := installed(t, managedOpen)
	if trust, err := d.KeptTrust(); err != nil || trust == nil || trust.Version != 0 || len(trust.Keys) != 0 {
		t.Errorf("no key was kept: %+v, %v", trust, err)
	}
	if trust, err := (Device{Root: t.TempDir(), OS: "linux"}).KeptTrust(); err != nil || trust != nil {
		t.Errorf("nothing installed: %+v, %v", trust, err)
	}
	pair, err := sign.Keygen(filepath.Join(t.TempDir(), "k"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := d.open(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	for _, want := range []*sign.Trust{sign.TrustKeys(pair.Key), {Org: "acme", Version: 3, Threshold: 1, Keys: []sign.PublicKey{pair.Key}}, sign.TrustKeys(pair.Key)} {
		if err := tr.keep(want); err != nil {
			t.Fatal(err)
		}
		got, err := d.KeptTrust()
		if err != nil || got.Version != want.Version || len(got.Keys) != 1 || got.Keys[0].ID() != pair.Key.ID() {
			t.Errorf("kept %+v, got %+v, %v", want, got, err)
		}
	}
	for _, name := range []string{sign.TrustName, keysName} {
		if err := os.WriteFile(filepath.Join(d.Root, "var/lib/halo", name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.KeptTrust(); err == nil {
			t.Errorf("a damaged %s was taken", name)
		}
		os.Remove(filepath.Join(d.Root, "var/lib/halo", sign.TrustName))
	}
}

// TestAssigned reads startup files as text.
func TestAssigned(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"A=1":                   {"A": "1"},
		"export A=1 B='x y'":    {"A": "1", "B": "x"},
		"  declare -x A=\"1\";": {"A": "1"},
		"typeset -gx A=1":       {"A": "1"},
		"set -gx A 1":           {"A": "1"},
		"set -x A '1'":          {"A": "1"},
		"setenv A 1":            {"A": "1"},
		"# A=1":                 {},
		"echo A=1":              {},
		"if A=1":                {},
		"A =1":                  {},
		"1A=1":                  {},
		"=1":                    {},
		"":                      {},
		"export":                {},
		"\x00A=1\nB=2":          {"B": "2"},
		"A=1 command":           {"A": "1"},
	} {
		if got := assigned([]byte(text)); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzUserFile reads anything as a user's file: no panic, and plain JSON stays as it is.
func FuzzUserFile(f *testing.F) {
	for _, s := range []string{`{"a": [1, {"b": "//"}]}`, "{/* x */\"a\": 1,}", "// x\n{}", `{"a": "\\\"", "b": "/*"}`, "[permissions.u]\nnetwork.enabled = true", "a = [[[", `{"a": /*`, `{"a": "`, "{,}", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		assigned(data)
		for _, name := range []string{"x.json", "x.toml"} {
			doc, err := parse(name, data)
			if err != nil {
				if strings.ContainsAny(err.Error(), "\x00\x1b") || len(err.Error()) > 40 {
					t.Errorf("%s: the error may have content: %q", name, err)
				}
				continue
			}
			m := &managed{}
			for _, r := range rules {
				if r.keys == nil {
					continue
				}
				for _, v := range values(doc, r.keys...) {
					r.bad(v, m)
				}
			}
		}
		plain := plainJSON(data)
		if len(plain) != len(data) {
			t.Errorf("%q became %q", data, plain)
		}
		if json.Valid(plain) && !bytes.Equal(plainJSON(plain), plain) {
			t.Errorf("%q is JSON, yet it became %q", plain, plainJSON(plain))
		}
	})
}
