package keyless

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/cryptobyte"
	casn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// logEntry is an entry of Rekor in a bundle. Numbers are text, as protobuf writes 64-bit ones in JSON.
type logEntry struct {
	Index int64  `json:"logIndex,string"`
	ID    idJSON `json:"logId"`
	Kind  struct {
		Kind    string `json:"kind"`
		Version string `json:"version"`
	} `json:"kindVersion"`
	Time    int64 `json:"integratedTime,string"`
	Promise *struct {
		Signed []byte `json:"signedEntryTimestamp"`
	} `json:"inclusionPromise"`
	Proof *struct {
		Index      int64    `json:"logIndex,string"`
		Root       []byte   `json:"rootHash"`
		Size       int64    `json:"treeSize,string"`
		Hashes     [][]byte `json:"hashes"`
		Checkpoint struct {
			Envelope string `json:"envelope"`
		} `json:"checkpoint"`
	} `json:"inclusionProof"`
	Body []byte `json:"canonicalizedBody"`
}

// logged verifies an entry: it is about this signature, and the log promised to include it or proves that it has. The time is that of
// the promise, which signs it, else zero.
func (r *Root) logged(e *logEntry, s *signed) (time.Time, error) {
	if err := e.about(s); err != nil {
		return time.Time{}, err
	}
	var when time.Time
	if e.Promise != nil {
		when = time.Unix(e.Time, 0)
	}
	key, err := find(r.logs, e.ID.Key, when)
	if err != nil {
		return time.Time{}, err
	}
	if e.Promise == nil && e.Proof == nil {
		return time.Time{}, errors.New("neither a promise nor a proof of inclusion")
	}
	if e.Promise != nil {
		// The canonical JSON (RFC 8785) of these four: no text in them needs an escape.
		promised := fmt.Sprintf(`{"body":"%s","integratedTime":%d,"logID":"%x","logIndex":%d}`, base64.StdEncoding.EncodeToString(e.Body), e.Time, e.ID.Key, e.Index)
		if !verifySignature(key, []byte(promised), e.Promise.Signed) {
			return time.Time{}, errors.New("the promise of inclusion is not signed by the log")
		}
	}
	if p := e.Proof; p != nil {
		root, size, err := checkpoint(p.Checkpoint.Envelope, func(text, sig []byte) bool { return verifySignature(key, text, sig) })
		if err != nil {
			return time.Time{}, err
		}
		if !bytes.Equal(root, p.Root) || size != p.Size {
			return time.Time{}, errors.New("the checkpoint is for another tree")
		}
		if !included(e.Body, p.Index, p.Size, p.Hashes, root) {
			return time.Time{}, errors.New("the proof does not lead to the root of the log")
		}
	}
	return when, nil
}

// checkpoint reads a signed note (transparency.dev checkpoint): origin, size, root, an empty line, signatures. The log signs the text
// up to the empty line; four bytes before each signature only hint at the key.
func checkpoint(note string, signed func(text, signature []byte) bool) (root []byte, size int64, err error) {
	bad := errors.New("not a checkpoint that can be read")
	text, signatures, ok := strings.Cut(note, "\n\n")
	lines := strings.Split(text, "\n")
	if !ok || len(lines) < 3 {
		return nil, 0, bad
	}
	if size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return nil, 0, bad
	}
	if root, err = base64.StdEncoding.DecodeString(lines[2]); err != nil {
		return nil, 0, bad
	}
	for line := range strings.Lines(signatures) {
		_, encoded, ok := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\u2014 "), " ")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if ok && err == nil && len(raw) > 4 && signed([]byte(text+"\n"), raw[4:]) {
			return root, size, nil
		}
	}
	return nil, 0, errors.New("the checkpoint is not signed by the log")
}

// included checks a Merkle audit path (RFC 9162, 2.1.3.2).
func included(leaf []byte, index, size int64, path [][]byte, root []byte) bool {
	if index < 0 || index >= size {
		return false
	}
	node := sha256.Sum256(append([]byte{0}, leaf...))
	fn, sn := index, size-1
	for _, p := range path {
		if sn == 0 || len(p) != sha256.Size {
			return false
		}
		if fn&1 == 1 || fn == sn {
			node = sha256.Sum256(slices.Concat([]byte{1}, p, node[:]))
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			node = sha256.Sum256(slices.Concat([]byte{1}, node[:], p))
		}
		fn, sn = fn>>1, sn>>1
	}
	return sn == 0 && bytes.Equal(node[:], root)
}

// The bodies of entries: what Rekor 1 (0.0.1) and Rekor 2 (0.0.2) say of a signature or an attestation.
type (
	bodyJSON struct {
		Version string          `json:"apiVersion"`
		Kind    string          `json:"kind"`
		Spec    json.RawMessage `json:"spec"`
	}
	hexHash struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"value"`
	}
	rawHash struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	}
	content struct {
		Content  []byte `json:"content"`
		Verifier struct {
			Certificate rawJSON `json:"x509Certificate"`
		} `json:"verifier"`
	}
	hashedrekord1 struct {
		Data struct {
			Hash hexHash `json:"hash"`
		} `json:"data"`
		Signature struct {
			Content []byte `json:"content"`
			Key     struct {
				Content []byte `json:"content"`
			} `json:"publicKey"`
		} `json:"signature"`
	}
	hashedrekord2 struct {
		V2 struct {
			Data      rawHash `json:"data"`
			Signature content `json:"signature"`
		} `json:"hashedRekordV002"`
	}
	dsse1 struct {
		Payload    hexHash `json:"payloadHash"`
		Signatures []struct {
			Signature []byte `json:"signature"`
			Verifier  []byte `json:"verifier"`
		} `json:"signatures"`
	}
	dsse2 struct {
		V2 struct {
			Payload    rawHash   `json:"payloadHash"`
			Signatures []content `json:"signatures"`
		} `json:"dsseV002"`
	}
)

// about checks that the entry is the one of this signature: the same digest, signature and certificate.
func (e *logEntry) about(s *signed) error {
	var body bodyJSON
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return errors.New("its body cannot be read")
	}
	if body.Kind != e.Kind.Kind || body.Version != e.Kind.Version {
		return fmt.Errorf("its body is of kind %s %s, not %s %s", body.Kind, body.Version, e.Kind.Kind, e.Kind.Version)
	}
	what, kind := s.message, "hashedrekord"
	if s.payload != nil {
		what, kind = s.payload, "dsse"
	}
	if body.Kind != kind {
		return fmt.Errorf("kind %q, not %q", body.Kind, kind)
	}
	sum := sha256.Sum256(what)
	var digest, signature, certificate []byte
	var err error
	inHex := func(h hexHash) []byte {
		raw, hexErr := hex.DecodeString(h.Value)
		if h.Algorithm != "sha256" || hexErr != nil {
			return nil
		}
		return raw
	}
	inBytes := func(h rawHash) []byte {
		if h.Algorithm != "SHA2_256" {
			return nil
		}
		return h.Digest
	}
	switch body.Kind + " " + body.Version {
	case "hashedrekord 0.0.1":
		var spec hashedrekord1
		err = json.Unmarshal(body.Spec, &spec)
		digest, signature, certificate = inHex(spec.Data.Hash), spec.Signature.Content, inPEM(spec.Signature.Key.Content)
	case "hashedrekord 0.0.2":
		var spec hashedrekord2
		err = json.Unmarshal(body.Spec, &spec)
		digest, signature, certificate = inBytes(spec.V2.Data), spec.V2.Signature.Content, spec.V2.Signature.Verifier.Certificate.Raw
	case "dsse 0.0.1":
		var spec dsse1
		err = json.Unmarshal(body.Spec, &spec)
		if len(spec.Signatures) == 1 {
			digest, signature, certificate = inHex(spec.Payload), spec.Signatures[0].Signature, inPEM(spec.Signatures[0].Verifier)
		}
	case "dsse 0.0.2":
		var spec dsse2
		err = json.Unmarshal(body.Spec, &spec)
		if len(spec.V2.Signatures) == 1 {
			digest, signature, certificate = inBytes(spec.V2.Payload), spec.V2.Signatures[0].Content, spec.V2.Signatures[0].Verifier.Certificate.Raw
		}
	default:
		return fmt.Errorf("version %q of kind %s is not known", body.Version, body.Kind)
	}
	if err != nil {
		return errors.New("its body cannot be read")
	}
	if !bytes.Equal(digest, sum[:]) || !bytes.Equal(signature, s.signature) || !bytes.Equal(certificate, s.certificate.Raw) {
		return errors.New("it is for another signature")
	}
	return nil
}

func inPEM(data []byte) []byte {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil
	}
	return block.Bytes
}

// oidSCTs is the extension with the signed certificate timestamps (RFC 6962, 3.3).
var oidSCTs = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}

// checkCertificateLogs checks that one of the certificate logs, when there are any, has the certificate: it signed a timestamp of it.
func (r *Root) checkCertificateLogs(c, issuer *x509.Certificate) error {
	if len(r.certificateLogs) == 0 {
		return nil
	}
	i := slices.IndexFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(oidSCTs) })
	if i < 0 {
		return errors.New("the certificate has no timestamp of a certificate log, and the trusted root lists such logs")
	}
	var octets cryptobyte.String
	var list cryptobyte.String
	value := cryptobyte.String(c.Extensions[i].Value)
	if !value.ReadASN1(&octets, casn1.OCTET_STRING) || !value.Empty() || !octets.ReadUint16LengthPrefixed(&list) || !octets.Empty() {
		return errors.New("the timestamps of certificate logs cannot be read")
	}
	precert, err := withoutSCTs(c.RawTBSCertificate)
	if err != nil {
		return err
	}
	for !list.Empty() {
		var sct, extensions, signature cryptobyte.String
		var version uint8
		var id []byte
		var at uint64
		var algorithm uint16
		if !list.ReadUint16LengthPrefixed(&sct) {
			return errors.New("the timestamps of certificate logs cannot be read")
		}
		if !sct.ReadUint8(&version) || version != 0 || !sct.ReadBytes(&id, 32) || !sct.ReadUint64(&at) || !sct.ReadUint16LengthPrefixed(&extensions) ||
			!sct.ReadUint16(&algorithm) || !sct.ReadUint16LengthPrefixed(&signature) || !sct.Empty() {
			continue
		}
		key, err := find(r.certificateLogs, id, time.UnixMilli(int64(at)))
		if err != nil {
			continue
		}
		if verifySignature(key, sctMessage(at, issuer, precert, extensions), signature) {
			return nil
		}
	}
	return errors.New("no certificate log of the trusted root has the certificate")
}

// sctMessage is what a certificate log signs about a certificate before it is issued (RFC 6962, 3.2).
func sctMessage(at uint64, issuer *x509.Certificate, precert, extensions []byte) []byte {
	hash := sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
	m := []byte{0, 0} // version 1, certificate timestamp
	m = binary.BigEndian.AppendUint64(m, at)
	m = append(m, 0, 1) // entry of a certificate that is about to be issued
	m = append(m, hash[:]...)
	m = append(m, byte(len(precert)>>16), byte(len(precert)>>8), byte(len(precert)))
	m = append(m, precert...)
	m = binary.BigEndian.AppendUint16(m, uint16(len(extensions)))
	return append(m, extensions...)
}

// withoutSCTs is a TBSCertificate as it was before the timestamps of certificate logs were added.
func withoutSCTs(tbs []byte) ([]byte, error) {
	bad := errors.New("the certificate cannot be taken apart")
	extensionsTag := casn1.Tag(3).ContextSpecific().Constructed()
	var fields cryptobyte.String
	in := cryptobyte.String(tbs)
	if !in.ReadASN1(&fields, casn1.SEQUENCE) {
		return nil, bad
	}
	var before, kept []byte
	for !fields.Empty() {
		var element cryptobyte.String
		var tag casn1.Tag
		if !fields.ReadAnyASN1Element(&element, &tag) {
			return nil, bad
		}
		if tag != extensionsTag {
			before = append(before, element...)
			continue
		}
		var explicit, list cryptobyte.String
		if !element.ReadASN1(&explicit, extensionsTag) || !explicit.ReadASN1(&list, casn1.SEQUENCE) {
			return nil, bad
		}
		for !list.Empty() {
			var raw, extension cryptobyte.String
			var oid asn1.ObjectIdentifier
			if !list.ReadASN1Element(&raw, casn1.SEQUENCE) {
				return nil, bad
			}
			inner := raw
			if !inner.ReadASN1(&extension, casn1.SEQUENCE) || !extension.ReadASN1ObjectIdentifier(&oid) {
				return nil, bad
			}
			if !oid.Equal(oidSCTs) {
				kept = append(kept, raw...)
			}
		}
	}
	var b cryptobyte.Builder
	b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(before)
		b.AddASN1(extensionsTag, func(b *cryptobyte.Builder) {
			b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(kept) })
		})
	})
	return b.Bytes()
}
