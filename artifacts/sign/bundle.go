package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MediaType is the bundle form that halo writes. The older spelling of the same version is accepted too.
const (
	MediaType       = "application/vnd.dev.sigstore.bundle.v0.3+json"
	mediaTypeLegacy = "application/vnd.dev.sigstore.bundle+json;version=0.3"
)

// FormatError says that a signature file is not what its name promises.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return e.Reason }

var errNotWhole = errors.New("not a JSON object from the first byte to the last")

// Bundle is a parsed Sigstore bundle.
type Bundle struct {
	// MediaType is one of the two spellings of version 0.3.
	MediaType string
	// Hint is the key hint as written; it is not authenticated and only chooses a key. By convention (cosign, sigstore-go)
	// it is the base64 SHA-256 of the DER public key.
	Hint string
	// Certificate is true for a bundle that was made with a certificate rather than a key; package keyless verifies those.
	Certificate bool
	// Envelope is true for a DSSE attestation; then Digest and Signature are empty.
	Envelope bool
	// Digest is the SHA-256 that the bundle claims of the signed message.
	Digest []byte
	// Signature is the bare signature.
	Signature []byte
}

// KeyID is the hint as a key id, or "" when the hint does not have the conventional form.
func (b *Bundle) KeyID() string {
	raw, err := decodeBase64(b.Hint)
	if err != nil || len(raw) != sha256.Size {
		return ""
	}
	return hex.EncodeToString(raw)
}

// The six facts of a bundle by key, in the order in which they are written.
type (
	bundleJSON struct {
		MediaType            string       `json:"mediaType"`
		VerificationMaterial materialJSON `json:"verificationMaterial"`
		MessageSignature     messageJSON  `json:"messageSignature"`
	}
	materialJSON struct {
		PublicKey hintJSON `json:"publicKey"`
	}
	hintJSON struct {
		Hint string `json:"hint"`
	}
	messageJSON struct {
		MessageDigest digestJSON `json:"messageDigest"`
		Signature     []byte     `json:"signature"`
	}
	digestJSON struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	}
)

// marshalBundle uses encoding/json because the protobuf encoder varies its white space from build to build.
func marshalBundle(pub PublicKey, digest [sha256.Size]byte, raw []byte) ([]byte, error) {
	return json.Marshal(bundleJSON{
		MediaType:            MediaType,
		VerificationMaterial: materialJSON{hintJSON{pub.Hint()}},
		MessageSignature:     messageJSON{digestJSON{"SHA2_256", digest[:]}, raw},
	})
}

// ParseBundle reads a bundle strictly: every key once, in the spelling of the format, no unknown key, nothing behind it.
// The error is a *FormatError.
func ParseBundle(data []byte) (*Bundle, error) {
	b, err := parseBundle(data)
	if err != nil {
		return nil, &FormatError{err.Error()}
	}
	return b, nil
}

func parseBundle(data []byte) (*Bundle, error) {
	if len(data) > MaxBundleSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxBundleSize)
	}
	whole := data
	// The attest actions of GitHub and sigstore-python end the file with a line end (actions/attest src/main.ts, read 2026-11).
	if rest, ok := bytes.CutSuffix(data, []byte("\n")); ok {
		data = bytes.TrimSuffix(rest, []byte("\r"))
	}
	if len(data) == 0 || data[0] != '{' || data[len(data)-1] != '}' {
		return nil, errNotWhole
	}
	top, err := object(data, "mediaType", "verificationMaterial", "messageSignature", "dsseEnvelope")
	if err != nil {
		return nil, err
	}
	b := new(Bundle)
	if b.MediaType, err = text(top, "mediaType"); err != nil {
		return nil, err
	}
	if b.MediaType != MediaType && b.MediaType != mediaTypeLegacy {
		return nil, fmt.Errorf("media type %q, not %q", b.MediaType, MediaType)
	}
	// Log entries and timestamps may be there (cosign adds them when told to); halo trusts the pinned key, not a log.
	material, err := object(top["verificationMaterial"], "publicKey", "certificate", "x509CertificateChain", "tlogEntries", "timestampVerificationData")
	if err != nil {
		return nil, fmt.Errorf("verificationMaterial: %w", err)
	}
	b.Certificate = material["publicKey"] == nil
	switch {
	case b.Certificate && material["certificate"] == nil && material["x509CertificateChain"] == nil:
		return nil, errors.New("verificationMaterial: neither publicKey nor certificate")
	case !b.Certificate && (material["certificate"] != nil || material["x509CertificateChain"] != nil):
		return nil, errors.New("verificationMaterial: both publicKey and certificate")
	case !b.Certificate:
		key, err := object(material["publicKey"], "hint")
		if err != nil {
			return nil, fmt.Errorf("publicKey: %w", err)
		}
		if key["hint"] != nil {
			if b.Hint, err = text(key, "hint"); err != nil {
				return nil, err
			}
		}
	}
	// halo and cosign, who sign with keys, write none, so nothing can be added to such a signature unnoticed.
	if len(data) < len(whole) && !b.Certificate && top["dsseEnvelope"] == nil {
		return nil, errNotWhole
	}
	if top["dsseEnvelope"] != nil {
		b.Envelope = true
		if top["messageSignature"] != nil {
			return nil, errors.New("both messageSignature and dsseEnvelope")
		}
		_, err := object(top["dsseEnvelope"], "payload", "payloadType", "signatures")
		return b, err
	}
	message, err := object(top["messageSignature"], "messageDigest", "signature")
	if err != nil {
		return nil, fmt.Errorf("messageSignature: %w", err)
	}
	if b.Signature, err = octets(message, "signature"); err != nil {
		return nil, err
	}
	digest, err := object(message["messageDigest"], "algorithm", "digest")
	if err != nil {
		return nil, fmt.Errorf("messageDigest: %w", err)
	}
	alg, err := text(digest, "algorithm")
	if err != nil {
		return nil, err
	}
	if alg != "SHA2_256" {
		return nil, fmt.Errorf("digest algorithm %q, not SHA2_256", alg)
	}
	if b.Digest, err = octets(digest, "digest"); err != nil {
		return nil, err
	}
	if len(b.Digest) != sha256.Size {
		return nil, fmt.Errorf("digest of %d bytes, not %d", len(b.Digest), sha256.Size)
	}
	return b, nil
}

// VerifyBundle checks that bundle holds a signature over message by one of keys and returns that key. The error is a
// *FormatError for bytes that are not such a bundle (a DSSE attestation too), ErrUnknownSigner when the hint names none of the
// keys (or there is no hint and no key fits), else ErrBadSignature.
func VerifyBundle(bundle []byte, keys []PublicKey, message []byte) (PublicKey, error) {
	b, err := ParseBundle(bundle)
	if err != nil {
		return PublicKey{}, err
	}
	return b.Verify(keys, message)
}

// Verify is VerifyBundle for a bundle that is already parsed.
func (b *Bundle) Verify(keys []PublicKey, message []byte) (PublicKey, error) {
	if b.Envelope {
		return PublicKey{}, &FormatError{"a DSSE attestation, not a signature over the file"}
	}
	if b.Certificate {
		return PublicKey{}, ErrUnknownSigner
	}
	digest := sha256.Sum256(message)
	if !bytes.Equal(digest[:], b.Digest) {
		return PublicKey{}, fmt.Errorf("%w: the bundle is for another file (sha256 %x)", ErrBadSignature, b.Digest)
	}
	for _, k := range keys {
		if b.Hint != "" && b.Hint != k.Hint() {
			continue
		}
		if k.verify(b.Signature, digest[:], message) {
			return k, nil
		}
		if b.Hint != "" {
			return PublicKey{}, ErrBadSignature
		}
	}
	// The hint only chooses a key, so a changed one must not make a known signer unknown.
	if slices.ContainsFunc(keys, func(k PublicKey) bool { return k.verify(b.Signature, digest[:], message) }) {
		return PublicKey{}, fmt.Errorf("%w: the hint names another key than the one that signed", ErrBadSignature)
	}
	return PublicKey{}, ErrUnknownSigner
}

// object reads one JSON object whose keys are among allowed, each at most once, and nothing behind it. encoding/json into a
// struct would also accept other spellings of a key (upper case) and repeated keys.
func object(data json.RawMessage, allowed ...string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	m := make(map[string]json.RawMessage, len(allowed))
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, errors.New("not valid JSON")
		}
		key, _ := tok.(string)
		if !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("unknown key %q", key)
		}
		if m[key] != nil {
			return nil, fmt.Errorf("key %q twice", key)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, errors.New("not valid JSON")
		}
		m[key] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("not valid JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("more bytes behind the JSON object")
	}
	return m, nil
}

// text reads a string value. The raw form must be the string itself between quotes: no fact of a bundle needs an escape.
func text(m map[string]json.RawMessage, key string) (string, error) {
	raw := m[key]
	if len(raw) < 2 || raw[0] != '"' {
		return "", fmt.Errorf("no text %q", key)
	}
	s := string(raw[1 : len(raw)-1])
	if bytes.ContainsAny(raw[1:len(raw)-1], `\`) {
		return "", fmt.Errorf("an escape in %q", key)
	}
	return s, nil
}

func octets(m map[string]json.RawMessage, key string) ([]byte, error) {
	s, err := text(m, key)
	if err != nil {
		return nil, err
	}
	raw, err := decodeBase64(s)
	if err != nil {
		return nil, fmt.Errorf("%q is not standard base64", key)
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("%q is empty", key)
	}
	return raw, nil
}

// Hint is the key hint that bundles by k carry: the base64 SHA-256 of its DER form.
func (k PublicKey) Hint() string { return base64.StdEncoding.EncodeToString(k.id[:]) }
