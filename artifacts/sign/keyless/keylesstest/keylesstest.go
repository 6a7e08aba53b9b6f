// Package keylesstest is a local Sigstore for tests: a certificate authority, a certificate log, a timestamp authority and a transparency
// log, in memory and without a network. cosign accepts what it makes (see testscript/interop).
package keylesstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	casn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// World is one Sigstore: who has its trusted root trusts it.
type World struct {
	// Now is when everything is signed.
	Now time.Time

	ca, intermediate, tsaRoot, tsa issuer
	rekor, ctlog                   *ecdsa.PrivateKey
}

type issuer struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// Signing says what a bundle is to look like.
type Signing struct {
	// Identity (a URI) and Issuer go into the certificate.
	Identity, Issuer string
	// Predicate makes an in-toto attestation of that type about the message.
	Predicate string
	// NoTimestamp, NoLog and NoSCT leave evidence out.
	NoTimestamp, NoLog, NoSCT bool
	// NoPromise and NoProof leave half of a log entry out.
	NoPromise, NoProof bool
	// Usage is that of the certificate; code signing when zero.
	Usage x509.ExtKeyUsage
	// Age moves the certificate and every time into the past.
	Age time.Duration
}

// Root says what a trusted root lists. The zero value lists everything.
type Root struct {
	NoAuthority, NoTimestamper, NoLog, NoCertificateLog bool
}

// must keeps a builder of test data readable: nothing in it depends on input.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

// New makes a world that signs at now.
func New(now time.Time) *World {
	w := &World{Now: now, rekor: newKey(), ctlog: newKey()}
	authority := func(name string, parent *issuer, usage ...x509.ExtKeyUsage) issuer {
		self := issuer{key: newKey()}
		c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"local"}}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(9, 0, 0),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, ExtKeyUsage: usage}
		by, key := c, self.key
		if parent != nil {
			by, key = parent.cert, parent.key
		}
		self.cert = certificate(c, by, &self.key.PublicKey, key)
		return self
	}
	w.ca = authority("ca", nil)
	w.intermediate = authority("ca intermediate", &w.ca, x509.ExtKeyUsageCodeSigning)
	w.tsaRoot = authority("tsa root", nil)
	w.tsa = issuer{key: newKey()}
	usage := must(asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}))
	w.tsa.cert = certificate(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "tsa", Organization: []string{"local"}}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(9, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}}}, w.tsaRoot.cert, &w.tsa.key.PublicKey, w.tsaRoot.key)
	return w
}

func certificate(c, parent *x509.Certificate, pub *ecdsa.PublicKey, key *ecdsa.PrivateKey) *x509.Certificate {
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, c, parent, pub, key))))
}

func sign(key *ecdsa.PrivateKey, data []byte) []byte {
	digest := sha256.Sum256(data)
	return must(key.Sign(rand.Reader, digest[:], crypto.SHA256))
}

func spki(key *ecdsa.PrivateKey) []byte { return must(x509.MarshalPKIXPublicKey(&key.PublicKey)) }

func keyID(key *ecdsa.PrivateKey) []byte {
	sum := sha256.Sum256(spki(key))
	return sum[:]
}

type object = map[string]any

// TrustedRoot is what a verifier of this world pins.
func (w *World) TrustedRoot(r Root) []byte {
	valid := object{"start": w.Now.AddDate(-1, 0, 0).UTC().Format(time.RFC3339)}
	authority := func(chain ...*x509.Certificate) []object {
		var certificates []object
		for _, c := range chain {
			certificates = append(certificates, object{"rawBytes": c.Raw})
		}
		return []object{{"subject": object{"organization": "local", "commonName": "local"}, "uri": "https://ca.example", "certChain": object{"certificates": certificates}, "validFor": valid}}
	}
	log := func(key *ecdsa.PrivateKey) []object {
		return []object{{"baseUrl": "https://log.example", "hashAlgorithm": "SHA2_256", "publicKey": object{"rawBytes": spki(key), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}, "logId": object{"keyId": keyID(key)}}}
	}
	root := object{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
	if !r.NoAuthority {
		root["certificateAuthorities"] = authority(w.intermediate.cert, w.ca.cert)
	}
	if !r.NoTimestamper {
		root["timestampAuthorities"] = authority(w.tsa.cert, w.tsaRoot.cert)
	}
	if !r.NoLog {
		root["tlogs"] = log(w.rekor)
	}
	if !r.NoCertificateLog {
		root["ctlogs"] = log(w.ctlog)
	}
	return must(json.Marshal(root))
}

// Sign makes a bundle over message.
func (w *World) Sign(message []byte, s Signing) []byte {
	now := w.Now.Add(-s.Age)
	key := newKey()
	leaf := w.leaf(key, now, s)
	payload, signature := []byte(nil), []byte(nil)
	digest := sha256.Sum256(message)
	bundle := object{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json"}
	if s.Predicate == "" {
		signature = sign(key, message)
		bundle["messageSignature"] = object{"messageDigest": object{"algorithm": "SHA2_256", "digest": digest[:]}, "signature": signature}
	} else {
		const payloadType = "application/vnd.in-toto+json"
		payload = must(json.Marshal(object{"_type": "https://in-toto.io/Statement/v1", "predicateType": s.Predicate, "predicate": object{},
			"subject": []object{{"name": "manifest.json", "digest": object{"sha256": fmt.Sprintf("%x", digest)}}}}))
		signature = sign(key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload))
		bundle["dsseEnvelope"] = object{"payload": payload, "payloadType": payloadType, "signatures": []object{{"sig": signature}}}
	}
	material := object{"certificate": object{"rawBytes": leaf.Raw}}
	if !s.NoLog {
		material["tlogEntries"] = []object{w.entry(message, payload, signature, leaf, now, s)}
	}
	if !s.NoTimestamp {
		material["timestampVerificationData"] = object{"rfc3161Timestamps": []object{{"signedTimestamp": w.Timestamp(signature, now)}}}
	}
	bundle["verificationMaterial"] = material
	return must(json.Marshal(bundle))
}

// leaf makes a certificate for ten minutes, and has the certificate log sign it first.
func (w *World) leaf(key *ecdsa.PrivateKey, now time.Time, s Signing) *x509.Certificate {
	usage := s.Usage
	if usage == 0 {
		usage = x509.ExtKeyUsageCodeSigning
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(77), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(9 * time.Minute), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		URIs:            []*url.URL{must(url.Parse(s.Identity))},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: must(asn1.MarshalWithParams(s.Issuer, "utf8"))}}}
	cert := certificate(c, w.intermediate.cert, &key.PublicKey, w.intermediate.key)
	if s.NoSCT {
		return cert
	}
	at := uint64(now.UnixMilli())
	issuerKey := sha256.Sum256(w.intermediate.cert.RawSubjectPublicKeyInfo)
	tbs := cert.RawTBSCertificate
	m := binary.BigEndian.AppendUint64([]byte{0, 0}, at)
	m = slices.Concat(m, []byte{0, 1}, issuerKey[:], []byte{byte(len(tbs) >> 16), byte(len(tbs) >> 8), byte(len(tbs))}, tbs, []byte{0, 0})
	signature := sign(w.ctlog, m)
	sct := binary.BigEndian.AppendUint64(slices.Concat([]byte{0}, keyID(w.ctlog)), at)
	sct = slices.Concat(sct, []byte{0, 0, 4, 3, byte(len(signature) >> 8), byte(len(signature))}, signature)
	list := slices.Concat([]byte{byte((len(sct) + 2) >> 8), byte(len(sct) + 2), byte(len(sct) >> 8), byte(len(sct))}, sct)
	c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: must(asn1.Marshal(list))})
	return certificate(c, w.intermediate.cert, &key.PublicKey, w.intermediate.key)
}

// entry logs a signature as the second leaf of a tree of three.
func (w *World) entry(message, payload, signature []byte, leaf *x509.Certificate, now time.Time, s Signing) object {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	hash := func(data []byte) object {
		return object{"algorithm": "sha256", "value": fmt.Sprintf("%x", sha256.Sum256(data))}
	}
	kind := "hashedrekord"
	spec := object{"data": object{"hash": hash(message)}, "signature": object{"content": signature, "publicKey": object{"content": certificate}}}
	if payload != nil {
		kind = "dsse"
		spec = object{"payloadHash": hash(payload), "envelopeHash": hash(payload), "signatures": []object{{"signature": base64.StdEncoding.EncodeToString(signature), "verifier": certificate}}}
	}
	// Maps are written in the order of their keys, which makes this the canonical form.
	body := must(json.Marshal(object{"apiVersion": "0.0.1", "kind": kind, "spec": spec}))
	entry := object{"logIndex": "1", "logId": object{"keyId": keyID(w.rekor)}, "kindVersion": object{"kind": kind, "version": "0.0.1"}, "integratedTime": fmt.Sprint(now.Unix()), "canonicalizedBody": body}
	if !s.NoPromise {
		promise := fmt.Sprintf(`{"body":"%s","integratedTime":%d,"logID":"%x","logIndex":1}`, base64.StdEncoding.EncodeToString(body), now.Unix(), keyID(w.rekor))
		entry["inclusionPromise"] = object{"signedEntryTimestamp": sign(w.rekor, []byte(promise))}
	}
	if !s.NoProof {
		leafHash := func(data []byte) [32]byte { return sha256.Sum256(append([]byte{0}, data...)) }
		node := func(a, b [32]byte) [32]byte { return sha256.Sum256(slices.Concat([]byte{1}, a[:], b[:])) }
		first, third := leafHash([]byte("first")), leafHash([]byte("third"))
		root := node(node(first, leafHash(body)), third)
		text := fmt.Sprintf("log.example - 1\n3\n%s\n", base64.StdEncoding.EncodeToString(root[:]))
		note := text + "\n\u2014 log.example " + base64.StdEncoding.EncodeToString(slices.Concat(keyID(w.rekor)[:4], sign(w.rekor, []byte(text)))) + "\n"
		entry["inclusionProof"] = object{"logIndex": "1", "rootHash": root[:], "treeSize": "3", "hashes": [][]byte{first[:], third[:]}, "checkpoint": object{"envelope": note}}
	}
	return entry
}

// Timestamp is an RFC 3161 response over message.
func (w *World) Timestamp(message []byte, now time.Time) []byte {
	sum := sha256.Sum256(message)
	sha := asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	explicit := casn1.Tag(0).ContextSpecific().Constructed()
	algorithm := func(b *cryptobyte.Builder, oid asn1.ObjectIdentifier) {
		b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oid) })
	}
	var info cryptobyte.Builder
	info.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(1)
		b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier{1, 2, 3})
		b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
			algorithm(b, sha)
			b.AddASN1OctetString(sum[:])
		})
		b.AddASN1Int64(9)
		b.AddASN1GeneralizedTime(now.UTC())
	})
	content := must(info.Bytes())
	contentSum := sha256.Sum256(content)
	certSum := sha256.Sum256(w.tsa.cert.Raw)
	attribute := func(oid asn1.ObjectIdentifier, value func(*cryptobyte.Builder)) []byte {
		var b cryptobyte.Builder
		b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oid)
			b.AddASN1(casn1.SET, value)
		})
		return must(b.Bytes())
	}
	attributes := [][]byte{
		attribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 3}, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4})
		}),
		attribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}, func(b *cryptobyte.Builder) { b.AddASN1OctetString(contentSum[:]) }),
		attribute(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 2, 47}, func(b *cryptobyte.Builder) {
			b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1OctetString(certSum[:]) })
				})
			})
		}),
	}
	slices.SortFunc(attributes, slices.Compare) // DER sorts a SET OF
	set := func(tag casn1.Tag) func(*cryptobyte.Builder) {
		return func(b *cryptobyte.Builder) {
			b.AddASN1(tag, func(b *cryptobyte.Builder) { b.AddBytes(slices.Concat(attributes...)) })
		}
	}
	var toSign cryptobyte.Builder
	set(casn1.SET)(&toSign)
	signature := sign(w.tsa.key, must(toSign.Bytes()))

	var response cryptobyte.Builder
	response.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1Int64(0) })
		b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2})
			b.AddASN1(explicit, func(b *cryptobyte.Builder) {
				b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1Int64(3)
					b.AddASN1(casn1.SET, func(b *cryptobyte.Builder) { algorithm(b, sha) })
					b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
						b.AddASN1ObjectIdentifier(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 16, 1, 4})
						b.AddASN1(explicit, func(b *cryptobyte.Builder) { b.AddASN1OctetString(content) })
					})
					b.AddASN1(explicit, func(b *cryptobyte.Builder) { b.AddBytes(w.tsa.cert.Raw) })
					b.AddASN1(casn1.SET, func(b *cryptobyte.Builder) {
						b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
							b.AddASN1Int64(1)
							b.AddASN1(casn1.SEQUENCE, func(b *cryptobyte.Builder) {
								b.AddBytes(w.tsa.cert.RawIssuer)
								b.AddASN1BigInt(w.tsa.cert.SerialNumber)
							})
							algorithm(b, sha)
							set(explicit)(b)
							algorithm(b, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2})
							b.AddASN1OctetString(signature)
						})
					})
				})
			})
		})
	})
	return must(response.Bytes())
}
