package artifacts

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/artifacts/sign/keyless"
	"halos.dev/halo/compiler/diag"
)

// maxProblems is how many files a VerifyError names.
const maxProblems = 50

// Problem is one finding about one file of a release.
type Problem struct {
	// Path is the path in the release.
	Path string `json:"path"`
	// Message is what was found and what is wanted.
	Message string `json:"message"`
}

// VerifyError says that a release was read and is not to be trusted: the answer is no, exit status 1. Every other error of this
// package means that there is no answer (exit status 2).
type VerifyError struct {
	// Code is the diagnostic code of the finding.
	Code *diag.Code
	// Problems are what was found, sorted by path, at most 50.
	Problems []Problem
	// More is how many further problems were left out.
	More int
}

func (e *VerifyError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Path)
		b.WriteString(": ")
		b.WriteString(p.Message)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", e.More)
	}
	return b.String()
}

func refuse(code *diag.Code, path, format string, args ...any) error {
	return &VerifyError{Code: code, Problems: []Problem{{path, fmt.Sprintf(format, args...)}}}
}

// ErrNoKey says that Verify was called without a key: trust is never assumed.
var ErrNoKey = errors.New("no public key to verify with")

// ErrNotRelease says that a directory is empty: there is nothing to judge.
var ErrNotRelease = errors.New("an empty directory, not a release")

// VerifyOptions say what a release must satisfy.
type VerifyOptions struct {
	// Trust says whose signatures count. It must have a key, unless Keyless is set.
	Trust *sign.Trust
	// Keyless, when set, is trusted instead of keys.
	Keyless *Keyless
	// Now judges expiry. It must be set.
	Now time.Time
	// StateFile, when set, makes verifying forward-only: see State. It is written after everything else succeeded.
	StateFile string
}

// Keyless is trust in one identity that signed with short-lived certificates.
type Keyless struct {
	Root     *keyless.Root
	Identity keyless.Identity
	// Bundles are signatures over the manifest and attestations about it by file name. There must be one, and every one must verify.
	Bundles map[string][]byte
}

// Verified is a release of which everything was checked.
type Verified struct {
	// Manifest is the parsed manifest.
	Manifest *Manifest
	// Digest is the release digest.
	Digest string
	// Signers are the ids of the keys that signed, sorted.
	Signers []string
	// Identities are who signed without a key, in the order of the names of the bundles.
	Identities []keyless.Signer
	// OtherSigners are the names of bundles by keys that were not given, about which nothing can be said.
	OtherSigners []string
	// Detached says that manifest.json.sig is there. It adds nothing to the bundle, which other signers (cosign) write alone, so a
	// release without it verifies; only tools that read no bundle, such as openssl, need it.
	Detached bool
	// Size is the size of all listed files in bytes.
	Size int64

	fsys       fs.FS
	manifest   []byte
	signatures []content
}

// ReadFile reads a listed file again and checks it again, so that what is used is what was verified. The error is a *VerifyError
// when the file changed since.
func (v *Verified) ReadFile(path string) ([]byte, error) { return v.Manifest.ReadFile(v.fsys, path) }

// ReadFile reads a listed file of the release in fsys and compares it with its entry. The error is a *VerifyError when it is not the file that is listed.
func (m *Manifest) ReadFile(fsys fs.FS, path string) ([]byte, error) {
	f, ok := m.File(path)
	if !ok {
		return nil, fmt.Errorf("%s: not in the manifest", path)
	}
	data, err := readCapped(fsys, path, f.Size)
	var bad *badFileError
	switch {
	case errors.As(err, &bad):
		return nil, refuse(CodeFiles, path, "%s", bad.reason)
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse(CodeFiles, path, "missing")
	case err != nil:
		return nil, fmt.Errorf("read release: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, refuse(CodeFiles, path, "content changed (sha256 %x, not %s)", sum, f.SHA256)
	}
	return data, nil
}

// Write writes the release to the directory out as Release.Write does. Every file is checked again on the way, and the manifest and its signatures are the
// bytes that were verified.
func (v *Verified) Write(ctx context.Context, out string) error {
	files := make([]content, 0, len(v.Manifest.Files)+len(v.signatures)+1)
	for _, f := range v.Manifest.Files {
		files = append(files, content{path: f.Path, read: func() ([]byte, error) { return v.ReadFile(f.Path) }})
	}
	files = append(append(files, v.signatures...), content{path: ManifestName, data: v.manifest})
	return writeDir(ctx, out, files, place{"release", CodeNotRelease, ownRelease})
}

// Verify checks a release completely before it says yes, in this order: the signatures over the exact bytes of manifest.json, before
// anything in it is looked at; its form; organization, sequence and expiry; then every file, and that there is nothing else. All file problems are
// reported, not only the first. A *VerifyError is a no; any other error means that there is no answer.
func Verify(ctx context.Context, fsys fs.FS, opts VerifyOptions) (*Verified, error) {
	trust := opts.Trust
	if opts.Keyless != nil {
		trust = &sign.Trust{}
	} else if trust == nil || len(trust.Keys) == 0 {
		return nil, ErrNoKey
	}
	if opts.Now.IsZero() {
		return nil, errors.New("verify release: no time to judge expiry by")
	}
	data, err := readManifest(fsys)
	if err != nil {
		return nil, err
	}
	v := &Verified{Digest: Digest(data), fsys: fsys, manifest: data}
	if opts.Keyless != nil {
		err = v.checkIdentity(data, opts.Keyless)
	} else {
		err = v.checkSignatures(data, trust)
	}
	if err != nil {
		return nil, err
	}
	if v.Manifest, err = ParseManifest(data); err != nil {
		return nil, refuse(CodeManifest, ManifestName, "%v", err)
	}
	m := v.Manifest
	if trust.Org != "" && trust.Org != m.Org {
		return nil, refuse(CodeSignature, ManifestName, "a release of %q; the trust file is for %q", m.Org, trust.Org)
	}
	next := State{m.Org, m.Sequence, v.Digest, trust.Version}
	var state *State
	if opts.StateFile != "" {
		if state, err = LoadState(opts.StateFile); err != nil {
			return nil, err
		}
		if next.Trust == 0 && state != nil {
			next.Trust = state.Trust // keys given by hand say nothing about trust files
		}
		if err := state.Accepts(next, m.Previous); err != nil {
			return nil, err
		}
	}
	if !m.Expires.IsZero() && !opts.Now.Before(m.Expires) {
		return nil, refuse(CodeExpired, ManifestName, "expired at %s (it is %s)", m.Expires.Format(time.RFC3339), opts.Now.UTC().Format(time.RFC3339))
	}
	if err := checkFiles(ctx, fsys, m); err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		v.Size += f.Size
	}
	if opts.StateFile != "" && (state == nil || *state != next) {
		if err := next.Save(opts.StateFile); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// readManifest reads manifest.json once.
func readManifest(fsys fs.FS) ([]byte, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read release: %w", err)
	}
	if len(entries) == 0 {
		return nil, ErrNotRelease
	}
	i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ManifestName })
	if i < 0 {
		return nil, refuse(CodeManifest, ManifestName, "missing: not a release, or not a whole one")
	}
	if mode := entries[i].Type(); !mode.IsRegular() {
		return nil, refuse(CodeFiles, ManifestName, "%s where the release has a file", Describe(mode))
	}
	data, err := readCapped(fsys, ManifestName, MaxManifestSize)
	var bad *badFileError
	switch {
	case errors.As(err, &bad):
		return nil, refuse(CodeManifest, ManifestName, "%s", bad.reason)
	case err != nil:
		return nil, fmt.Errorf("read release: %w", err)
	}
	return data, nil
}

// SignatureFiles returns the signature files of the release in fsys by name. They were not verified.
func SignatureFiles(fsys fs.FS) (map[string][]byte, error) {
	files, _, err := signatureFiles(fsys)
	return files, err
}

// signatureFiles returns the signatures beside the manifest, sorted by name; links and other things are refused by name later and
// here when they stand for a signature.
func signatureFiles(fsys fs.FS) (map[string][]byte, []string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("read release: %w", err)
	}
	files := map[string][]byte{}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !isSignatureName(name) {
			continue
		}
		if !e.Type().IsRegular() {
			return nil, nil, refuse(CodeSignature, name, "%s where a release has a signature file", Describe(e.Type()))
		}
		data, err := readCapped(fsys, name, sign.MaxBundleSize)
		var bad *badFileError
		switch {
		case errors.As(err, &bad):
			return nil, nil, refuse(CodeSignature, name, "%s", bad.reason)
		case err != nil:
			return nil, nil, fmt.Errorf("read release: %w", err)
		}
		files[name] = data
		names = append(names, name)
	}
	slices.Sort(names)
	return files, names, nil
}

// checkSignatures verifies the signature files against the exact bytes of the manifest. Bundles count towards the threshold. A bundle
// by a key that was not given is noted, since a release may have more signers than this verifier knows; everything else that does not
// verify is a no.
func (v *Verified) checkSignatures(manifest []byte, trust *sign.Trust) error {
	files, names, err := signatureFiles(v.fsys)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return refuse(CodeUnsigned, ManifestName, "not signed: there is no %s", BundleName)
	}
	if files[BundleName] == nil {
		return refuse(CodeUnsigned, BundleName, "missing: a signed release has it")
	}
	for _, name := range names {
		v.signatures = append(v.signatures, content{path: name, data: files[name]})
	}
	signers := map[string]bool{}
	var primary *sign.Bundle
	var revoked []string
	for _, name := range names {
		if name == DetachedName {
			continue
		}
		b, err := sign.ParseBundle(files[name])
		if err != nil {
			return refuse(CodeSignature, name, "not a Sigstore bundle v0.3: %v", err)
		}
		if name == provenanceName {
			continue // an attestation about the build; a policy about it is not ours to make
		}
		if id := bundleID(name); id != "" && !strings.HasPrefix(b.KeyID(), id) {
			return refuse(CodeSignature, name, "the file name says key %s, the bundle %s", id, cmp.Or(b.KeyID(), "nothing"))
		}
		if name == BundleName {
			primary = b
		}
		if slices.Contains(trust.Revoked, b.KeyID()) {
			revoked = append(revoked, b.KeyID())
			v.OtherSigners = append(v.OtherSigners, name)
			continue
		}
		key, err := b.Verify(trust.Keys, manifest)
		switch {
		case err == nil:
			signers[key.ID()] = true
		case errors.Is(err, sign.ErrUnknownSigner):
			v.OtherSigners = append(v.OtherSigners, name)
		default:
			return refuse(CodeSignature, name, "%v", err)
		}
	}
	if detached, ok := files[DetachedName]; ok {
		v.Detached = true
		if _, err := sign.VerifyDetached(detached, trust.Keys, manifest); err != nil && !sign.SameSignature(detached, primary) {
			return refuse(CodeSignature, DetachedName, "%v", err)
		}
	}
	if want := max(1, trust.Threshold); len(signers) < want {
		switch {
		case len(revoked) > 0:
			return refuse(CodeSignature, BundleName, "signed by key %s, which is revoked", strings.Join(revoked, " and "))
		case len(signers) == 0 && primary.Certificate:
			return refuse(CodeSignature, BundleName, "signed with a certificate and not by %s; verify with --certificate-identity", keyIDs(trust.Keys))
		case len(signers) == 0:
			return refuse(CodeSignature, BundleName, "signed by another key (%s), not by %s", cmp.Or(primary.KeyID(), "unnamed"), keyIDs(trust.Keys))
		}
		return refuse(CodeSignature, BundleName, "signed by %d of the trusted keys; %d are wanted", len(signers), want)
	}
	for id := range signers {
		v.Signers = append(v.Signers, id)
	}
	slices.Sort(v.Signers)
	return nil
}

// checkIdentity verifies the signatures and attestations by one identity.
func (v *Verified) checkIdentity(manifest []byte, k *Keyless) error {
	if len(k.Bundles) == 0 {
		return ErrNoKey
	}
	for _, name := range slices.Sorted(maps.Keys(k.Bundles)) {
		s, err := keyless.Verify(k.Bundles[name], manifest, k.Root, k.Identity)
		if err != nil {
			return refuse(CodeSignature, name, "%v", err)
		}
		v.Identities = append(v.Identities, *s)
		if IsBundleName(name) {
			v.signatures = append(v.signatures, content{path: name, data: k.Bundles[name]})
		}
	}
	return nil
}

func keyIDs(keys []sign.PublicKey) string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID()
	}
	return strings.Join(ids, " or ")
}

// Whole reads the manifest of the release in fsys and compares every file with it, as Verify does, but asks for no signature: the release is as somebody made
// it, and nothing says who. A *VerifyError is a no.
func Whole(ctx context.Context, fsys fs.FS) (m *Manifest, digest string, err error) {
	m, data, err := whole(ctx, fsys)
	if err != nil {
		return nil, "", err
	}
	return m, Digest(data), nil
}

func whole(ctx context.Context, fsys fs.FS) (*Manifest, []byte, error) {
	m, data, err := ManifestOf(fsys)
	if err != nil {
		return nil, nil, err
	}
	if err := checkFiles(ctx, fsys, m); err != nil {
		return nil, nil, err
	}
	return m, data, nil
}

// checkFiles compares the directory with the manifest: nothing more, nothing less, everything with its size and digest. The error is
// a *VerifyError unless something could not be read.
func checkFiles(ctx context.Context, fsys fs.FS, m *Manifest) error {
	if err := m.checkSums(); err != nil {
		return err
	}
	problems, unread := walk(ctx, fsys, m, true)
	if len(problems) > 0 {
		return newFilesError(problems)
	}
	if unread != nil {
		return fmt.Errorf("read release: %w", unread)
	}
	return nil
}

func newFilesError(problems []Problem) error {
	shown := min(len(problems), maxProblems)
	return &VerifyError{Code: CodeFiles, Problems: problems[:shown:shown], More: len(problems) - shown}
}

// checkSums checks that SHA256SUMS says the same as the manifest. Its form is fixed, so its digest says it all.
func (m *Manifest) checkSums() error {
	f, ok := m.File(SumsName)
	if !ok {
		return refuse(CodeManifest, ManifestName, "%s is not listed", SumsName)
	}
	h := sha256.New()
	m.writeSums(h)
	if f.SHA256 != hex.EncodeToString(h.Sum(nil)) {
		return refuse(CodeFiles, SumsName, "does not list the files of the manifest")
	}
	return nil
}

// SignDir signs the release in dir and writes the signature files beside the manifest, each by rename. The release is checked
// completely first (but for signatures): what is signed is whole. The first signer gets manifest.json.sigstore.json and
// manifest.json.sig, and signing again with the same key replaces them; another key gets manifest.json.ID.sigstore.json.
func SignDir(ctx context.Context, dir string, signer crypto.Signer) (*sign.Signature, error) {
	fsys := DirFS(dir)
	_, data, err := whole(ctx, fsys)
	if err != nil {
		return nil, err
	}
	s, err := sign.Sign(signer, data)
	if err != nil {
		return nil, err
	}
	files := []content{{path: DetachedName, data: s.Detached}, {path: BundleName, data: s.Bundle}}
	if old, err := readCapped(fsys, BundleName, sign.MaxBundleSize); err == nil {
		if b, err := sign.ParseBundle(old); err == nil && b.KeyID() != s.Key.ID() && !b.Envelope && slices.Equal(b.Digest, digestOf(data)) {
			files = []content{{path: keyBundleName(s.Key), data: s.Bundle}}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sign release: %w", err)
	}
	for _, f := range files {
		if err := replaceFile(dir+string(os.PathSeparator)+f.path, f.data, 0o644); err != nil {
			return nil, fmt.Errorf("sign release: %w", err)
		}
	}
	return s, nil
}

func digestOf(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}
