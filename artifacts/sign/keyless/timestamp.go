package keyless

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/cryptobyte"
	casn1 "golang.org/x/crypto/cryptobyte/asn1"

	_ "crypto/sha256" // hashes of timestamps
	_ "crypto/sha512"
)

// The identifiers of RFC 5652 and RFC 3161.
var (
	oidSignedData    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidTimestamp     = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4}
	oidContentType   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}
	oidMessageDigest = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
)

var errToken = errors.New("not an RFC 3161 timestamp that can be read")

// hashOf knows the hashes that are good enough for a timestamp.
func hashOf(oid asn1.ObjectIdentifier) (crypto.Hash, error) {
	switch oid.String() {
	case "2.16.840.1.101.3.4.2.1":
		return crypto.SHA256, nil
	case "2.16.840.1.101.3.4.2.2":
		return crypto.SHA384, nil
	case "2.16.840.1.101.3.4.2.3":
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("hash %s is not SHA-2", oid)
}

func sum(h crypto.Hash, data []byte) []byte {
	w := h.New()
	w.Write(data)
	return w.Sum(nil)
}

// token is a timestamp token taken apart (RFC 3161, in CMS of RFC 5652). Nothing of it is verified.
type token struct {
	content      []byte // TSTInfo
	certificates []*x509.Certificate
	issuer       []byte // with serial, who signed
	serial       *big.Int
	keyID        []byte // or this
	hash         crypto.Hash
	attributes   []byte // as they are signed
	digest       []byte // of content, by the attributes
	signature    []byte
}

// parseToken reads a TimeStampResp.
func parseToken(der []byte) (*token, error) {
	var response, status, info, explicit, data, encapsulated, octets, signers, signer cryptobyte.String
	var contentType asn1.ObjectIdentifier
	in := cryptobyte.String(der)
	var code, version int
	if !in.ReadASN1(&response, casn1.SEQUENCE) || !in.Empty() || !response.ReadASN1(&status, casn1.SEQUENCE) || !status.ReadASN1Integer(&code) {
		return nil, errToken
	}
	if code != 0 && code != 1 {
		return nil, fmt.Errorf("the authority refused to stamp (status %d)", code)
	}
	if !response.ReadASN1(&info, casn1.SEQUENCE) || !response.Empty() || !info.ReadASN1ObjectIdentifier(&contentType) || !contentType.Equal(oidSignedData) ||
		!info.ReadASN1(&explicit, casn1.Tag(0).ContextSpecific().Constructed()) || !explicit.ReadASN1(&data, casn1.SEQUENCE) ||
		!data.ReadASN1Integer(&version) || !data.SkipASN1(casn1.SET) ||
		!data.ReadASN1(&encapsulated, casn1.SEQUENCE) || !encapsulated.ReadASN1ObjectIdentifier(&contentType) || !contentType.Equal(oidTimestamp) ||
		!encapsulated.ReadASN1(&explicit, casn1.Tag(0).ContextSpecific().Constructed()) || !explicit.ReadASN1(&octets, casn1.OCTET_STRING) {
		return nil, errToken
	}
	t := &token{content: octets}
	var certificates cryptobyte.String
	var present bool
	if !data.ReadOptionalASN1(&certificates, &present, casn1.Tag(0).ContextSpecific().Constructed()) {
		return nil, errToken
	}
	for present && !certificates.Empty() {
		var raw cryptobyte.String
		if !certificates.ReadASN1Element(&raw, casn1.SEQUENCE) {
			return nil, errToken
		}
		c, err := x509.ParseCertificate(raw)
		if err != nil {
			return nil, fmt.Errorf("a certificate in it cannot be read: %w", err)
		}
		t.certificates = append(t.certificates, c)
	}
	if !data.SkipOptionalASN1(casn1.Tag(1).ContextSpecific().Constructed()) || !data.ReadASN1(&signers, casn1.SET) || !data.Empty() ||
		!signers.ReadASN1(&signer, casn1.SEQUENCE) || !signers.Empty() || !signer.ReadASN1Integer(&version) {
		return nil, errToken
	}
	return t, t.parseSigner(signer)
}

func (t *token) parseSigner(signer cryptobyte.String) error {
	var id, algorithm, attributes, signature cryptobyte.String
	var oid asn1.ObjectIdentifier
	var err error
	if keyID := casn1.Tag(0).ContextSpecific(); signer.PeekASN1Tag(keyID) {
		if !signer.ReadASN1(&id, keyID) {
			return errToken
		}
		t.keyID = id
	} else {
		var issuer cryptobyte.String
		t.serial = new(big.Int)
		if !signer.ReadASN1(&id, casn1.SEQUENCE) || !id.ReadASN1Element(&issuer, casn1.SEQUENCE) || !id.ReadASN1Integer(t.serial) || !id.Empty() {
			return errToken
		}
		t.issuer = issuer
	}
	if !signer.ReadASN1(&algorithm, casn1.SEQUENCE) || !algorithm.ReadASN1ObjectIdentifier(&oid) {
		return errToken
	}
	if t.hash, err = hashOf(oid); err != nil {
		return err
	}
	if !signer.ReadASN1Element(&attributes, casn1.Tag(0).ContextSpecific().Constructed()) || !signer.SkipASN1(casn1.SEQUENCE) ||
		!signer.ReadASN1(&signature, casn1.OCTET_STRING) || !signer.SkipOptionalASN1(casn1.Tag(1).ContextSpecific().Constructed()) || !signer.Empty() {
		return errToken
	}
	t.signature = signature
	// The signature is over the attributes with the tag of a SET, not the one they have in the message (RFC 5652, 5.4).
	t.attributes = bytes.Clone(attributes)
	t.attributes[0] = byte(casn1.SET)
	return t.parseAttributes()
}

func (t *token) parseAttributes() error {
	var set cryptobyte.String
	all := cryptobyte.String(t.attributes)
	if !all.ReadASN1(&set, casn1.SET) {
		return errToken
	}
	typed := false
	for !set.Empty() {
		var attribute, values, digest cryptobyte.String
		var oid, contentType asn1.ObjectIdentifier
		if !set.ReadASN1(&attribute, casn1.SEQUENCE) || !attribute.ReadASN1ObjectIdentifier(&oid) || !attribute.ReadASN1(&values, casn1.SET) {
			return errToken
		}
		switch {
		case oid.Equal(oidContentType):
			if typed || !values.ReadASN1ObjectIdentifier(&contentType) || !values.Empty() || !contentType.Equal(oidTimestamp) {
				return errToken
			}
			typed = true
		case oid.Equal(oidMessageDigest):
			if t.digest != nil || !values.ReadASN1(&digest, casn1.OCTET_STRING) || !values.Empty() {
				return errToken
			}
			t.digest = digest
		}
	}
	if !typed || !bytes.Equal(t.digest, sum(t.hash, t.content)) {
		return errors.New("the signed digest is not that of the timestamp")
	}
	return nil
}

// names reports whether c is the certificate that signed, by the token.
func (t *token) names(c *x509.Certificate) bool {
	if t.keyID != nil {
		return bytes.Equal(t.keyID, c.SubjectKeyId)
	}
	return bytes.Equal(t.issuer, c.RawIssuer) && t.serial.Cmp(c.SerialNumber) == 0
}

// signedBy checks the signature over the attributes.
func (t *token) signedBy(c *x509.Certificate) bool {
	digest := sum(t.hash, t.attributes)
	switch k := c.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, digest, t.signature)
	case *rsa.PublicKey:
		return k.Size() >= 256 && rsa.VerifyPKCS1v15(k, t.hash, digest, t.signature) == nil
	}
	return false
}

// info reads TSTInfo: the time, and that it is about message.
func (t *token) info(message []byte) (time.Time, error) {
	var info, imprint, algorithm, hashed, at cryptobyte.String
	var version int
	var oid asn1.ObjectIdentifier
	in := cryptobyte.String(t.content)
	if !in.ReadASN1(&info, casn1.SEQUENCE) || !in.Empty() || !info.ReadASN1Integer(&version) || version != 1 || !info.SkipASN1(casn1.OBJECT_IDENTIFIER) ||
		!info.ReadASN1(&imprint, casn1.SEQUENCE) || !imprint.ReadASN1(&algorithm, casn1.SEQUENCE) || !algorithm.ReadASN1ObjectIdentifier(&oid) ||
		!imprint.ReadASN1(&hashed, casn1.OCTET_STRING) || !info.SkipASN1(casn1.INTEGER) || !info.ReadASN1(&at, casn1.GeneralizedTime) {
		return time.Time{}, errToken
	}
	h, err := hashOf(oid)
	if err != nil {
		return time.Time{}, err
	}
	if !bytes.Equal(hashed, sum(h, message)) {
		return time.Time{}, errors.New("it is for another signature")
	}
	// Parsing takes the fraction of a second that the profile of cryptobyte does not.
	when, err := time.Parse("20060102150405Z", string(at))
	if err != nil {
		return time.Time{}, errToken
	}
	return when, nil
}

// timestamp verifies a timestamp over signature and returns its time.
func (r *Root) timestamp(der, signature []byte) (time.Time, error) {
	t, err := parseToken(der)
	if err != nil {
		return time.Time{}, err
	}
	when, err := t.info(signature)
	if err != nil {
		return time.Time{}, err
	}
	err = errors.New("not signed by a timestamp authority of the trusted root")
	for _, a := range r.timestampers {
		for _, c := range append(t.certificates, a.chain...) {
			if !t.names(c) || !t.signedBy(c) {
				continue
			}
			_, chainErr := r.chain([]authority{a}, c, when, x509.ExtKeyUsageTimeStamping)
			if chainErr == nil {
				return when, nil
			}
			err = fmt.Errorf("its certificate is not by a timestamp authority of the trusted root: %w", chainErr)
		}
	}
	return time.Time{}, err
}
