package sign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature"
)

var message = []byte(`{"org":"acme"}`)

func newKey(t testing.TB) (*ecdsa.PrivateKey, PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, pub
}

func mustSign(t testing.TB, key crypto.Signer) *Signature {
	t.Helper()
	s, err := Sign(key, message)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSignVerify(t *testing.T) {
	key, pub := newKey(t)
	_, other := newKey(t)
	s := mustSign(t, key)
	if again := mustSign(t, key); !bytes.Equal(again.Bundle, s.Bundle) || !bytes.Equal(again.Detached, s.Detached) {
		t.Error("signing twice gives two signatures")
	}
	for _, keys := range [][]PublicKey{{pub}, {other, pub}} {
		if k, err := VerifyBundle(s.Bundle, keys, message); err != nil || k.ID() != pub.ID() {
			t.Errorf("bundle: key %s, error %v", k.ID(), err)
		}
		if k, err := VerifyDetached(s.Detached, keys, message); err != nil || k.ID() != pub.ID() {
			t.Errorf("detached: key %s, error %v", k.ID(), err)
		}
	}
	if _, err := VerifyBundle(s.Bundle, []PublicKey{other}, message); !errors.Is(err, ErrUnknownSigner) {
		t.Errorf("bundle with another key: %v", err)
	}
	if _, err := VerifyDetached(s.Detached, []PublicKey{other}, message); !errors.Is(err, ErrBadSignature) {
		t.Errorf("detached with another key: %v", err)
	}
	changed := append(bytes.Clone(message), ' ')
	if _, err := VerifyBundle(s.Bundle, []PublicKey{pub}, changed); !errors.Is(err, ErrBadSignature) {
		t.Errorf("bundle over other bytes: %v", err)
	}
	if _, err := VerifyDetached(s.Detached, []PublicKey{pub}, changed); !errors.Is(err, ErrBadSignature) {
		t.Errorf("detached over other bytes: %v", err)
	}
	b, err := ParseBundle(s.Bundle)
	if err != nil || !SameSignature(s.Detached, b) || SameSignature(nil, b) || SameSignature(s.Detached, nil) {
		t.Errorf("the two forms do not hold the same signature (%v)", err)
	}
	if b.KeyID() != pub.ID() || !strings.HasPrefix(pub.ID(), pub.ShortID()) {
		t.Errorf("key id %q, not %q", b.KeyID(), pub.ID())
	}
}

// Any single changed byte, and any cut, of a signature must be noticed.
func TestEveryByteOfASignatureCounts(t *testing.T) {
	key, pub := newKey(t)
	s := mustSign(t, key)
	for i := range s.Bundle {
		for _, flip := range []byte{0x01, 0x02, 0x20, 0x40, 0x80, 0xff} {
			data := bytes.Clone(s.Bundle)
			data[i] ^= flip
			if _, err := VerifyBundle(data, []PublicKey{pub}, message); err == nil {
				t.Fatalf("byte %d of the bundle changed from %q to %q and it verifies", i, s.Bundle[i], data[i])
			}
		}
		if _, err := VerifyBundle(s.Bundle[:i], []PublicKey{pub}, message); err == nil {
			t.Fatalf("the first %d bytes of a bundle verify", i)
		}
	}
	for i := range s.Detached {
		for _, flip := range []byte{0x01, 0x02, 0x20, 0x40, 0x80, 0xff} {
			data := bytes.Clone(s.Detached)
			data[i] ^= flip
			if _, err := VerifyDetached(data, []PublicKey{pub}, message); err == nil {
				t.Fatalf("byte %d of the signature changed and it verifies", i)
			}
		}
	}
	if _, err := VerifyDetached(append(bytes.Clone(s.Detached), '\n'), []PublicKey{pub}, message); err == nil {
		t.Error("a detached signature with a line end verifies")
	}
}

func TestEd25519IsVerifiedButNotMade(t *testing.T) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	detached := base64.StdEncoding.AppendEncode(nil, ed25519.Sign(key, message))
	if _, err := VerifyDetached(detached, []PublicKey{k}, message); err != nil {
		t.Errorf("pure Ed25519 signature: %v", err)
	}
	if _, err := Sign(key, message); err == nil || !strings.Contains(err.Error(), "P-256") {
		t.Errorf("Ed25519 key: %v", err)
	}
}

// badSigner answers with a signature over something else, as a broken hardware key might.
type badSigner struct{ *ecdsa.PrivateKey }

func (b badSigner) Sign(_ io.Reader, _ []byte, _ crypto.SignerOpts) ([]byte, error) {
	return b.PrivateKey.Sign(nil, make([]byte, 32), crypto.SHA256)
}

func TestSignChecksItsOwnWork(t *testing.T) {
	key, _ := newKey(t)
	if _, err := Sign(badSigner{key}, message); err == nil {
		t.Error("a signature that does not verify was handed out")
	}
}

func TestKeyTypes(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		key  crypto.PublicKey
		want string
	}{
		{"RSA", rsaKey.Public(), "an RSA key"},
		{"P-384", p384.Public(), "another curve than P-256"},
		{"nil", nil, "a key of type"},
		{"nil ECDSA", (*ecdsa.PublicKey)(nil), "another curve"},
		{"short Ed25519", ed25519.PublicKey("short"), "wrong length"},
	} {
		if _, err := NewPublicKey(tt.key); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The library that the other Sigstore tools are built on must agree with the standard library, both ways.
func TestSigstoreAgrees(t *testing.T) {
	key, pub := newKey(t)
	s := mustSign(t, key)
	raw, err := base64.StdEncoding.DecodeString(string(s.Detached))
	if err != nil {
		t.Fatal(err)
	}
	v, err := signature.LoadVerifier(key.Public(), crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.VerifySignature(bytes.NewReader(raw), bytes.NewReader(message)); err != nil {
		t.Errorf("sigstore does not verify our signature: %v", err)
	}
	signer, err := signature.LoadECDSASigner(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := signer.SignMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyDetached(base64.StdEncoding.AppendEncode(nil, theirs), []PublicKey{pub}, message); err != nil {
		t.Errorf("a signature by sigstore does not verify: %v", err)
	}
	// A sigstore signer fits the crypto.Signer that Sign wants.
	if s, err := Sign(signer, message); err != nil {
		t.Errorf("sign with a sigstore signer: %v", err)
	} else if _, err := VerifyBundle(s.Bundle, []PublicKey{pub}, message); err != nil {
		t.Errorf("bundle by a sigstore signer: %v", err)
	}
}

func TestParseBundle(t *testing.T) {
	key, pub := newKey(t)
	good := string(mustSign(t, key).Bundle)
	edit := func(old, new string) string {
		out := strings.Replace(good, old, new, 1)
		if out == good {
			t.Fatalf("the bundle has no %q", old)
		}
		return out
	}
	sum := sha256.Sum256(message)
	digest := `"digest":"` + base64.StdEncoding.EncodeToString(sum[:]) + `"`
	hint := `{"hint":"` + pub.Hint() + `"}`
	for _, tt := range []struct{ name, bundle, want string }{
		{"as made", good, ""},
		{"other spelling of the media type", edit(MediaType, mediaTypeLegacy), ""},
		{"white space", strings.ReplaceAll(good, `":`, `": `), ""},
		{"line end", good + "\n", "to the last"},
		{"trailing text", good + "}", "more bytes"},
		{"log entries", edit(`"publicKey"`, `"tlogEntries":[],"publicKey"`), ""},
		{"timestamps", edit(`"publicKey"`, `"timestampVerificationData":{"rfc3161Timestamps":[]},"publicKey"`), ""},
		{"no hint", edit(hint, "{}"), ""},
		{"empty", "", "not a JSON object"},
		{"array", "[]", "not a JSON object"},
		{"cut", good[:len(good)-1], "not valid JSON"},
		{"two objects", good + good, "more bytes"},
		{"old version", edit("bundle.v0.3", "bundle.v0.2"), "media type"},
		{"escaped media type", edit("application/", `application\/`), "an escape"},
		{"upper-case key", edit(`"mediaType"`, `"MediaType"`), "unknown key"},
		{"snake-case key", edit(`"mediaType"`, `"media_type"`), "unknown key"},
		{"repeated key", edit(`{"mediaType"`, `{"mediaType":"x","mediaType"`), "twice"},
		{"unknown key", edit(`{"mediaType"`, `{"note":1,"mediaType"`), "unknown key"},
		{"neither key nor certificate", edit(`"publicKey":`+hint, `"tlogEntries":[]`), "neither publicKey nor certificate"},
		{"key and certificate", edit(`"publicKey":`+hint, `"certificate":{"rawBytes":"AA=="},"publicKey":`+hint), "both publicKey and certificate"},
		{"null material", edit(`{"publicKey":`+hint+`}`, "null"), "not a JSON object"},
		{"null hint", edit(hint, `{"hint":null}`), `no text "hint"`},
		{"other digest algorithm", edit("SHA2_256", "SHA2_512"), "not SHA2_256"},
		{"short digest", edit(digest, `"digest":"AA=="`), "digest of 1 bytes"},
		{"digest is a number", edit(digest, `"digest":7`), `no text "digest"`},
		{"URL-safe base64", edit(digest, `"digest":"__8="`), "not standard base64"},
		{"base64 with a line end", edit(digest, `"digest":"AA\n=="`), "an escape"},
		{"attestation", `{"mediaType":"` + MediaType + `","verificationMaterial":{"publicKey":` + hint + `},"dsseEnvelope":{"payload":"","payloadType":"","signatures":[]}}`, "DSSE"},
		{"attestation with a line end", `{"mediaType":"` + MediaType + `","verificationMaterial":{"publicKey":` + hint + `},"dsseEnvelope":{"payload":"","payloadType":"","signatures":[]}}` + "\n", "DSSE"},
		{"attestation with two line ends", `{"mediaType":"` + MediaType + `","verificationMaterial":{"publicKey":` + hint + `},"dsseEnvelope":{"payload":"","payloadType":"","signatures":[]}}` + "\n\n", "to the last"},
		{"attestation and signature", edit(`"messageSignature"`, `"dsseEnvelope":{},"messageSignature"`), "both"},
		{"large", good + strings.Repeat(" ", MaxBundleSize), "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := VerifyBundle([]byte(tt.bundle), []PublicKey{pub}, message)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	// A certificate is nobody that a key knows, even when the key made the signature. Those who sign with one end the file with a line end.
	for _, end := range []string{"", "\n", "\r\n"} {
		certified := edit(`"publicKey":`+hint, `"certificate":{"rawBytes":"AA=="}`) + end
		if _, err := VerifyBundle([]byte(certified), []PublicKey{pub}, message); !errors.Is(err, ErrUnknownSigner) {
			t.Errorf("certificate with line end %q: %v", end, err)
		}
	}
	// A hint of no key that is known says nothing about the signature unless a known key made it; without a hint every key is tried.
	_, other := newKey(t)
	if _, err := VerifyBundle([]byte(edit(hint, `{"hint":"other"}`)), []PublicKey{pub}, message); !errors.Is(err, ErrBadSignature) {
		t.Errorf("wrong hint: %v", err)
	}
	if _, err := VerifyBundle([]byte(edit(hint, `{"hint":"other"}`)), []PublicKey{other}, message); !errors.Is(err, ErrUnknownSigner) {
		t.Errorf("unknown hint: %v", err)
	}
	if _, err := VerifyBundle([]byte(edit(hint, "{}")), []PublicKey{other}, message); !errors.Is(err, ErrUnknownSigner) {
		t.Errorf("no hint, other key: %v", err)
	}
	// cosign 3.1.3 leaves the digest empty for Ed25519 keys; nothing verifies such a bundle.
	var doc map[string]any
	if err := json.Unmarshal([]byte(good), &doc); err != nil {
		t.Fatal(err)
	}
	doc["messageSignature"].(map[string]any)["messageDigest"].(map[string]any)["digest"] = ""
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyBundle(data, []PublicKey{pub}, message); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("empty digest: %v", err)
	}
}

func FuzzParseBundle(f *testing.F) {
	key, pub := newKey(f)
	good := mustSign(f, key).Bundle
	f.Add(good)
	f.Add([]byte(`{"mediaType":"` + MediaType + `","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{}}`))
	f.Add([]byte(`{"a":{"b":[{}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBundle(data)
		if err != nil {
			var format *FormatError
			if !errors.As(err, &format) || err.Error() == "" {
				t.Fatalf("error %#v is not a FormatError", err)
			}
			return
		}
		if b.Envelope != (b.Signature == nil) {
			t.Fatal("a bundle is either an attestation or a signature")
		}
		// No bytes that differ in meaning from the one good bundle may verify.
		if _, err := b.Verify([]PublicKey{pub}, message); err == nil {
			want, _ := ParseBundle(good)
			if !bytes.Equal(b.Digest, want.Digest) {
				t.Fatalf("a bundle for another digest verifies: %s", data)
			}
		}
	})
}

func TestOpenSSLVerifies(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("SKIPPED: openssl is not installed, so the detached signature was not cross-checked")
	}
	dir := t.TempDir()
	pair, err := Keygen(filepath.Join(dir, "release"), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := LoadPrivateKey(pair.Private, noPassword(t))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(mustSign(t, key).Detached))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sig.bin"), raw)
	write(t, filepath.Join(dir, "manifest.json"), message)
	verify := func() error {
		cmd := exec.CommandContext(context.Background(), openssl, "dgst", "-sha256", "-verify", "release.pub", "-signature", "sig.bin", "manifest.json")
		cmd.Dir = dir
		return cmd.Run()
	}
	if err := verify(); err != nil {
		t.Errorf("openssl does not verify the signature: %v", err)
	}
	write(t, filepath.Join(dir, "manifest.json"), append(message, ' '))
	if verify() == nil {
		t.Error("openssl verifies a changed file: the test proves nothing")
	}
}

func TestCosignVerifies(t *testing.T) {
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		t.Skip("SKIPPED: cosign is not installed, so the bundle was not cross-checked here")
	}
	dir := t.TempDir()
	pair, err := Keygen(filepath.Join(dir, "release"), []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := LoadPrivateKey(pair.Private, func() ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "bundle"), mustSign(t, key).Bundle)
	write(t, filepath.Join(dir, "manifest.json"), message)
	cmd := exec.CommandContext(t.Context(), cosign, "verify-blob", "--key", "release.pub", "--bundle", "bundle", "--insecure-ignore-tlog", "manifest.json")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("cosign: %v\n%s", err, out)
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func noPassword(t testing.TB) func() ([]byte, error) {
	return func() ([]byte, error) {
		t.Error("a password was asked for")
		return nil, errors.New("no password")
	}
}

func pemOf(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
