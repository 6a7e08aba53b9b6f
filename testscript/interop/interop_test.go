// Package interop holds halo's signatures to the tools of others: what halo signs they verify, what they sign halo verifies, and one changed byte is refused by all.
package interop

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/artifacts/sign/keyless/keylesstest"
)

// lab is a directory with a key (k.key, k.pub; password "test"), a signed release and the tools that are installed.
type lab struct {
	dir, cache string
	alone      []string // puts a command where there is no network, when this process may
}

// verifier is a tool that checks a signature over the manifest in a release directory with k.pub.
type verifier struct {
	name string
	// command returns the command line, or says that the tool is not installed.
	command func(l *lab, release string) ([]string, error)
	// bundle says that the tool reads manifest.json.sigstore.json, not manifest.json.sig.
	bundle bool
}

var errMissing = errors.New("not installed; bash .ci/run interop installs it")

// tool finds a tool of the CI cache, else on PATH.
func (l *lab) tool(name string) (string, error) {
	if path := filepath.Join(l.cache, "bin", name); isFile(path) {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errMissing
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func cosign(name string, args ...string) func(*lab, string) ([]string, error) {
	return func(l *lab, release string) ([]string, error) {
		path, err := l.tool(name)
		if err != nil {
			return nil, err
		}
		manifest := filepath.Join(release, "manifest.json")
		line := append([]string{path, "verify-blob", "--key", filepath.Join(l.dir, "k.pub"), "--insecure-ignore-tlog", "--bundle", manifest + ".sigstore.json"}, args...)
		return append(line, manifest), nil
	}
}

// noServices is a trusted root without any log or authority; cosign 2 wants one for the new bundle form.
const noServices = `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`

func verifiers() []verifier {
	return []verifier{
		{"cosign 3", cosign("cosign"), true},
		{"cosign 2", cosign("cosign2", "--new-bundle-format", "--trusted-root", "no-services.json"), true},
		{"sigstore-js", func(l *lab, release string) ([]string, error) {
			node, err := l.tool("node")
			modules := filepath.Join(l.cache, "npm", "sigstore-js", "node_modules")
			if err == nil && !isFile(filepath.Join(modules, "@sigstore", "verify", "package.json")) {
				err = errMissing
			}
			if err != nil {
				return nil, err
			}
			script, err := filepath.Abs(filepath.Join("testdata", "verify.cjs"))
			if err != nil {
				return nil, err
			}
			manifest := filepath.Join(release, "manifest.json")
			return []string{node, script, modules, filepath.Join(l.dir, "k.pub"), manifest + ".sigstore.json", manifest}, nil
		}, true},
		{"openssl", func(l *lab, release string) ([]string, error) {
			openssl, err := l.tool("openssl")
			if err != nil {
				return nil, err
			}
			manifest := filepath.Join(release, "manifest.json")
			script := `base64 -d <"$3.sig" >"$3.sig.bin" && "$1" dgst -sha256 -verify "$2" -signature "$3.sig.bin" "$3"; r=$?; rm -f "$3.sig.bin"; exit $r`
			return []string{"sh", "-c", script, "sh", openssl, filepath.Join(l.dir, "k.pub"), manifest}, nil
		}, false},
	}
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Getenv("HALO_INTEROP") != "1" {
		t.Skip("SKIP: the tools of others are not run; set HALO_INTEROP=1, or run \"bash .ci/run interop\", which installs them first")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{dir: t.TempDir(), cache: cmp.Or(os.Getenv("HALO_CI_CACHE"), filepath.Join(home, ".cache", "halo-ci"))}
	if unshare, err := exec.LookPath("unshare"); err == nil && exec.Command(unshare, "--net", "true").Run() == nil {
		l.alone = []string{unshare, "--net"}
	} else {
		t.Log("this process may not drop the network: that nothing is looked up is not shown here")
	}
	if err := os.WriteFile(filepath.Join(l.dir, "no-services.json"), []byte(noServices), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(l.dir, "halo"), "../../cmd/halo").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	l.must(t, "./halo", "keygen", "--out", "k")
	return l
}

// run runs a command line in the lab, without a network.
func (l *lab) run(t *testing.T, line ...string) (string, error) {
	t.Helper()
	line = append(append([]string{}, l.alone...), line...)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), "HALO_KEY_PASSWORD=test", "COSIGN_PASSWORD=test", "HOME="+l.dir, "HALO_TRUST=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (l *lab) must(t *testing.T, line ...string) {
	t.Helper()
	if out, err := l.run(t, line...); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, out)
	}
}

// release builds a release of the minimal example into the lab.
func (l *lab) release(t *testing.T, name string, args ...string) string {
	t.Helper()
	example, err := filepath.Abs("../../examples/minimal")
	if err != nil {
		t.Fatal(err)
	}
	l.must(t, append([]string{"./halo", "build", example, "--out", name, "--as-of", "2026-01-02T03:04:05Z", "--quiet"}, args...)...)
	return filepath.Join(l.dir, name)
}

// flip changes one bit of a file and returns what puts it back.
func flip(t *testing.T, path string, at func(data []byte) int) (restore func()) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(data)
	i := at(data)
	// Bit 1 keeps a letter of base64 or JSON one of its kind, so that the signature is what refuses it and not the form.
	changed[i] ^= 2
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The places of a signature file that are changed: a byte of the signature, found by its field in a bundle.
func inSignature(data []byte) int {
	if i := bytes.Index(data, []byte(`"signature":"`)); i >= 0 {
		return i + len(`"signature":"`) + 40
	}
	return 40
}

func TestOthersVerify(t *testing.T) {
	l := newLab(t)
	release := l.release(t, "r", "--key", "k.key")
	ran := 0
	for _, v := range verifiers() {
		line, err := v.command(l, release)
		if err != nil {
			t.Logf("!!! SKIP %s: %v", v.name, err)
			continue
		}
		ran++
		t.Run(v.name, func(t *testing.T) {
			if out, err := l.run(t, line...); err != nil {
				t.Fatalf("%s does not verify what halo signed: %v\n%s", v.name, err, out)
			}
			signature := filepath.Join(release, "manifest.json.sig")
			if v.bundle {
				signature = filepath.Join(release, "manifest.json.sigstore.json")
			}
			for path, at := range map[string]func([]byte) int{
				filepath.Join(release, "manifest.json"): func(data []byte) int { return len(data) / 2 },
				signature:                               inSignature,
			} {
				restore := flip(t, path, at)
				if out, err := l.run(t, line...); err == nil {
					t.Errorf("%s takes a changed %s\n%s", v.name, filepath.Base(path), out)
				}
				if out, err := l.run(t, "./halo", "release", "verify", "r", "--key", "k.pub", "--as-of", "2026-01-03T00:00:00Z"); err == nil {
					t.Errorf("halo takes a changed %s\n%s", filepath.Base(path), out)
				}
				restore()
			}
		})
	}
	l.must(t, "sh", "-c", `cd "$1" && sha256sum --quiet -c SHA256SUMS`, "sh", release)
	if ran == 0 {
		t.Skip("SKIP: no tool is installed")
	}
}

// What cosign signs with halo's key, in the bundle form, is a signed release.
func TestHaloVerifiesCosign(t *testing.T) {
	l := newLab(t)
	for name, args := range map[string][]string{
		"cosign":  {"--use-signing-config=false", "--tlog-upload=false"},
		"cosign2": {"--new-bundle-format", "--tlog-upload=false"},
	} {
		path, err := l.tool(name)
		if err != nil {
			t.Logf("!!! SKIP %s: %v", name, err)
			continue
		}
		t.Run(name, func(t *testing.T) {
			release := l.release(t, name+"-release")
			bundle := filepath.Join(release, "manifest.json.sigstore.json")
			l.must(t, append(append([]string{path, "sign-blob", "--yes", "--key", "k.key", "--bundle", bundle}, args...), filepath.Join(release, "manifest.json"))...)
			verify := []string{"./halo", "release", "verify", release, "--key", "k.pub", "--as-of", "2026-01-03T00:00:00Z"}
			l.must(t, verify...)
			restore := flip(t, bundle, inSignature)
			if out, err := l.run(t, verify...); err == nil {
				t.Errorf("halo takes a changed signature of %s\n%s", name, out)
			}
			restore()
			flip(t, filepath.Join(release, "README.md"), func([]byte) int { return 0 })
			if out, err := l.run(t, verify...); err == nil {
				t.Errorf("halo takes a changed file\n%s", out)
			}
		})
	}
}

// The local Sigstore of the keyless tests is one that cosign believes too, and cosign refuses what halo refuses.
func TestCosignVerifiesKeyless(t *testing.T) {
	l := newLab(t)
	path, err := l.tool("cosign")
	if err != nil {
		t.Skipf("SKIP: cosign: %v", err)
	}
	release := l.release(t, "r")
	manifest := filepath.Join(release, "manifest.json")
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	const workflow, issuer = "https://github.com/acme/policy/.github/workflows/release.yml@refs/tags/v1", "https://token.actions.githubusercontent.com"
	w := keylesstest.New(time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC))
	put := func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(l.dir, name)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	root := put("root.json", w.TrustedRoot(keylesstest.Root{}))
	by := keylesstest.Signing{Identity: workflow, Issuer: issuer}
	without := func(change func(*keylesstest.Signing)) keylesstest.Signing {
		s := by
		change(&s)
		return s
	}
	const slsa = "https://slsa.dev/provenance/v1"
	for _, tt := range []struct {
		name     string
		s        keylesstest.Signing
		identity string
		ok       bool
	}{
		{"signature", by, workflow, true},
		{"time by the log", without(func(s *keylesstest.Signing) { s.NoTimestamp = true }), workflow, true},
		{"provenance", without(func(s *keylesstest.Signing) { s.Predicate = slsa }), workflow, true},
		{"other identity", by, "https://github.com/evil", false},
		{"no log entry", without(func(s *keylesstest.Signing) { s.NoLog = true }), workflow, false},
		{"no certificate log", without(func(s *keylesstest.Signing) { s.NoSCT = true }), workflow, false},
		{"no time", without(func(s *keylesstest.Signing) { s.NoTimestamp, s.NoPromise = true, true }), workflow, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bundle := put("bundle.json", w.Sign(data, tt.s))
			flags := []string{"--bundle", bundle, "--certificate-identity", tt.identity, "--certificate-oidc-issuer", issuer, "--trusted-root", root}
			command := []string{path, "verify-blob"}
			if tt.s.Predicate != "" {
				command = []string{path, "verify-blob-attestation", "--type", slsa}
			}
			for name, line := range map[string][]string{
				"cosign": append(append(command, flags...), manifest),
				"halo":   append([]string{"./halo", "release", "verify", release, "--as-of", "2026-01-03T00:00:00Z"}, flags...),
			} {
				if out, err := l.run(t, line...); (err == nil) != tt.ok {
					t.Errorf("%s: %v\n%s", name, err, out)
				}
			}
		})
	}
}
