package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"halos.dev/halo/artifacts/sign/keyless/keylesstest"
)

// TestKeyless verifies a release by the identity of a workflow, as the certificates, timestamps and log entries of a local Sigstore name it.
func TestKeyless(t *testing.T) {
	example, err := filepath.Abs(filepath.Join("..", "..", "examples", "minimal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	halo := func(args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		env := func(string) string { return "" }
		code := run(t.Context(), &program{args: append([]string{"halo"}, args...), out: &out, err: &out, getenv: env, lookupEnv: os.LookupEnv, now: time.Now})
		return code, out.String()
	}
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := halo("build", example, "--out", "r", "--as-of", "2026-01-02T03:04:05Z", "--quiet"); code != 0 {
		t.Fatalf("build: %d\n%s", code, out)
	}
	manifest, err := os.ReadFile(filepath.Join("r", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	const workflow, issuer = "https://github.com/acme/policy/.github/workflows/release.yml@refs/tags/v1", "https://token.actions.githubusercontent.com"
	w := keylesstest.New(time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC))
	by := keylesstest.Signing{Identity: workflow, Issuer: issuer}
	bundle := filepath.Join("r", "manifest.json.sigstore.json")
	write(bundle, w.Sign(manifest, by))
	by.Predicate = "https://slsa.dev/provenance/v1"
	// The attest actions of GitHub end the file with a line end.
	write(filepath.Join("r", "provenance.sigstore.json"), append(w.Sign(manifest, by), '\n'))
	write("root.json", w.TrustedRoot(keylesstest.Root{}))
	write("other.json", keylesstest.New(w.Now).TrustedRoot(keylesstest.Root{}))
	write("elsewhere.json", w.Sign([]byte("{}"), by))

	identity := []string{"--certificate-identity", workflow, "--certificate-oidc-issuer", issuer}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"signature", append(identity, "--trusted-root", "root.json"), 0, "signed by " + workflow + " of " + issuer + " at 2026-01-02T03:10:00Z"},
		{"provenance too", append(identity, "--trusted-root", "root.json", "--bundle", bundle, "--bundle", "r/provenance.sigstore.json"), 0, "attested (https://slsa.dev/provenance/v1) by " + workflow},
		{"one of two", append(identity, "--trusted-root", "root.json", "--bundle", bundle, "--bundle", "elsewhere.json"), 1, "elsewhere.json: the attestation is about another file"},
		{"another root", append(identity, "--trusted-root", "other.json"), 1, "manifest.json.sigstore.json: "},
		{"another identity", []string{"--certificate-identity", "me@acme.example", "--certificate-oidc-issuer", issuer, "--trusted-root", "root.json"}, 1, `not by "me@acme.example"`},
		{"another issuer", []string{"--certificate-identity", workflow, "--certificate-oidc-issuer", "https://accounts.google.com", "--trusted-root", "root.json"}, 1, `not to "https://accounts.google.com"`},
		{"json", append(identity, "--trusted-root", "root.json", "--output", "json"), 0, `"identity": "` + workflow + `"`},
		{"no root", identity, 2, "needs all of"},
		{"root is not there", append(identity, "--trusted-root", "none.json"), 2, "none.json"},
		{"root is something else", append(identity, "--trusted-root", bundle), 2, "not a trusted root"},
		{"bundle is not there", append(identity, "--trusted-root", "root.json", "--bundle", "none.json"), 2, "none.json"},
		{"and a key", append(identity, "--trusted-root", "root.json", "--key", "k.pub"), 2, "excludes --key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out := halo(append([]string{"release", "verify", "r"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit status %d, want %d\n%swant %q", code, tt.code, out, tt.want)
			}
		})
	}
	// Out of a registry, where a bundle of somebody else lies beside it.
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	at := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/acme/policy:v1"
	mine, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	write(bundle, w.Sign(manifest, keylesstest.Signing{Identity: "me@acme.example", Issuer: issuer}))
	for _, signed := range [][]byte{nil, mine} {
		if signed != nil {
			write(bundle, signed)
		}
		if code, out := halo("release", "push", "r", at); code != 0 {
			t.Fatalf("push: %d\n%s", code, out)
		}
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"pull", append(identity, "--trusted-root", "root.json", "--output", "json"), 0, `"identity": "` + workflow + `"`},
		{"pull by another identity", []string{"--certificate-identity", "you@acme.example", "--certificate-oidc-issuer", issuer, "--trusted-root", "root.json"}, 1, `not by "you@acme.example"`},
		{"pull with another root", append(identity, "--trusted-root", "other.json"), 1, "manifest.json.sigstore.json: "},
		{"pull with no root", identity, 2, "needs all of"},
		{"pull with a key too", append(identity, "--trusted-root", "root.json", "--key", "k.pub"), 2, "excludes --key"},
		{"pull with a bundle", append(identity, "--trusted-root", "root.json", "--bundle", bundle), 2, "bundle"},
		{"pull with nothing", nil, 2, "--key PUB or --trust FILE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "p")
			code, text := halo(append([]string{"release", "pull", at, "--out", out}, tt.args...)...)
			if code != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("exit status %d, want %d\n%swant %q", code, tt.code, text, tt.want)
			}
			if _, err := os.Stat(out); (err == nil) != (tt.code == 0) {
				t.Errorf("exit status %d, and %v", code, err)
			}
			if tt.code != 0 {
				return
			}
			// What was pulled verifies by itself.
			if code, text := halo(append([]string{"release", "verify", out, "--trusted-root", "root.json"}, identity...)...); code != 0 {
				t.Errorf("verify: %d\n%s", code, text)
			}
		})
	}
	// To a key a certificate is nobody.
	t.Setenv("HALO_KEY_PASSWORD", "")
	if code, out := halo("keygen", "--out", "k"); code != 0 {
		t.Fatal(out)
	}
	if code, out := halo("release", "verify", "r", "--key", "k.pub"); code != 1 || !strings.Contains(out, "signed with a certificate and not by") {
		t.Errorf("verify by key: %d\n%s", code, out)
	}
	// The signature is not all: every file counts.
	write(filepath.Join("r", "README.md"), []byte("x"))
	if code, out := halo(append([]string{"release", "verify", "r", "--trusted-root", "root.json"}, identity...)...); code != 1 || !strings.Contains(out, "README.md") {
		t.Errorf("changed file: %d\n%s", code, out)
	}
}
