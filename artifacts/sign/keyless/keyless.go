// Package keyless verifies, without a network, signatures made with a short-lived certificate instead of a key: Sigstore bundles v0.3 as
// cosign and the attest actions of GitHub write them.
//
// What has to be proven follows from the trusted root, and nothing of it can be switched off: the certificate chains to one of its
// authorities at the time of signing and names the wanted identity and issuer; that time is vouched for by one of its timestamp
// authorities (RFC 3161) or logs (the promise of Rekor); when the root lists logs, one of them has the signature; when it lists
// certificate logs, one of them has the certificate. The package uses the standard library and golang.org/x/crypto, since the
// library of Sigstore would double the size of halo.
package keyless

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// MaxSize is the largest bundle or trusted root that is read, in bytes.
const MaxSize = 4 << 20

// Identity is who must have signed: both texts exactly as in the certificate.
type Identity struct {
	// Name is a subject alternative name: an e-mail address, or the URI of a workflow.
	Name string `json:"identity"`
	// Issuer is the OIDC issuer that knew them.
	Issuer string `json:"issuer"`
}

// Signer is who signed and when.
type Signer struct {
	Identity
	// Time is the earliest time that was proven.
	Time time.Time `json:"time"`
	// Predicate is the type of an attestation, such as https://slsa.dev/provenance/v1; "" for a plain signature.
	Predicate string `json:"predicate,omitempty"`
}

// The form of a bundle, as far as it can appear with a certificate.
type (
	bundleJSON struct {
		MediaType string        `json:"mediaType"`
		Material  materialJSON  `json:"verificationMaterial"`
		Message   *messageJSON  `json:"messageSignature"`
		Envelope  *envelopeJSON `json:"dsseEnvelope"`
	}
	materialJSON struct {
		Certificate *rawJSON   `json:"certificate"`
		Logs        []logEntry `json:"tlogEntries"`
		Timestamps  struct {
			RFC3161 []struct {
				Signed []byte `json:"signedTimestamp"`
			} `json:"rfc3161Timestamps"`
		} `json:"timestampVerificationData"`
	}
	rawJSON struct {
		Raw []byte `json:"rawBytes"`
	}
	messageJSON struct {
		Digest struct {
			Algorithm string `json:"algorithm"`
			Digest    []byte `json:"digest"`
		} `json:"messageDigest"`
		Signature []byte `json:"signature"`
	}
	envelopeJSON struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Signature []byte `json:"sig"`
			KeyID     string `json:"keyid"`
		} `json:"signatures"`
	}
)

// signed is what a bundle says was signed, by which certificate, in the form that logs repeat.
type signed struct {
	message     []byte // what the signature is over
	signature   []byte
	certificate *x509.Certificate
	payload     []byte // of an attestation; nil for a plain signature
}

// decode reads one JSON document with known fields only.
func decode(data []byte, what string, v any) error {
	if len(data) > MaxSize {
		return fmt.Errorf("larger than %d bytes: not %s", MaxSize, what)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("not %s: %s", what, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("not %s: more bytes behind it", what)
	}
	return nil
}

// Verify checks that bundle holds a signature by id over message, or an attestation by id whose subject message is.
func Verify(bundle, message []byte, root *Root, id Identity) (*Signer, error) {
	if id.Name == "" || id.Issuer == "" {
		return nil, errors.New("no identity or no issuer to compare with")
	}
	var b bundleJSON
	if err := decode(bundle, "a Sigstore bundle", &b); err != nil {
		return nil, err
	}
	if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" && b.MediaType != "application/vnd.dev.sigstore.bundle+json;version=0.3" {
		return nil, fmt.Errorf("media type %q, not that of a Sigstore bundle v0.3", b.MediaType)
	}
	if b.Material.Certificate == nil {
		return nil, errors.New("not signed with a certificate; verify with --key or --trust")
	}
	s := &signed{message: message}
	var err error
	if s.certificate, err = x509.ParseCertificate(b.Material.Certificate.Raw); err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	result := &Signer{Identity: id}
	switch {
	case b.Message != nil && b.Envelope != nil:
		return nil, errors.New("both messageSignature and dsseEnvelope")
	case b.Message != nil:
		digest := sha256.Sum256(message)
		if b.Message.Digest.Algorithm != "SHA2_256" || !bytes.Equal(b.Message.Digest.Digest, digest[:]) {
			return nil, fmt.Errorf("the bundle is for another file (%s %x)", b.Message.Digest.Algorithm, b.Message.Digest.Digest)
		}
		s.signature = b.Message.Signature
	case b.Envelope != nil:
		if result.Predicate, err = s.attestation(b.Envelope); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("neither messageSignature nor dsseEnvelope")
	}
	if !verifySignature(s.certificate.PublicKey, s.message, s.signature) {
		return nil, errors.New("the signature is not over these bytes")
	}
	times, err := s.times(&b.Material, root)
	if err != nil {
		return nil, err
	}
	for _, t := range times {
		issuer, err := root.chain(root.authorities, s.certificate, t, x509.ExtKeyUsageCodeSigning)
		if err != nil {
			return nil, fmt.Errorf("the certificate is not by an authority of the trusted root at %s: %w", t.UTC().Format(time.RFC3339), err)
		}
		if err := root.checkCertificateLogs(s.certificate, issuer); err != nil {
			return nil, err
		}
	}
	result.Time = slices.MinFunc(times, time.Time.Compare)
	return result, id.matches(s.certificate)
}

// attestation takes an in-toto statement that names the message among its subjects.
func (s *signed) attestation(e *envelopeJSON) (predicate string, err error) {
	const payloadType = "application/vnd.in-toto+json"
	if e.PayloadType != payloadType {
		return "", fmt.Errorf("payload type %q, not %q", e.PayloadType, payloadType)
	}
	if len(e.Signatures) != 1 {
		return "", fmt.Errorf("%d signatures in the envelope, not 1", len(e.Signatures))
	}
	digest := sha256.Sum256(s.message)
	s.payload, s.signature = e.Payload, e.Signatures[0].Signature
	s.message = fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(e.Payload), e.Payload)
	// Other fields of a statement are the business of its predicate.
	var statement struct {
		Type    string `json:"_type"`
		Subject []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate string `json:"predicateType"`
	}
	if err := json.Unmarshal(e.Payload, &statement); err != nil {
		return "", errors.New("the attestation is not an in-toto statement")
	}
	if statement.Type != "https://in-toto.io/Statement/v1" && statement.Type != "https://in-toto.io/Statement/v0.1" || statement.Predicate == "" {
		return "", fmt.Errorf("the attestation is of type %q, not an in-toto statement", statement.Type)
	}
	for _, subject := range statement.Subject {
		if subject.Digest["sha256"] == hex.EncodeToString(digest[:]) {
			return statement.Predicate, nil
		}
	}
	return "", errors.New("the attestation is about another file")
}

// times returns every proven time of signing, at least one. Evidence that is there must be right; evidence that the root asks for must
// be there.
func (s *signed) times(m *materialJSON, root *Root) ([]time.Time, error) {
	var times []time.Time
	for _, stamp := range m.Timestamps.RFC3161 {
		t, err := root.timestamp(stamp.Signed, s.signature)
		if err != nil {
			return nil, fmt.Errorf("timestamp: %w", err)
		}
		times = append(times, t)
	}
	for i := range m.Logs {
		t, err := root.logged(&m.Logs[i], s)
		if err != nil {
			return nil, fmt.Errorf("log entry: %w", err)
		}
		if !t.IsZero() {
			times = append(times, t)
		}
	}
	if len(root.logs) > 0 && len(m.Logs) == 0 {
		return nil, errors.New("no log entry, and the trusted root lists logs")
	}
	if len(times) == 0 {
		return nil, errors.New("nothing proves when it was signed: no timestamp and no promise of a log")
	}
	return times, nil
}

// The extensions in which Fulcio keeps the issuer (sigstore/fulcio docs/oid-info.md, 2026): bare bytes once, now a UTF8String.
var (
	oidIssuer    = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
	oidOldIssuer = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
)

// matches compares the certificate with the identity. Only names and issuer count; the subject is empty by convention.
func (id Identity) matches(c *x509.Certificate) error {
	names := slices.Concat(c.EmailAddresses, c.DNSNames)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if !slices.Contains(names, id.Name) {
		return fmt.Errorf("signed by %q, not by %q", strings.Join(names, " "), id.Name)
	}
	issuer := ""
	for _, e := range c.Extensions {
		switch {
		case e.Id.Equal(oidIssuer):
			if rest, err := asn1.UnmarshalWithParams(e.Value, &issuer, "utf8"); err != nil || len(rest) > 0 {
				return errors.New("the certificate has an issuer that cannot be read")
			}
		case e.Id.Equal(oidOldIssuer) && issuer == "":
			issuer = string(e.Value)
		}
	}
	if issuer != id.Issuer {
		return fmt.Errorf("the identity is known to %q, not to %q", issuer, id.Issuer)
	}
	return nil
}

// verifySignature checks a signature as the type of key makes it: ECDSA with the hash of its curve, pure Ed25519, RSA PKCS #1 v1.5
// with SHA-256.
func verifySignature(key crypto.PublicKey, message, signature []byte) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		var digest []byte
		switch k.Curve.Params().BitSize {
		case 256:
			sum := sha256.Sum256(message)
			digest = sum[:]
		case 384:
			sum := sha512.Sum384(message)
			digest = sum[:]
		default:
			return false
		}
		return ecdsa.VerifyASN1(k, digest, signature)
	case ed25519.PublicKey:
		return ed25519.Verify(k, message, signature)
	case *rsa.PublicKey:
		digest := sha256.Sum256(message)
		return k.Size() >= 256 && rsa.VerifyPKCS1v15(k, crypto.SHA256, digest[:], signature) == nil
	}
	return false
}
