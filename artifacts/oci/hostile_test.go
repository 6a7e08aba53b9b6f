package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote/auth"

	"halos.dev/halo/artifacts"
)

// A registry that was honest when the release was pushed and is not when it is fetched.
func TestHostileRegistry(t *testing.T) {
	is := func(r *http.Request, part string) bool { return strings.Contains(r.URL.Path, part) }
	change := func(body []byte) []byte { return bytes.Replace(body, []byte("acme"), []byte("evil"), 1) }
	flood := func(w http.ResponseWriter, sent *atomic.Int64) {
		chunk := bytes.Repeat([]byte(" "), 64<<10)
		for range 1 << 14 { // a gigabyte
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	var sent atomic.Int64
	var mode atomic.Value
	var parts struct{ manifest, layer, config string }
	mode.Store("")
	// handlers answer in the place of the registry, or return false.
	handlers := map[string]func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool{
		"manifest changed": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			return is(r, "/manifests/") && r.Method == http.MethodGet && rewrite(w, r, honest, change)
		},
		"manifest of another digest": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			if !is(r, "/manifests/") {
				return false
			}
			w.Header().Set("Docker-Content-Digest", artifacts.Digest([]byte("x")))
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", "1")
			w.Write([]byte("y"))
			return true
		},
		"huge manifest": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, "/manifests/") {
				return false
			}
			w.Header().Set("Docker-Content-Digest", parts.manifest)
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			w.Header().Set("Content-Length", "1099511627776")
			return true
		},
		"endless manifest": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			if !is(r, "/manifests/") || r.Method != http.MethodGet {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			flood(w, &sent)
			return true
		},
		"endless archive": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, parts.layer) {
				return false
			}
			flood(w, &sent)
			return true
		},
		"endless list of bundles": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			w.Write([]byte(`{"schemaVersion":2,"manifests":[`))
			flood(w, &sent)
			return true
		},
		"endless pages of bundles": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, sent.Add(1)))
			w.Write([]byte(`{"schemaVersion":2,"manifests":[]}`))
			return true
		},
		"too many bundles": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, "/referrers/") {
				return false
			}
			index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: make([]ocispec.Descriptor, maxReferrers+1)}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			json.NewEncoder(w).Encode(index)
			return true
		},
		"no bundles": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if !is(r, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			w.Write([]byte(`{"schemaVersion":2,"manifests":[]}`))
			return true
		},
		"endless headers": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.Header().Set("X-Filler", strings.Repeat("x", 1<<20))
			return true
		},
		"config changed": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			return is(r, parts.config) && rewrite(w, r, honest, change)
		},
		"archive changed": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			return is(r, parts.layer) && rewrite(w, r, honest, change)
		},
		"archive cut off": func(w http.ResponseWriter, r *http.Request, honest http.Handler) bool {
			return is(r, parts.layer) && r.Method == http.MethodGet && rewrite(w, r, honest, func(b []byte) []byte { return b[:len(b)/2] })
		},
		"archive missing": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if is(r, parts.layer) {
				w.WriteHeader(http.StatusNotFound)
			}
			return is(r, parts.layer)
		},
		"manifest elsewhere": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if is(r, "/manifests/") {
				http.Redirect(w, r, "https://evil.example/v2/acme/policy/manifests/v1", http.StatusTemporaryRedirect)
			}
			return is(r, "/manifests/")
		},
		"archive without TLS elsewhere": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if is(r, parts.layer) {
				http.Redirect(w, r, "http://evil.example/blob", http.StatusTemporaryRedirect)
			}
			return is(r, parts.layer)
		},
		"archive on a file": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if is(r, parts.layer) {
				w.Header().Set("Location", "file:///etc/passwd")
				w.WriteHeader(http.StatusTemporaryRedirect)
			}
			return is(r, parts.layer)
		},
		"archive in a circle": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if is(r, parts.layer) {
				http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
			}
			return is(r, parts.layer)
		},
		"not allowed": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
		"token elsewhere without TLS": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://evil.example/token",service="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		},
		"broken": func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "a\nb\x1b[2J")
			return true
		},
	}
	host := serve(t, true, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := handlers[mode.Load().(string)]; h == nil || !h(w, r, honest) {
				honest.ServeHTTP(w, r)
			}
		})
	})
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	r := newRelease(t, "1.0.0")
	pushed := push(t, r, ref)
	m := fetched(t, ref)
	parts.manifest, parts.layer, parts.config = pushed.Digest, m.Layers[0].Digest.String(), m.Config.Digest.String()

	for _, tt := range []struct {
		mode, want string
		no         bool
	}{
		{"manifest changed", "other bytes than the digest says", true},
		{"manifest of another digest", "", true},
		{"huge manifest", "a manifest of 1099511627776 bytes", true},
		{"endless manifest", "other bytes than the digest says", true},
		{"endless archive", "other bytes than the digest says", true},
		{"endless list of bundles", "list the bundles", false},
		{"endless pages of bundles", "exceeded 16 pages", false},
		{"too many bundles", "more than 256 manifests refer to it", true},
		{"no bundles", "not signed", true},
		{"endless headers", "server response headers exceeded", false},
		{"config changed", "other bytes than the digest says", true},
		{"archive changed", "other bytes than the digest says", true},
		{"archive cut off", "bytes came", false},
		{"archive missing", "not found", false},
		{"manifest elsewhere", "which only a download may be", true},
		{"archive without TLS elsewhere", "not protected by TLS", true},
		{"archive on a file", "not protected by TLS", true},
		{"archive in a circle", "more than 3 redirects", true},
		{"not allowed", "credential", false},
		{"token elsewhere without TLS", "not protected by TLS", true},
		{"broken", "500", false},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			sent.Store(0)
			mode.Store(tt.mode)
			defer mode.Store("")
			creds := func(context.Context, string) (auth.Credential, error) { return auth.EmptyCredential, nil }
			err := r.verify(t.Context(), t, ref, Options{Credentials: creds})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("error %v, not one line with %q", err, tt.want)
			}
			if _, no := errors.AsType[*artifacts.VerifyError](err); no != tt.no {
				t.Errorf("error %v is a no: %v", err, no)
			}
			if n := sent.Load(); n > 64<<20 {
				t.Errorf("%d bytes were taken", n)
			}
		})
	}
	if err := r.verify(t.Context(), t, ref, Options{}); err != nil {
		t.Errorf("and honest again: %v", err)
	}
}

// rewrite lets the registry answer and changes the body.
func rewrite(w http.ResponseWriter, r *http.Request, honest http.Handler, change func([]byte) []byte) bool {
	rec := httptest.NewRecorder()
	honest.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(change(rec.Body.Bytes()))
	return true
}

// What has the right digests and is still no release.
func TestNotARelease(t *testing.T) {
	host := serve(t, true, nil)
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	one, two := newRelease(t, "1.0.0"), newRelease(t, "2.0.0")
	push(t, one, ref)
	first := fetched(t, ref)
	push(t, two, ref)
	second := fetched(t, ref)
	for _, tt := range []struct {
		name, want string
		change     func(m *ocispec.Manifest)
	}{
		{"another type", "an artifact of type application/x", func(m *ocispec.Manifest) { m.ArtifactType = "application/x" }},
		{"no type", "thing without a type", func(m *ocispec.Manifest) { m.ArtifactType = "" }},
		{"control characters", `\x1b`, func(m *ocispec.Manifest) { m.ArtifactType = "a\x1b[2J\n" }},
		{"another config", "its config is a", func(m *ocispec.Manifest) { m.Config.MediaType = ocispec.MediaTypeImageConfig }},
		{"no layer", "0 layers", func(m *ocispec.Manifest) { m.Layers = nil }},
		{"two layers", "2 layers", func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }},
		{"compressed", "not one of type", func(m *ocispec.Manifest) { m.Layers[0].MediaType = ocispec.MediaTypeImageLayerGzip }},
		{"huge layer", "larger than a release may be", func(m *ocispec.Manifest) { m.Layers[0].Size = 1 << 50 }},
		{"negative size", "larger than a release may be", func(m *ocispec.Manifest) { m.Config.Size = -1 }},
		{"archive of another release", "holds another release", func(m *ocispec.Manifest) { m.Layers = first.Layers }},
		{"manifest of another release", "holds another release", func(m *ocispec.Manifest) { m.Config = first.Config }},
		{"manifest as archive", "not a tar header", func(m *ocispec.Manifest) {
			m.Layers[0].Digest, m.Layers[0].Size = m.Config.Digest, m.Config.Size
		}},
		{"layer that is cut", "", func(m *ocispec.Manifest) { m.Layers[0].Size-- }},
		{"layer that is longer", "", func(m *ocispec.Manifest) { m.Layers[0].Size++ }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := *second
			m.Layers = append([]ocispec.Descriptor{}, second.Layers...)
			tt.change(&m)
			data, d, err := encode(m)
			if err != nil {
				t.Fatal(err)
			}
			repo := Options{}.repository(ref)
			if err := repo.Manifests().Push(t.Context(), d, bytes.NewReader(data)); err != nil {
				t.Skip(err) // the registry knows better
			}
			err = two.verify(t.Context(), t, ref.WithDigest(d.Digest.String()), Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("error %v, not one line with %q", err, tt.want)
			}
		})
	}
	if err := one.verify(t.Context(), t, reference(t, "oci://"+host+"/acme/policy:none"), Options{}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("no such tag: %v", err)
	}
}

// Manifests that others attach to a release are no business of its verification, unless they take the name of a signature of ours.
func TestBundlesOfOthers(t *testing.T) {
	host := serve(t, true, nil)
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	r := newRelease(t, "1.0.0")
	pushed := push(t, r, ref)
	repo := Options{}.repository(ref)
	attach := func(name, kind string, bundle []byte) {
		t.Helper()
		b := bundleManifest(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digestOf(pushed), Size: sizeOf(t, ref)}, name, signature{bundle: bundle}, now)
		b.ArtifactType = kind
		data, d, err := encode(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, blob := range [][]byte{bundle, []byte("{}")} {
			if err := repo.Blobs().Push(t.Context(), content.NewDescriptorFromBytes("", blob), bytes.NewReader(blob)); err != nil {
				t.Fatal(err)
			}
		}
		if err := repo.Manifests().Push(t.Context(), d, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	attach("", BundleType, []byte("an attestation"))
	attach("../../etc/passwd", BundleType, []byte("a path"))
	attach(artifacts.ManifestName, BundleType, []byte("{}"))
	attach(artifacts.DetachedName, BundleType, []byte("x"))
	attach(artifacts.BundleName, "application/spdx+json", []byte("an SBOM"))
	if err := r.verify(t.Context(), t, ref, Options{}); err != nil {
		t.Errorf("%v", err)
	}
	attach("manifest.json.0123456789abcdef.sigstore.json", BundleType, []byte("not a bundle"))
	err := r.verify(t.Context(), t, ref, Options{})
	if no, ok := errors.AsType[*artifacts.VerifyError](err); !ok || no.Code != artifacts.CodeSignature {
		t.Errorf("a damaged signature: %v", err)
	}
}

// A push that is interrupted at any request moves no tag, and the next one finishes it without sending anything twice.
func TestInterruptedPush(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		var left atomic.Int64
		left.Store(1 << 40)
		host := serve(t, referrers, func(honest http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if left.Add(-1) < 0 {
					panic(http.ErrAbortHandler)
				}
				honest.ServeHTTP(w, r)
			})
		})
		ref := reference(t, "oci://"+host+"/acme/policy:v1")
		old, next := newRelease(t, "1.0.0"), newRelease(t, "2.0.0")
		push(t, old, ref)
		done := false
		for n := int64(0); !done && n < 100; n++ {
			left.Store(n)
			_, err := Push(t.Context(), artifacts.DirFS(next.dir), ref, nil, Options{})
			left.Store(1 << 40)
			if done = err == nil; done {
				break
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			if err := old.verify(t.Context(), t, ref, Options{}); err != nil {
				if next.verify(t.Context(), t, ref, Options{}) != nil {
					t.Fatalf("after %d requests the tag names neither release: %v", n, err)
				}
			}
		}
		if !done {
			t.Fatal("never finished")
		}
		if err := next.verify(t.Context(), t, ref, Options{}); err != nil {
			t.Error(err)
		}
	}
}

// When the connection breaks, a download goes on where it stopped if the registry can do that.
func TestResumedDownload(t *testing.T) {
	var cuts atomic.Int64
	host := serve(t, true, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
				honest.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			whole := r.Clone(r.Context())
			whole.Header.Del("Range")
			honest.ServeHTTP(rec, whole)
			body := rec.Body.Bytes()
			if len(body) < 100_000 || cuts.Add(1) > 9 {
				w.Header().Set("Accept-Ranges", "bytes")
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
				return
			}
			// At most 70,000 bytes a connection.
			w.Header().Set("Accept-Ranges", "bytes")
			short := &shortWriter{w, 70_000}
			http.ServeContent(short, r, "", time.Time{}, bytes.NewReader(body))
		})
	})
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	r := newRelease(t, "1.0.0")
	push(t, r, ref)
	if err := r.verify(t.Context(), t, ref, Options{}); err != nil {
		t.Error(err)
	}
	if cuts.Load() < 4 {
		t.Errorf("only %d connections", cuts.Load())
	}
}

type shortWriter struct {
	http.ResponseWriter
	left int
}

func (s *shortWriter) Write(p []byte) (int, error) {
	if len(p) <= s.left {
		s.left -= len(p)
		return s.ResponseWriter.Write(p)
	}
	s.ResponseWriter.Write(p[:s.left])
	panic(http.ErrAbortHandler)
}

func TestTimeout(t *testing.T) {
	stop := make(chan struct{})
	host := serve(t, true, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		})
	})
	defer close(stop)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := Fetch(ctx, reference(t, "oci://"+host+"/acme/policy:v1"), t.TempDir(), Options{})
	if err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("%v", err)
	}
}

// Credentials go to the registry and to nobody else, and plain HTTP only where it was allowed.
func TestCredentials(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("another host gets %s", r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer other.Close()
	var away atomic.Bool
	host := serve(t, true, func(honest http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "ci" || password != "secret" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if away.Load() && strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			honest.ServeHTTP(w, r)
		})
	})
	ref := reference(t, "oci://"+host+"/acme/policy:v1")
	r := newRelease(t, "1.0.0")
	with := func(password string) Options {
		return Options{Credentials: func(_ context.Context, asked string) (auth.Credential, error) {
			if asked != host {
				t.Errorf("credentials for %s are asked", asked)
			}
			return auth.Credential{Username: "ci", Password: password}, nil
		}}
	}
	for _, opts := range []Options{{}, with("wrong")} {
		if _, err := Push(t.Context(), artifacts.DirFS(r.dir), ref, nil, opts); err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := Push(t.Context(), artifacts.DirFS(r.dir), ref, nil, with("secret")); err != nil {
		t.Fatal(err)
	}
	if err := r.verify(t.Context(), t, ref, with("secret")); err != nil {
		t.Error(err)
	}
	away.Store(true)
	if err := r.verify(t.Context(), t, ref, with("secret")); err == nil {
		t.Error("fetched from nowhere")
	}

	for _, tt := range []struct {
		host string
		opts Options
		http bool
	}{{"127.0.0.1:1", Options{}, true}, {"registry.example", Options{}, false}, {"registry.example", Options{PlainHTTP: true}, true}} {
		if repo := tt.opts.repository(reference(t, "oci://"+tt.host+"/policy:v1")); repo.PlainHTTP != tt.http {
			t.Errorf("%s %+v: plain HTTP %v", tt.host, tt.opts, repo.PlainHTTP)
		}
	}
}
