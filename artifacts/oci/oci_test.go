package oci

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

var now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// release is a signed release on disk and what verifies it.
type release struct {
	dir   string
	key   *ecdsa.PrivateKey
	trust *sign.Trust
}

func newRelease(t testing.TB, version string) release {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return writeRelease(t, version, key)
}

func writeRelease(t testing.TB, version string, key *ecdsa.PrivateKey) release {
	t.Helper()
	pub, err := sign.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	p := &artifacts.Plan{Manifest: artifacts.Manifest{Org: "acme", Version: version, Issued: now, AsOf: now, Tool: artifacts.Tool{Name: "halo", Version: "0.1.0"}, Source: artifacts.Source{Digest: artifacts.Digest(nil)}}}
	p.Add("README.md", []byte("# "+version+"\n"))
	big := make([]byte, 300_000)
	rand.Read(big)
	p.Add("targets/ga/linux/codex/root/etc/big", big)
	sealed, err := p.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.Sign(key); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "r")
	if err := sealed.Write(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return release{dir, key, sign.TrustKeys(pub)}
}

// verify fetches a release and verifies it.
func (r release) verify(ctx context.Context, t testing.TB, ref Reference, opts Options) error {
	t.Helper()
	dir := t.TempDir()
	rel, err := Fetch(ctx, ref, dir, opts)
	if err == nil {
		_, err = artifacts.Verify(ctx, rel, artifacts.VerifyOptions{Trust: r.trust, Now: now})
		if closeErr := rel.Close(); closeErr != nil {
			t.Error(closeErr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return err
}

// serve starts a registry behind wrap, which may be nil, and returns its host.
func serve(t testing.TB, referrers bool, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func reference(t testing.TB, s string) Reference {
	t.Helper()
	ref, err := ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func push(t testing.TB, r release, ref Reference, tags ...string) *Pushed {
	t.Helper()
	pushed, err := Push(t.Context(), artifacts.DirFS(r.dir), ref, tags, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

// files reads a release whole.
func files(t testing.TB, fsys fs.FS) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is pushed is pulled, with and without the referrers API, by tag and by digest, the same digest in every registry and from every form of the release.
func TestPushAndFetch(t *testing.T) {
	r := newRelease(t, "1.0.0")
	digests := map[string]bool{}
	for _, referrers := range []bool{true, false} {
		host := serve(t, referrers, nil)
		ref := reference(t, "oci://"+host+"/acme/policy:v1")
		pushed := push(t, r, ref, "ring3-ga", "v1")
		digests[pushed.Digest] = true
		if len(pushed.Tags) != 2 || pushed.Bundles != 1 || pushed.Sent < 300_000 {
			t.Errorf("%+v", pushed)
		}
		for _, from := range []Reference{ref, pushed.Reference, reference(t, "oci://"+host+"/acme/policy:ring3-ga")} {
			if err := r.verify(t.Context(), t, from, Options{}); err != nil {
				t.Errorf("%s: %v", from, err)
			}
		}
		rel, err := Fetch(t.Context(), ref, t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := files(t, rel), files(t, artifacts.DirFS(r.dir))
		if len(got) != len(want) {
			t.Errorf("%d files, not %d", len(got), len(want))
		}
		for path := range want {
			if got[path] != want[path] {
				t.Errorf("%s differs", path)
			}
		}
		// From registry to registry, nothing changes and nothing is sent twice.
		again, err := Push(t.Context(), rel, ref, nil, Options{})
		if err != nil || again.Digest != pushed.Digest || again.Sent != 0 || again.Tags[0].Before != "" {
			t.Errorf("%+v, %v", again, err)
		}
		if err := rel.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(digests) != 1 {
		t.Errorf("two digests of one release: %v", digests)
	}
}

func TestTagsMove(t *testing.T) {
	host := serve(t, true, nil)
	ref := reference(t, "oci://"+host+"/acme/policy:ga")
	one, two := newRelease(t, "1.0.0"), newRelease(t, "2.0.0")
	first := push(t, one, ref)
	second := push(t, two, ref)
	if second.Tags[0].Before != first.Digest || first.Digest == second.Digest {
		t.Errorf("%+v after %+v", second, first)
	}
	if err := two.verify(t.Context(), t, ref, Options{}); err != nil {
		t.Error(err)
	}
	if err := one.verify(t.Context(), t, first.Reference, Options{}); err != nil {
		t.Error(err)
	}
}

// A release that is signed again has two bundles of one name in the registry. The one that verifies counts, whichever comes first.
func TestSignedAgain(t *testing.T) {
	host := serve(t, true, nil)
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	r := newRelease(t, "1.0.0")
	first := push(t, r, ref)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{artifacts.BundleName, artifacts.DetachedName} {
		if err := removeFile(filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := artifacts.SignDir(t.Context(), r.dir, other); err != nil {
		t.Fatal(err)
	}
	second := push(t, r, ref)
	if first.Digest != second.Digest {
		t.Error("a signature changes the digest of the release")
	}
	otherPub, err := sign.NewPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, trust := range []*sign.Trust{r.trust, sign.TrustKeys(otherPub)} {
		r.trust = trust
		opts := Options{Prefer: func(bundle, manifest []byte) bool {
			b, err := sign.ParseBundle(bundle)
			if err != nil {
				return false
			}
			_, err = b.Verify(trust.Keys, manifest)
			return err == nil
		}}
		if err := r.verify(t.Context(), t, ref, opts); err != nil {
			t.Error(err)
		}
	}
}

func TestPushRefuses(t *testing.T) {
	host := serve(t, true, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	})
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	for _, tt := range []struct {
		name, want string
		change     func(r release) error
		ref        Reference
		tags       []string
	}{
		{name: "unsigned", want: "only a signed release", change: func(r release) error { return removeFile(filepath.Join(r.dir, artifacts.BundleName)) }},
		{name: "damaged", want: "README.md: ", change: func(r release) error { return replaceFile(filepath.Join(r.dir, "README.md"), "# 9.0.0\n") }},
		{name: "no bundle", want: "not a Sigstore bundle", change: func(r release) error { return replaceFile(filepath.Join(r.dir, artifacts.BundleName), "{}") }},
		{name: "bundle of another release", want: "over other bytes", change: func(r release) error {
			data, err := readFile(filepath.Join(newRelease(t, "3").dir, artifacts.BundleName))
			if err != nil {
				return err
			}
			return replaceFile(filepath.Join(r.dir, artifacts.BundleName), data)
		}},
		{name: "huge signature", want: "larger than", change: func(r release) error {
			return replaceFile(filepath.Join(r.dir, artifacts.DetachedName), strings.Repeat("A", 4096))
		}},
		{name: "no release", want: "manifest.json", change: func(r release) error { return removeFile(filepath.Join(r.dir, artifacts.ManifestName)) }},
		{name: "to a digest", want: "push to a tag", ref: ref.WithDigest(artifacts.Digest(nil))},
		{name: "no tag", want: "is not a tag", tags: []string{"a/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRelease(t, "1")
			if tt.change != nil {
				if err := tt.change(r); err != nil {
					t.Fatal(err)
				}
			}
			to := ref
			if tt.ref != (Reference{}) {
				to = tt.ref
			}
			_, err := Push(t.Context(), artifacts.DirFS(r.dir), to, tt.tags, Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, not one line with %q", err, tt.want)
			}
		})
	}
}

func TestParseReference(t *testing.T) {
	for s, want := range map[string]string{
		"oci://registry.example/acme/policy:v1":                            "",
		"oci://127.0.0.1:5000/policy:ring3-ga":                             "",
		"oci://[::1]:5000/policy:v1":                                       "",
		"oci://registry.example/policy@sha256:" + strings.Repeat("a", 64):  "",
		"registry.example/acme/policy:v1":                                  "does not begin with oci://",
		"oci://registry.example/acme/policy":                               "neither a tag nor a digest",
		"oci://registry.example":                                           "is not of the form",
		"oci:///policy:v1":                                                 "is not of the form",
		"oci://registry.example/UPPER:v1":                                  "is not of the form",
		"oci://registry.example/policy:v 1":                                "is not of the form",
		"oci://user@registry.example/policy:v1":                            "is not of the form",
		"oci://registry.example/../policy:v1":                              "is not of the form",
		"oci://registry.example/policy@sha256:abc":                         "is not of the form",
		"oci://registry.example/policy@sha512:" + strings.Repeat("a", 128): "a digest is sha256:",
		"oci://registry.example/policy:v1\n":                               "is not of the form",
		"oci://registry.example/policy:" + strings.Repeat("v", 129):        "is not of the form",
		"oci://registry.example:http/policy:v1":                            "is not of the form",
		"oci://registry.example/policy?x=1:v1":                             "is not of the form",
		"oci://registry.example/policy@sha256:" + strings.Repeat("A", 64):  "",
	} {
		ref, err := ParseReference(s)
		switch {
		case strings.Contains(s, "AAAA"):
			if err == nil {
				t.Errorf("%q: accepted", s)
			}
		case want == "" && (err != nil || ref.String() != s):
			t.Errorf("%q: %v, %v", s, ref, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: error %v, not one line with %q", s, err, want)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1": true, "127.9.9.9:1": true, "[::1]:5000": true, "::1": true,
		"localhost.example": false, "127.0.0.1.example": false, "10.0.0.1:5000": false, "registry.example": false, "0.0.0.0": false, "": false, "[::2]:1": false,
	} {
		if isLoopback(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, c := range Codes() {
		if !strings.HasPrefix(c.ID, "HALO193") || c.Title == "" || c.Text == "" || c.Since == "" || bytes.ContainsAny([]byte(c.Text), "\n") {
			t.Errorf("%+v", c)
		}
	}
}
