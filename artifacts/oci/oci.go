// Package oci moves releases to and from OCI registries.
//
// A release is one artifact manifest: its config blob is manifest.json, so that the digest of the config is the release digest, and its only layer is
// the unsigned archive of the release (see artifacts.Archive). Nothing in it depends on who pushes, when or where, so the same release has the same
// manifest digest everywhere. Each Sigstore bundle is a manifest of its own that refers to it (OCI distribution 1.1, referrers).
package oci

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler/diag"
)

// The media types of a release in a registry.
const (
	// ArtifactType is that of the manifest of a release.
	ArtifactType = "application/vnd.halos.release.v1+tar"
	// ConfigType is that of the config blob, which is manifest.json.
	ConfigType = "application/vnd.halos.release.manifest.v1+json"
	// LayerType is that of the layer, the unsigned archive.
	LayerType = "application/vnd.halos.release.layer.v1.tar"
	// BundleType is that of a Sigstore bundle v0.3 and of a manifest that refers to a release with one (Sigstore bundle specification; cosign 3.1.3
	// writes and reads the same).
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// The annotations of the manifest of a bundle that are ours.
const (
	// bundleContent says what the bundle holds, as cosign 3.1.3 writes it.
	bundleContent = "dev.sigstore.bundle.content"
	// detachedNote carries manifest.json.sig beside the bundle that has the same signature.
	detachedNote = "dev.halos.release.detached"
)

// Limits of what a registry may send before anything of it is trusted.
const (
	maxManifest  = 256 << 10
	maxReferrers = 256
	maxPages     = 16
	maxDetached  = 1 << 10
)

// Scheme is what the address of a release in a registry begins with.
const Scheme = "oci://"

// CodeRegistry says that a registry does not give what it names.
var CodeRegistry = &diag.Code{
	ID: "HALO1931", Severity: diag.Error, Since: "0.1.0",
	Title: "not a release in the registry",
	Text: "What the registry has under this name is not a release that halo pushed, or it sends other bytes than the digest says, more than the limits allow, or a detour through " +
		"another server. Nothing is written.",
	Before: "halo release pull oci://registry.example/library/alpine:3 --out release --key org.pub", After: "halo release pull oci://registry.example/acme/policy:v7 --out release --key org.pub",
}

// Codes returns the codes of this package.
func Codes() []*diag.Code { return []*diag.Code{CodeRegistry} }

// Reference is the address of a release: oci://HOST/REPOSITORY with :TAG or @DIGEST.
type Reference struct {
	ref registry.Reference
}

// ParseReference reads an address.
func ParseReference(s string) (Reference, error) {
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return Reference{}, fmt.Errorf("%q does not begin with %s", s, Scheme)
	}
	ref, err := registry.ParseReference(rest)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is not of the form oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST: %w", s, plain(err))
	}
	if ref.Reference == "" {
		return Reference{}, fmt.Errorf("%q has neither a tag nor a digest: name one, as in %s:v1", s, s)
	}
	if strings.Contains(ref.Reference, ":") && !artifacts.IsDigest(ref.Reference) {
		return Reference{}, fmt.Errorf("%q: a digest is sha256: and 64 lower-case hex digits", s)
	}
	return Reference{ref}, nil
}

// plain makes an error of the client one line that does not repeat what is said before it.
func plain(err error) error {
	text := err.Error()
	return errors.New(strings.ReplaceAll(strings.TrimPrefix(text, "invalid reference: "), "\n", "; "))
}

// String returns the address as it was written.
func (r Reference) String() string { return Scheme + r.ref.String() }

// Tag returns the tag, or "" for a reference by digest.
func (r Reference) Tag() string {
	if artifacts.IsDigest(r.ref.Reference) {
		return ""
	}
	return r.ref.Reference
}

// WithDigest returns the address of the manifest with this digest in the same repository.
func (r Reference) WithDigest(d string) Reference {
	r.ref.Reference = d
	return r
}

// Options say how to talk to a registry.
type Options struct {
	// PlainHTTP allows HTTP without TLS to a host that is not this machine. For loopback addresses it is always used.
	PlainHTTP bool
	// Credentials returns the credentials for a host; nil means none.
	Credentials auth.CredentialFunc
	// Retries is how often a request that met a busy registry or a lost connection is tried again.
	Retries int
	// Agent is the User-Agent header.
	Agent string
	// Prefer says whether a bundle verifies over the manifest. It chooses among several bundles of one name, which a registry keeps when a release was
	// signed again; nil takes the first.
	Prefer func(bundle, manifest []byte) bool
}

// repository returns the client for the repository of ref.
func (o Options) repository(ref Reference) *remote.Repository {
	host := ref.ref.Host()
	useHTTP := o.PlainHTTP || isLoopback(host)
	client := &auth.Client{
		Client:     httpClient(host, useHTTP, o.Retries),
		Cache:      auth.NewCache(),
		Credential: o.Credentials,
		Header:     http.Header{"User-Agent": {o.Agent}},
	}
	return &remote.Repository{
		Client:               client,
		Reference:            ref.ref,
		PlainHTTP:            useHTTP,
		MaxMetadataBytes:     4 << 20,
		ReferrerListMaxPages: maxPages,
		// What an older push left under the fallback tag of the referrers is not ours to delete.
		SkipReferrersGC: true,
	}
}

// refuse makes the answer no about what a registry has.
func refuse(ref Reference, format string, args ...any) error {
	return &artifacts.VerifyError{Code: CodeRegistry, Problems: []artifacts.Problem{{Path: ref.String(), Message: fmt.Sprintf(format, args...)}}}
}

// failed adds to an error what was tried, and turns one about wrong bytes into a no.
func failed(ref Reference, what string, err error) error {
	if _, ok := errors.AsType[*artifacts.VerifyError](err); ok {
		return err
	}
	if d, ok := errors.AsType[*detourError](err); ok {
		return refuse(ref, "%s: %s", what, d.reason)
	}
	if errors.Is(err, content.ErrMismatchedDigest) || errors.Is(err, content.ErrTrailingData) || errors.Is(err, content.ErrInvalidDescriptorSize) {
		return refuse(ref, "%s: the registry sends other bytes than the digest says", what)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %s: no answer in time", ref, what)
	}
	return fmt.Errorf("%s: %s: %w", ref, what, plain(err))
}

// manifestOf returns the manifest of a release in a registry.
func manifestOf(m *artifacts.Manifest, manifest []byte, archive *artifacts.ArchiveInfo) ocispec.Manifest {
	return ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: ArtifactType,
		Config:       ocispec.Descriptor{MediaType: ConfigType, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))},
		Layers: []ocispec.Descriptor{{
			MediaType: LayerType, Digest: digest.NewDigestFromEncoded(digest.SHA256, archive.SHA256), Size: archive.Size,
			Annotations: map[string]string{ocispec.AnnotationTitle: "release.tar"},
		}},
		Annotations: map[string]string{
			ocispec.AnnotationCreated: m.Issued.Format(time.RFC3339),
			ocispec.AnnotationVersion: m.Version,
			ocispec.AnnotationVendor:  m.Org,
		},
	}
}

// bundleManifest returns the manifest that refers to the release subject with one bundle.
func bundleManifest(subject ocispec.Descriptor, name string, s signature, created time.Time) ocispec.Manifest {
	notes := map[string]string{ocispec.AnnotationCreated: created.Format(time.RFC3339), bundleContent: "message-signature"}
	if s.envelope {
		notes[bundleContent] = "dsse-envelope"
	}
	if s.detached != nil {
		notes[detachedNote] = string(s.detached)
	}
	empty := ocispec.DescriptorEmptyJSON
	empty.Data = nil
	return ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: BundleType,
		Config:       empty,
		Layers: []ocispec.Descriptor{{
			MediaType: BundleType, Digest: digest.FromBytes(s.bundle), Size: int64(len(s.bundle)),
			Annotations: map[string]string{ocispec.AnnotationTitle: name},
		}},
		Subject:     &subject,
		Annotations: notes,
	}
}

// encode returns a manifest as bytes, which are always the same, and what names them.
func encode(m ocispec.Manifest) ([]byte, ocispec.Descriptor, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, ocispec.Descriptor{}, err
	}
	return data, content.NewDescriptorFromBytes(m.MediaType, data), nil
}
