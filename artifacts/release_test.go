package artifacts

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/compiler/diag"
)

// now is an instant at which fullPlan is valid.
var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

func newKey(t testing.TB) (crypto.Signer, sign.PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := sign.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, pub
}

// signed writes a signed release and returns its directory and what verifies it.
func signed(t testing.TB, p *Plan) (string, VerifyOptions) {
	t.Helper()
	key, pub := newKey(t)
	r := seal(t, p)
	if _, err := r.Sign(key); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := r.Write(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	return out, VerifyOptions{Trust: sign.TrustKeys(pub), Now: now}
}

func verify(dir string, opts VerifyOptions) error {
	_, err := Verify(context.Background(), DirFS(dir), opts)
	return err
}

// wantNo checks that err is a no with the given code that names path.
func wantNo(t *testing.T, err error, code *diag.Code, path string) {
	t.Helper()
	var no *VerifyError
	if !errors.As(err, &no) {
		t.Errorf("error %v, not a VerifyError", err)
		return
	}
	if no.Code != code {
		t.Errorf("error %v has code %s, not %s", err, no.Code.ID, code.ID)
	}
	if !slices.ContainsFunc(no.Problems, func(p Problem) bool { return p.Path == path && p.Message != "" }) {
		t.Errorf("error %q does not name %s", err, path)
	}
}

// tree reads a directory: path to content and mode.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content += " " + string(data)
		}
		files[filepath.ToSlash(rel)] = content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func noLeftovers(t *testing.T, out string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(out))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}

func TestWriteAndVerify(t *testing.T) {
	out, opts := signed(t, fullPlan())
	v, err := Verify(t.Context(), DirFS(out), opts)
	if err != nil {
		t.Fatal(err)
	}
	if v.Digest != seal(t, fullPlan()).Digest() || !slices.Equal(v.Signers, []string{opts.Trust.Keys[0].ID()}) || len(v.OtherSigners) != 0 {
		t.Errorf("verified %+v", v)
	}
	const path = "packs/team-web/pack.yaml"
	if data, err := v.ReadFile(path); err != nil || string(data) != "name: team-web\n" {
		t.Errorf("ReadFile: %q, %v", data, err)
	}
	if _, err := v.ReadFile("none"); err == nil {
		t.Error("a file that is not listed was read")
	}
	// Every listed file is there and the reverse; the sums are the payload's, in the form that sha256sum reads.
	got := readTree(t, out)
	for _, f := range v.Manifest.Files {
		if got[f.Path] == "" {
			t.Errorf("%s is not there", f.Path)
		}
	}
	lines := strings.Split(strings.TrimSuffix(strings.SplitN(got[SumsName], " ", 2)[1], "\n"), "\n")
	if len(lines) != len(v.Manifest.Files)-1 {
		t.Errorf("%d sums for %d files", len(lines), len(v.Manifest.Files))
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		if f, ok := v.Manifest.File(name); !ok || f.SHA256 != sum || name == SumsName {
			t.Errorf("sums have %q", line)
		}
	}
	if runtime.GOOS != "windows" {
		for path, content := range got {
			if !strings.HasPrefix(content, "drwxr-xr-x") && !strings.HasPrefix(content, "-rw-r--r-- ") {
				t.Errorf("%s has mode %.10s", path, content)
			}
		}
	}
	noLeftovers(t, out)
	// What changes after verifying is noticed when it is read.
	if err := os.WriteFile(filepath.Join(out, path), []byte("name: team-wex\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = v.ReadFile(path)
	wantNo(t, err, CodeFiles, path)
	if err := os.Remove(filepath.Join(out, path)); err != nil {
		t.Fatal(err)
	}
	_, err = v.ReadFile(path)
	wantNo(t, err, CodeFiles, path)
}

// A changed byte anywhere, a cut, a missing, an added and a renamed file must each make Verify say no and name a file.
func TestEveryChangeIsNoticed(t *testing.T) {
	out, opts := signed(t, fullPlan())
	whole := readTree(t, out)
	check := func(what string) {
		t.Helper()
		err := verify(out, opts)
		var no *VerifyError
		if !errors.As(err, &no) || len(no.Problems) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	for path, content := range whole {
		if content[0] == 'd' {
			continue
		}
		full := filepath.Join(out, filepath.FromSlash(path))
		data := []byte(strings.SplitN(content, " ", 2)[1])
		put := func(data []byte) {
			t.Helper()
			if err := os.WriteFile(full, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		step := 1 + len(data)/37 // sample the long files
		for i := 0; i < len(data); i += step {
			for _, flip := range []byte{0x01, 0x20, 0x80} {
				changed := bytes.Clone(data)
				changed[i] ^= flip
				put(changed)
				check(fmt.Sprintf("%s: byte %d changed", path, i))
			}
			put(data[:i])
			check(fmt.Sprintf("%s: cut to %d bytes", path, i))
		}
		put(append(bytes.Clone(data), '\n'))
		check(path + ": a byte more")
		put(data)
		if err := os.Rename(full, full+".x"); err != nil {
			t.Fatal(err)
		}
		check(path + ": renamed")
		if err := os.Rename(full+".x", full); err != nil {
			t.Fatal(err)
		}
		if path != DetachedName {
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
			check(path + ": removed")
			put(data)
		}
	}
	for _, extra := range []string{"x", "targets/x", "packs/team-web/.hidden", "manifest.json.bak", "MANIFEST.json.sig", "x.sigstore.json", "manifest.json.abc.sigstore.json", "packs/provenance.sigstore.json"} {
		full := filepath.Join(out, filepath.FromSlash(extra))
		if err := os.WriteFile(full, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		wantNo(t, verify(out, opts), CodeFiles, extra)
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(out, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, opts), CodeFiles, "empty")
	if err := os.Remove(filepath.Join(out, "empty")); err != nil {
		t.Fatal(err)
	}
	if err := verify(out, opts); err != nil {
		t.Errorf("put back: %v", err)
	}
}

func TestLinksAndSpecialFiles(t *testing.T) {
	const victim = "packs/team-web/pack.yaml"
	for _, tt := range []struct {
		name string
		path string // what is reported
		make func(dir string) error
		code *diag.Code
	}{
		{"link for a file", victim, func(dir string) error { return swapForLink(filepath.Join(dir, victim)) }, CodeFiles},
		{"link for a directory", "packs", func(dir string) error { return swapForLink(filepath.Join(dir, "packs")) }, CodeFiles},
		{"link for the manifest", ManifestName, func(dir string) error { return swapForLink(filepath.Join(dir, ManifestName)) }, CodeFiles},
		{"link for the bundle", BundleName, func(dir string) error { return swapForLink(filepath.Join(dir, BundleName)) }, CodeSignature},
		{"link for the signature", DetachedName, func(dir string) error { return swapForLink(filepath.Join(dir, DetachedName)) }, CodeSignature},
		{"further link", "l", func(dir string) error { return os.Symlink(victim, filepath.Join(dir, "l")) }, CodeFiles},
		{"further dangling link", "l", func(dir string) error { return os.Symlink("none", filepath.Join(dir, "l")) }, CodeFiles},
		{"pipe for a file", victim, func(dir string) error { return swapForPipe(filepath.Join(dir, victim)) }, CodeFiles},
		{"pipe for the manifest", ManifestName, func(dir string) error { return swapForPipe(filepath.Join(dir, ManifestName)) }, CodeFiles},
		{"further pipe", "p", func(dir string) error { return makePipe(filepath.Join(dir, "p")) }, CodeFiles},
		{"directory for a file", victim, func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, victim)), os.Mkdir(filepath.Join(dir, victim), 0o755))
		}, CodeFiles},
		{"file for a directory", "packs", func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "packs")), os.WriteFile(filepath.Join(dir, "packs"), nil, 0o644))
		}, CodeFiles},
		{"directory for the signature", DetachedName, func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, DetachedName)), os.Mkdir(filepath.Join(dir, DetachedName), 0o755))
		}, CodeSignature},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, opts := signed(t, fullPlan())
			if err := tt.make(out); errors.Is(err, errors.ErrUnsupported) {
				t.Skip("SKIPPED: not on this system")
			} else if err != nil {
				t.Fatal(err)
			}
			wantNo(t, verify(out, opts), tt.code, tt.path)
		})
	}
	// The directory itself may be reached by a link: current -> release-3.
	out, opts := signed(t, fullPlan())
	link := filepath.Join(t.TempDir(), "current")
	if err := os.Symlink(out, link); err != nil {
		t.Skip("SKIPPED: no symbolic links here")
	}
	if err := verify(link, opts); err != nil {
		t.Errorf("through a link: %v", err)
	}
}

// swapForLink puts a link to the same content in the place of path.
func swapForLink(path string) error {
	away := filepath.Join(filepath.Dir(filepath.Dir(path)), "away")
	if err := os.Rename(path, away); err != nil {
		return err
	}
	return os.Symlink(away, path)
}

func swapForPipe(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return makePipe(path)
}

func TestAllProblemsAreReported(t *testing.T) {
	p := fullPlan()
	for i := range 200 {
		p.Add(fmt.Sprintf("extra/%03d", i), []byte{byte(i)})
	}
	out, opts := signed(t, p)
	for _, path := range []string{"README.md", "coverage.json"} {
		if err := os.Remove(filepath.Join(out, path)); err != nil {
			t.Fatal(err)
		}
	}
	err := verify(out, opts)
	wantNo(t, err, CodeFiles, "README.md")
	wantNo(t, err, CodeFiles, "coverage.json")
	if err := os.RemoveAll(filepath.Join(out, "extra")); err != nil {
		t.Fatal(err)
	}
	var no *VerifyError
	if err := verify(out, opts); !errors.As(err, &no) || len(no.Problems) != maxProblems || no.More != 202-maxProblems || !strings.Contains(err.Error(), "and 152 more") {
		t.Errorf("many problems: %v", err)
	}
}

func TestVerifyOrderAndOptions(t *testing.T) {
	out, opts := signed(t, fullPlan())
	_, other := newKey(t)
	dir := t.TempDir()
	for _, tt := range []struct {
		name string
		dir  string
		opts VerifyOptions
		code *diag.Code // nil: no answer
	}{
		{"no key", out, VerifyOptions{Now: now}, nil},
		{"no clock", out, VerifyOptions{Trust: opts.Trust}, nil},
		{"no directory", filepath.Join(dir, "none"), opts, nil},
		{"empty directory", dir, opts, nil},
		{"a file", filepath.Join(out, ManifestName), opts, nil},
		{"other key", out, VerifyOptions{Trust: sign.TrustKeys(other), Now: now}, CodeSignature},
		{"two of two", out, VerifyOptions{Trust: &sign.Trust{Threshold: 2, Keys: append(opts.Trust.Keys, other)}, Now: now}, CodeSignature},
		{"another organization", out, VerifyOptions{Trust: &sign.Trust{Org: "other", Version: 1, Threshold: 1, Keys: opts.Trust.Keys}, Now: now}, CodeSignature},
		{"revoked", out, VerifyOptions{Trust: &sign.Trust{Org: "acme", Version: 1, Threshold: 1, Keys: []sign.PublicKey{other}, Revoked: []string{opts.Trust.Keys[0].ID()}}, Now: now}, CodeSignature},
		{"last second", out, VerifyOptions{Trust: opts.Trust, Now: fullPlan().Manifest.Expires.Add(-time.Second)}, CodeFiles},
		{"expired", out, VerifyOptions{Trust: opts.Trust, Now: fullPlan().Manifest.Expires}, CodeExpired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.code == CodeFiles {
				if err := verify(tt.dir, tt.opts); err != nil {
					t.Error(err)
				}
				return
			}
			err := verify(tt.dir, tt.opts)
			var no *VerifyError
			if errors.As(err, &no) != (tt.code != nil) || err == nil || no != nil && no.Code != tt.code {
				t.Errorf("error %v", err)
			}
		})
	}
	// A manifest that is not even JSON is a matter of its signature first.
	if err := os.WriteFile(filepath.Join(out, ManifestName), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, opts), CodeSignature, BundleName)
	// A signed manifest of another schema, or one that is not canonical, is a bad manifest.
	key, pub := newKey(t)
	edit := func(old, new string) []byte {
		data := seal(t, fullPlan()).Bytes
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("the manifest has no %s", old)
		}
		return bytes.Replace(data, []byte(old), []byte(new), 1)
	}
	for _, data := range [][]byte{[]byte("{}"), edit(`"schemaVersion":1`, `"schemaVersion":2`), edit(`"org":`, `"notes":"x","org":`), edit(`"dest":"/etc/`, `"dest":"/root/../etc/`)} {
		s, err := sign.Sign(key, data)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{ManifestName: data, BundleName: s.Bundle, DetachedName: s.Detached} {
			if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		wantNo(t, verify(out, VerifyOptions{Trust: sign.TrustKeys(pub), Now: now}), CodeManifest, ManifestName)
		// What no verifier takes is not signed either.
		_, err = SignDir(t.Context(), out, key)
		wantNo(t, err, CodeManifest, ManifestName)
	}
	unsigned := filepath.Join(t.TempDir(), "out")
	if err := seal(t, fullPlan()).Write(t.Context(), unsigned); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(unsigned, opts), CodeUnsigned, ManifestName)
	if err := os.Remove(filepath.Join(unsigned, ManifestName)); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(unsigned, opts), CodeManifest, ManifestName)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	good, opts := signed(t, fullPlan())
	if _, err := Verify(ctx, DirFS(good), opts); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// SHA256SUMS is listed and so hashed like any file; that it says the same as the manifest is checked too.
func TestSumsMustAgree(t *testing.T) {
	r := seal(t, fullPlan())
	i := slices.IndexFunc(r.files, func(c content) bool { return c.path == SumsName })
	r.files[i].data = append(bytes.Clone(r.files[i].data), "# more\n"...)
	r.Manifest.Files = hashAll(r.files)
	var err error
	if r.Bytes, err = r.Manifest.Encode(); err != nil {
		t.Fatal(err)
	}
	key, pub := newKey(t)
	if _, err := r.Sign(key); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := r.Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, VerifyOptions{Trust: sign.TrustKeys(pub), Now: now}), CodeFiles, SumsName)
}

func TestSignDirAndSeveralSigners(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	if err := seal(t, fullPlan()).Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	keyA, a := newKey(t)
	keyB, b := newKey(t)
	_, c := newKey(t)
	for _, key := range []crypto.Signer{keyA, keyA, keyB, keyB} {
		if _, err := SignDir(t.Context(), out, key); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{DetachedName, BundleName, ManifestName + "." + b.ShortID() + ".sigstore.json"}
	got := readTree(t, out)
	for _, name := range want {
		if !strings.HasPrefix(got[name], "-rw-r--r-- ") && runtime.GOOS != "windows" {
			t.Errorf("%s: %.20q", name, got[name])
		}
	}
	if n := strings.Count(strings.Join(slices.Sorted(maps.Keys(got)), "\n"), "sigstore"); n != 2 {
		t.Errorf("%d bundles for two signers", n)
	}
	for _, tt := range []struct {
		keys      []sign.PublicKey
		threshold int
		signers   int
		other     int
	}{
		{[]sign.PublicKey{a}, 0, 1, 1},
		{[]sign.PublicKey{b}, 0, 1, 1},
		{[]sign.PublicKey{a, b}, 2, 2, 0},
		{[]sign.PublicKey{a, b, c}, 2, 2, 0},
		{[]sign.PublicKey{c}, 0, 0, 0},
		{[]sign.PublicKey{a, c}, 2, 0, 0},
	} {
		v, err := Verify(t.Context(), DirFS(out), VerifyOptions{Trust: &sign.Trust{Keys: tt.keys, Threshold: tt.threshold}, Now: now})
		if tt.signers == 0 {
			wantNo(t, err, CodeSignature, BundleName)
			continue
		}
		if err != nil {
			t.Errorf("%d keys: %v", len(tt.keys), err)
		} else if len(v.Signers) != tt.signers || len(v.OtherSigners) != tt.other {
			t.Errorf("%d keys: signers %v, others %v", len(tt.keys), v.Signers, v.OtherSigners)
		}
	}
	// A bundle under the name of another key.
	old := filepath.Join(out, want[2])
	renamed := ManifestName + "." + c.ShortID() + ".sigstore.json"
	if err := os.Rename(old, filepath.Join(out, renamed)); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, VerifyOptions{Trust: sign.TrustKeys(a, b), Now: now}), CodeSignature, renamed)
	if err := os.Remove(filepath.Join(out, renamed)); err != nil {
		t.Fatal(err)
	}
	// What is not whole is not signed.
	if err := os.WriteFile(filepath.Join(out, "README.md"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := SignDir(t.Context(), out, keyB)
	wantNo(t, err, CodeFiles, "README.md")
	// Sign, Write is the same as Write, SignDir.
	r := seal(t, fullPlan())
	for _, key := range []crypto.Signer{keyA, keyB} {
		if _, err := r.Sign(key); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if again := readTree(t, out); !maps.Equal(again, got) {
		t.Error("signing in memory and on disk differ")
	}
	if err := os.WriteFile(filepath.Join(out, provenanceName), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, VerifyOptions{Trust: sign.TrustKeys(a), Now: now}), CodeSignature, provenanceName)
}

func TestState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.json")
	key, pub := newKey(t)
	opts := VerifyOptions{Trust: sign.TrustKeys(pub), Now: now, StateFile: state}
	try := func(org, version string, sequence int64) error {
		t.Helper()
		p := fullPlan()
		p.Manifest.Org, p.Manifest.Version, p.Manifest.Sequence = org, version, sequence
		r := seal(t, p)
		if _, err := r.Sign(key); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		if err := r.Write(t.Context(), out); err != nil {
			t.Fatal(err)
		}
		return verify(out, opts)
	}
	for _, step := range []struct {
		org, version string
		sequence     int64
		ok           bool
	}{
		{"acme", "0", 0, true},
		{"acme", "0", 0, true},
		{"acme", "0b", 0, false},
		{"acme", "3", 3, true},
		{"acme", "3", 3, true},
		{"acme", "3b", 3, false},
		{"acme", "2", 2, false},
		{"acme", "0", 0, false},
		{"other", "4", 4, false},
		{"acme", "5", 5, true},
		{"acme", "4", 4, false},
	} {
		before, _ := os.ReadFile(state)
		err := try(step.org, step.version, step.sequence)
		after, _ := os.ReadFile(state)
		if step.ok && err != nil {
			t.Errorf("%+v: %v", step, err)
		}
		if !step.ok {
			wantNo(t, err, CodeRollback, ManifestName)
			if !bytes.Equal(before, after) {
				t.Errorf("%+v: refused, and the state changed", step)
			}
		}
	}
	if s, err := LoadState(state); err != nil || s.Sequence != 5 || s.Org != "acme" || !IsDigest(s.Digest) {
		t.Errorf("state %+v, %v", s, err)
	}
	// A damaged state is no empty one.
	good, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{}", "[]", "null", string(good) + "x", strings.Replace(string(good), `"org"`, `"orb"`, 1), strings.Replace(string(good), "sha256:", "sha256:x", 1)} {
		if err := os.WriteFile(state, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		err := try("acme", "9", 9)
		var no *VerifyError
		if err == nil || errors.As(err, &no) {
			t.Errorf("state %q: %v", bad, err)
		}
		if data, _ := os.ReadFile(state); string(data) != bad {
			t.Errorf("state %q was replaced by %q", bad, data)
		}
	}
	// A release that does not verify must not move the state.
	if err := os.WriteFile(state, good, 0o644); err != nil {
		t.Fatal(err)
	}
	out, o := signed(t, func() *Plan { p := fullPlan(); p.Manifest.Sequence = 99; return p }())
	o.StateFile = state
	if err := os.Remove(filepath.Join(out, "README.md")); err != nil {
		t.Fatal(err)
	}
	wantNo(t, verify(out, o), CodeFiles, "README.md")
	if data, _ := os.ReadFile(state); !bytes.Equal(data, good) {
		t.Error("a bad release moved the state")
	}
	noLeftovers(t, state)
}

// The rules of State one by one, with what a release of sequence 7 meets.
func TestStateAccepts(t *testing.T) {
	digest := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	seven := &State{Org: "acme", Sequence: 7, Digest: digest("7"), Trust: 2}
	for _, tt := range []struct {
		name     string
		state    *State
		next     State
		previous string
		ok       bool
	}{
		{"nothing yet", nil, State{"acme", 0, digest("0"), 0}, "", true},
		{"again", seven, *seven, "", true},
		{"again with a newer trust file", seven, State{"acme", 7, digest("7"), 3}, "", true},
		{"again with an older trust file", seven, State{"acme", 7, digest("7"), 1}, "", false},
		{"next", seven, State{"acme", 8, digest("8"), 2}, "", true},
		{"next, names it", seven, State{"acme", 8, digest("8"), 2}, digest("7"), true},
		{"next, names another", seven, State{"acme", 8, digest("8"), 2}, digest("6"), false},
		{"later, names one in between", seven, State{"acme", 9, digest("9"), 2}, digest("8"), true},
		{"other organization", seven, State{"other", 8, digest("8"), 2}, "", false},
		{"older", seven, State{"acme", 6, digest("6"), 2}, "", false},
		{"same sequence", seven, State{"acme", 7, digest("8"), 2}, "", false},
		{"zero", seven, State{"acme", 0, digest("0"), 2}, "", false},
	} {
		err := tt.state.Accepts(tt.next, tt.previous)
		if tt.ok && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if !tt.ok {
			wantNo(t, err, CodeRollback, ManifestName)
		}
	}
}

func TestInspect(t *testing.T) {
	out, opts := signed(t, fullPlan())
	in, err := Inspect(DirFS(out))
	if err != nil {
		t.Fatal(err)
	}
	if in.Digest != seal(t, fullPlan()).Digest() || len(in.Targets) != 3 || len(in.Signatures) != 2 {
		t.Errorf("%+v", in)
	}
	if in.Signatures[0].Key != "" && in.Signatures[1].Key != opts.Trust.Keys[0].ID() {
		t.Errorf("signatures %+v", in.Signatures)
	}
	var text bytes.Buffer
	if err := in.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{in.Digest, "acme", "1.2.3", "ga+payments", opts.Trust.Keys[0].ShortID()} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if _, err := Inspect(DirFS(t.TempDir())); err == nil {
		t.Error("an empty directory was inspected")
	}
}

func TestDigestForm(t *testing.T) {
	for s, want := range map[string]bool{
		Digest(nil): true, "": false, "sha256:": false, hex.EncodeToString(make([]byte, 32)): false,
		strings.ToUpper(Digest(nil)): false, Digest(nil) + "0": false,
	} {
		if IsDigest(s) != want {
			t.Errorf("IsDigest(%q) is %v", s, !want)
		}
	}
}

func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.ID] || !strings.HasPrefix(c.ID, "HALO19") || c.Title == "" || c.Text == "" || c.Since == "" {
			t.Errorf("code %+v is repeated, out of range or not complete", c)
		}
		seen[c.ID] = true
	}
}
