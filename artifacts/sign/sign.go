// Package sign makes and checks the signatures of a release.
//
// One thing is signed: the exact bytes of manifest.json. A signature is kept in two forms, a Sigstore bundle v0.3 and the
// bare signature in base64, so that cosign, openssl and every Sigstore library can check it without halo. Keys are
// ECDSA P-256 with SHA-256, the only type that all of those verify in every form (cosign 3.1.3 and 2.6.5, sigstore-go 1.3.0,
// sigstore-js 4 and 5, OpenSSL 3.0; checked 2026-11); pure Ed25519 public keys are accepted for verifying.
package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// MaxBundleSize is the largest bundle file that is read, in bytes.
const MaxBundleSize = 1 << 20

// ErrUnknownSigner says that a signature was made by none of the given keys, so nothing can be said about it.
var ErrUnknownSigner = errors.New("signed by none of the given keys")

// ErrBadSignature says that a signature names one of the given keys and is not one by that key over these bytes.
var ErrBadSignature = errors.New("the signature is not over these bytes")

// Signature is a signature over one message in both forms in which a release carries it.
type Signature struct {
	// Bundle is a Sigstore bundle v0.3 (JSON without a final newline).
	Bundle []byte
	// Detached is the same signature in standard base64, without a final newline.
	Detached []byte
	// Key is the public half of the key that signed.
	Key PublicKey
}

// Sign signs message with an ECDSA P-256 key. A key in this process signs deterministically (RFC 6979): the same key and
// message give the same bytes. Other signers, such as a hardware key behind crypto.Signer, may not.
func Sign(signer crypto.Signer, message []byte) (*Signature, error) {
	pub, err := NewPublicKey(signer.Public())
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if pub.ecdsa == nil {
		return nil, errors.New("sign: the key is Ed25519; releases are signed with ECDSA P-256, which every verifier accepts")
	}
	digest := sha256.Sum256(message)
	// A nil source of randomness asks crypto/ecdsa for a deterministic signature; other signers ignore it.
	raw, err := crypto.SignMessage(signer, nil, message, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if !ecdsa.VerifyASN1(pub.ecdsa, digest[:], raw) {
		return nil, errors.New("sign: the key made a signature that its own public key does not verify")
	}
	bundle, err := marshalBundle(pub, digest, raw)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return &Signature{
		Bundle:   bundle,
		Detached: base64.StdEncoding.AppendEncode(nil, raw),
		Key:      pub,
	}, nil
}

// VerifyDetached checks a bare base64 signature over message and returns the key that made it. The error is
// ErrBadSignature when no key did, and a *FormatError when the bytes are not one base64 text.
func VerifyDetached(detached []byte, keys []PublicKey, message []byte) (PublicKey, error) {
	raw, err := decodeBase64(string(detached))
	if err != nil || len(raw) == 0 {
		return PublicKey{}, &FormatError{"not a signature in base64 (one line without a line end)"}
	}
	digest := sha256.Sum256(message)
	for _, k := range keys {
		if k.verify(raw, digest[:], message) {
			return k, nil
		}
	}
	return PublicKey{}, ErrBadSignature
}

// verify reports whether raw is a signature by k over message, whose SHA-256 is digest.
func (k PublicKey) verify(raw, digest, message []byte) bool {
	switch {
	case k.ecdsa != nil:
		return ecdsa.VerifyASN1(k.ecdsa, digest, raw)
	case k.ed25519 != nil:
		return ed25519.Verify(k.ed25519, message, raw)
	}
	return false
}

// decodeBase64 reads standard base64 and nothing else: encoding/base64 alone would skip line ends, so that two texts could
// mean the same bytes.
func decodeBase64(s string) ([]byte, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, err
	}
	if base64.StdEncoding.EncodedLen(len(raw)) != len(s) {
		return nil, errors.New("base64 with line ends")
	}
	return raw, nil
}

// SameSignature reports whether a bare base64 signature is the one that bundle holds.
func SameSignature(detached []byte, bundle *Bundle) bool {
	raw, err := decodeBase64(string(detached))
	return err == nil && bundle != nil && len(raw) > 0 && bytes.Equal(raw, bundle.Signature)
}
