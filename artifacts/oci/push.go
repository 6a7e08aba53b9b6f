package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// Pushed says what a push left in a registry.
type Pushed struct {
	// Reference is the address by digest, which does not change.
	Reference Reference
	// Release is the release digest, Digest that of the manifest in the registry.
	Release, Digest string
	// Tags are the tags that now name it, in the order given.
	Tags []Moved
	// Bundles is how many Sigstore bundles refer to it.
	Bundles int
	// Sent is how many bytes of blobs were sent; what the registry has already is not sent again.
	Sent int64
}

// Moved is a tag and the digest that it named before, or "".
type Moved struct {
	Tag    string `json:"tag"`
	Before string `json:"before,omitempty"`
}

// Push puts the release in fsys into the registry: blobs first, then the manifest, then the bundles, and the tags last, so that a push that stops halfway
// leaves every tag as it was and the next one goes on where it stopped. The release must be whole and signed; a *artifacts.VerifyError says what is wrong
// with it. ref names a tag; tags are further ones.
func Push(ctx context.Context, fsys fs.FS, ref Reference, tags []string, opts Options) (*Pushed, error) {
	if ref.Tag() == "" {
		return nil, fmt.Errorf("%s: push to a tag; the digest follows from the release", ref)
	}
	all := []string{ref.Tag()}
	for _, tag := range tags {
		if err := (registry.Reference{Registry: ref.ref.Registry, Repository: ref.ref.Repository, Reference: tag}).ValidateReferenceAsTag(); err != nil {
			return nil, fmt.Errorf("%q is not a tag: letters, digits and _ . - only, at most 128", tag)
		}
		if !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	m, manifest, err := artifacts.ManifestOf(fsys)
	if err != nil {
		return nil, err
	}
	bundles, err := signatures(fsys, manifest)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "halo-push-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "release.tar")
	info, err := artifacts.WriteArchiveFile(ctx, fsys, archive, artifacts.ArchiveOptions{Unsigned: true})
	if err != nil {
		return nil, err
	}
	if info.Digest != artifacts.Digest(manifest) {
		return nil, errors.New("the release changed while it was read")
	}
	release := manifestOf(m, manifest, info)
	data, desc, err := encode(release)
	if err != nil {
		return nil, err
	}

	p := &pusher{ref: ref, repo: opts.repository(ref)}
	out := &Pushed{Reference: ref.WithDigest(desc.Digest.String()), Release: info.Digest, Digest: desc.Digest.String(), Bundles: len(bundles)}
	if err := p.blob(ctx, release.Layers[0], func() (io.ReadCloser, error) { return os.Open(archive) }); err != nil {
		return nil, err
	}
	if err := p.blob(ctx, release.Config, of(manifest)); err != nil {
		return nil, err
	}
	if err := p.blob(ctx, ocispec.DescriptorEmptyJSON, of(ocispec.DescriptorEmptyJSON.Data)); err != nil {
		return nil, err
	}
	if err := p.manifest(ctx, desc, data); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		b := bundleManifest(desc, name, bundles[name], m.Issued)
		data, d, err := encode(b)
		if err != nil {
			return nil, err
		}
		if err := p.blob(ctx, b.Layers[0], of(bundles[name].bundle)); err != nil {
			return nil, err
		}
		if err := p.manifest(ctx, d, data); err != nil {
			return nil, err
		}
	}
	for _, tag := range all {
		moved := Moved{Tag: tag}
		before, err := p.repo.Resolve(ctx, tag)
		switch {
		case err == nil && before.Digest != desc.Digest:
			moved.Before = before.Digest.String()
		case err != nil && !errors.Is(err, errdef.ErrNotFound):
			return nil, failed(ref, "look up tag "+tag, err)
		}
		if err := p.repo.Tag(ctx, desc, tag); err != nil {
			return nil, failed(ref, "tag "+tag, err)
		}
		out.Tags = append(out.Tags, moved)
	}
	out.Sent = p.sent
	return out, nil
}

// signature is one bundle file.
type signature struct {
	bundle   []byte
	envelope bool
	// detached is manifest.json.sig, beside manifest.json.sigstore.json.
	detached []byte
}

// signatures returns the bundles of a release by name. What is over other bytes is refused here, where it can be mended.
func signatures(fsys fs.FS, manifest []byte) (map[string]signature, error) {
	files, err := artifacts.SignatureFiles(fsys)
	if err != nil {
		return nil, err
	}
	if files[artifacts.BundleName] == nil {
		return nil, &artifacts.VerifyError{Code: artifacts.CodeUnsigned, Problems: []artifacts.Problem{{Path: artifacts.BundleName, Message: "missing: only a signed release is pushed, since nobody could pull another"}}}
	}
	if len(files[artifacts.DetachedName]) > maxDetached {
		return nil, signatureError(artifacts.DetachedName, "larger than %d bytes", maxDetached)
	}
	bundles := map[string]signature{}
	sum := sha256.Sum256(manifest)
	for name, data := range files {
		if name == artifacts.DetachedName {
			continue
		}
		b, err := sign.ParseBundle(data)
		if err != nil {
			return nil, signatureError(name, "not a Sigstore bundle v0.3: %v", err)
		}
		if !b.Envelope && !bytes.Equal(b.Digest, sum[:]) {
			return nil, signatureError(name, "is over other bytes than %s; sign the release again", artifacts.ManifestName)
		}
		s := signature{bundle: data, envelope: b.Envelope}
		if name == artifacts.BundleName {
			s.detached = files[artifacts.DetachedName]
		}
		bundles[name] = s
	}
	return bundles, nil
}

func signatureError(name, format string, args ...any) error {
	return &artifacts.VerifyError{Code: artifacts.CodeSignature, Problems: []artifacts.Problem{{Path: name, Message: fmt.Sprintf(format, args...)}}}
}

// pusher sends manifests, and blobs that a registry does not have yet.
type pusher struct {
	ref  Reference
	repo *remote.Repository
	sent int64
}

func (p *pusher) manifest(ctx context.Context, d ocispec.Descriptor, data []byte) error {
	if err := p.repo.Manifests().Push(ctx, d, bytes.NewReader(data)); err != nil {
		return failed(p.ref, "push a manifest", err)
	}
	return nil
}

func (p *pusher) blob(ctx context.Context, d ocispec.Descriptor, open func() (io.ReadCloser, error)) error {
	d = ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	there, err := p.repo.Blobs().Exists(ctx, d)
	if err != nil {
		return failed(p.ref, "look up a blob", err)
	}
	if there {
		return nil
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := p.repo.Blobs().Push(ctx, d, content.NewVerifyReader(r, d)); err != nil {
		return failed(p.ref, "push a blob", err)
	}
	p.sent += d.Size
	return nil
}

// of opens bytes.
func of(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}
