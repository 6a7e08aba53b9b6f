package oci

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// Release is a release that was fetched. It is read like one on disk; nothing of it was verified but that the registry sent what its digests say.
type Release struct {
	*artifacts.Archive
	// Reference is the address by digest.
	Reference Reference

	file *os.File
}

// Close closes and removes what was fetched.
func (r *Release) Close() error {
	return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
}

// Fetch downloads the release at ref into a file in the directory dir, which Close removes, and its bundles into memory. A *artifacts.VerifyError says
// that there is something else, or that the registry does not send what it names.
func Fetch(ctx context.Context, ref Reference, dir string, opts Options) (*Release, error) {
	repo := opts.repository(ref)
	desc, err := repo.Resolve(ctx, ref.ref.Reference)
	if err != nil {
		if errors.Is(err, errdef.ErrNotFound) {
			return nil, fmt.Errorf("%s: not found", ref)
		}
		return nil, failed(ref, "look up", err)
	}
	if ref.Tag() == "" && desc.Digest.String() != ref.ref.Reference {
		return nil, refuse(ref, "the registry answers with %s", desc.Digest)
	}
	if desc.MediaType != ocispec.MediaTypeImageManifest || !artifacts.IsDigest(desc.Digest.String()) {
		return nil, refuse(ref, "a %s, not the manifest of a release", printable(desc.MediaType))
	}
	f := &fetcher{ref: ref, repo: repo}
	m, err := f.manifest(ctx, desc)
	if err != nil {
		return nil, err
	}
	if err := checkRelease(ref, m); err != nil {
		return nil, err
	}
	manifest, err := f.blob(ctx, m.Config, artifacts.MaxManifestSize)
	if err != nil {
		return nil, err
	}
	files, err := f.bundles(ctx, desc, func(bundle []byte) bool { return opts.Prefer != nil && opts.Prefer(bundle, manifest) })
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, "release.tar"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Release{Reference: ref.WithDigest(desc.Digest.String()), file: file}
	if err := f.download(ctx, m.Layers[0], file); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	archive, err := artifacts.ReadArchive(file, m.Layers[0].Size)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if inside, err := fs.ReadFile(archive, artifacts.ManifestName); err != nil || !bytes.Equal(inside, manifest) {
		return nil, errors.Join(refuse(ref, "the archive holds another release than the manifest names"), err, r.Close())
	}
	r.Archive = archive.WithFiles(files)
	return r, nil
}

// printable keeps what a registry says from doing anything to a terminal.
func printable(s string) string {
	if s == "" {
		return "thing without a type"
	}
	return strings.Trim(fmt.Sprintf("%.100q", s), `"`)
}

// checkRelease wants the form that Push gives a manifest.
func checkRelease(ref Reference, m *ocispec.Manifest) error {
	switch {
	case m.ArtifactType != ArtifactType:
		return refuse(ref, "an artifact of type %s, not %s", printable(m.ArtifactType), ArtifactType)
	case m.Config.MediaType != ConfigType:
		return refuse(ref, "its config is a %s, not %s", printable(m.Config.MediaType), ConfigType)
	case len(m.Layers) != 1 || m.Layers[0].MediaType != LayerType:
		return refuse(ref, "%d layers, not one of type %s", len(m.Layers), LayerType)
	case m.Config.Size < 0 || m.Config.Size > artifacts.MaxManifestSize || m.Layers[0].Size < 0 || m.Layers[0].Size > artifacts.MaxArchiveSize:
		return refuse(ref, "larger than a release may be")
	case !artifacts.IsDigest(m.Config.Digest.String()) || !artifacts.IsDigest(m.Layers[0].Digest.String()):
		return refuse(ref, "a digest that is not SHA-256")
	}
	return nil
}

// fetcher gets the parts of one release.
type fetcher struct {
	ref  Reference
	repo *remote.Repository
}

// manifest gets a manifest.
func (f *fetcher) manifest(ctx context.Context, d ocispec.Descriptor) (*ocispec.Manifest, error) {
	if d.Size < 0 || d.Size > maxManifest {
		return nil, refuse(f.ref, "a manifest of %d bytes; those of releases have at most %d", d.Size, maxManifest)
	}
	data, err := content.FetchAll(ctx, f.repo.Manifests(), d)
	if err != nil {
		return nil, failed(f.ref, "get the manifest", err)
	}
	m := new(ocispec.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, refuse(f.ref, "not a manifest")
	}
	return m, nil
}

// blob gets a blob of at most limit bytes.
func (f *fetcher) blob(ctx context.Context, d ocispec.Descriptor, limit int64) ([]byte, error) {
	if d.Size < 0 || d.Size > limit || !artifacts.IsDigest(d.Digest.String()) {
		return nil, refuse(f.ref, "a blob of %d bytes with digest %s; at most %d and SHA-256 are wanted", d.Size, printable(d.Digest.String()), limit)
	}
	data, err := content.FetchAll(ctx, f.repo.Blobs(), d)
	if err != nil {
		return nil, failed(f.ref, "get a blob", err)
	}
	return data, nil
}

// bundles gets the signature files of a release. Bundles that others attached under no name of ours are left alone.
func (f *fetcher) bundles(ctx context.Context, subject ocispec.Descriptor, prefer func([]byte) bool) (map[string][]byte, error) {
	var found []ocispec.Descriptor
	err := f.repo.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		if found = append(found, page...); len(found) > maxReferrers {
			return refuse(f.ref, "more than %d manifests refer to it", maxReferrers)
		}
		return nil
	})
	if err != nil {
		return nil, failed(f.ref, "list the bundles", err)
	}
	slices.SortFunc(found, func(a, b ocispec.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })
	type candidate struct{ bundle, detached []byte }
	chosen, good := map[string]candidate{}, map[string]bool{}
	for _, d := range found {
		// Some registries list the type of the config in place of that of the artifact (go-containerregistry 0.21.9).
		if d.MediaType != ocispec.MediaTypeImageManifest || d.ArtifactType != BundleType && d.ArtifactType != ocispec.MediaTypeEmptyJSON || !artifacts.IsDigest(d.Digest.String()) {
			continue
		}
		m, err := f.manifest(ctx, d)
		if err != nil {
			return nil, err
		}
		if m.Subject == nil || m.Subject.Digest != subject.Digest || m.ArtifactType != BundleType || len(m.Layers) != 1 {
			continue
		}
		name := m.Layers[0].Annotations[ocispec.AnnotationTitle]
		if !artifacts.IsBundleName(name) || good[name] {
			continue
		}
		bundle, err := f.blob(ctx, m.Layers[0], sign.MaxBundleSize)
		if err != nil {
			return nil, err
		}
		c := candidate{bundle: bundle}
		if sig := m.Annotations[detachedNote]; sig != "" && name == artifacts.BundleName {
			c.detached = []byte(sig)
		}
		fits := prefer(bundle)
		if _, ok := chosen[name]; !ok || fits {
			chosen[name], good[name] = c, fits
		}
	}
	files := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		files[name] = chosen[name].bundle
		if sig := chosen[name].detached; sig != nil {
			files[artifacts.DetachedName] = sig
		}
	}
	return files, nil
}

// maxResumes is how often a download goes on after the connection broke.
const maxResumes = 8

// download writes a blob to file. When the connection breaks and the registry can send the rest, it goes on there.
func (f *fetcher) download(ctx context.Context, d ocispec.Descriptor, file *os.File) error {
	sum := sha256.New()
	var have int64
	for try := 0; ; try++ {
		n, err := f.rest(ctx, d, have, io.MultiWriter(file, sum))
		have += n
		switch {
		case have == d.Size && err == nil:
			if hex.EncodeToString(sum.Sum(nil)) != d.Digest.Encoded() {
				return refuse(f.ref, "get the archive: the registry sends other bytes than the digest says")
			}
			return nil
		case err == nil || n == 0 || try == maxResumes || !errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return failed(f.ref, fmt.Sprintf("get the archive (%d of %d bytes came)", have, d.Size), err)
		}
	}
}

// rest copies what comes of a blob from offset at on, and at most what is missing.
func (f *fetcher) rest(ctx context.Context, d ocispec.Descriptor, at int64, w io.Writer) (int64, error) {
	r, err := f.repo.Blobs().Fetch(ctx, d)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	if at > 0 {
		seeker, ok := r.(io.Seeker)
		if !ok {
			return 0, io.ErrUnexpectedEOF
		}
		if _, err := seeker.Seek(at, io.SeekStart); err != nil {
			return 0, err
		}
	}
	n, err := io.Copy(w, io.LimitReader(r, d.Size-at))
	if err == nil && n < d.Size-at {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		// A body without a length may go on.
		if extra, _ := io.ReadFull(r, make([]byte, 1)); extra > 0 {
			err = content.ErrTrailingData
		}
	}
	return n, err
}
