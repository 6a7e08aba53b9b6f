package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"halos.dev/halo/compiler/diag"
)

// maxKeySize is the largest key file that is read, in bytes; an encrypted P-256 key takes about 700.
const maxKeySize = 64 << 10

// KeyError says why a key cannot be used. It is always exit status 2: without a key there is no answer.
type KeyError struct {
	// Code is the diagnostic code of the finding.
	Code *diag.Code
	// Path is the key file as given.
	Path string
	// Err is what was found.
	Err error
}

func (e *KeyError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// ErrWrongPassword says that a key does not decrypt with the password.
var ErrWrongPassword = errors.New("wrong password (or a damaged key file)")

// PublicKey is a key that a verifier trusts: ECDSA P-256 or pure Ed25519.
type PublicKey struct {
	ecdsa   *ecdsa.PublicKey
	ed25519 ed25519.PublicKey
	id      [sha256.Size]byte
}

// NewPublicKey returns the key in pub, or an error that says why its type is not accepted.
func NewPublicKey(pub crypto.PublicKey) (PublicKey, error) {
	var k PublicKey
	switch p := pub.(type) {
	case *ecdsa.PublicKey:
		if p == nil || p.Curve != elliptic.P256() {
			return k, errors.New("an ECDSA key on another curve than P-256")
		}
		k.ecdsa = p
	case ed25519.PublicKey:
		if len(p) != ed25519.PublicKeySize {
			return k, errors.New("an Ed25519 key of the wrong length")
		}
		k.ed25519 = p
	case *rsa.PublicKey:
		return k, errors.New("an RSA key; use ECDSA P-256 (halo keygen)")
	default:
		return k, fmt.Errorf("a key of type %T; use ECDSA P-256 (halo keygen)", pub)
	}
	der, err := k.spki()
	if err != nil {
		return PublicKey{}, err
	}
	k.id = sha256.Sum256(der)
	return k, nil
}

// spki is the DER form of the key (SubjectPublicKeyInfo).
func (k PublicKey) spki() ([]byte, error) {
	if k.ecdsa != nil {
		return x509.MarshalPKIXPublicKey(k.ecdsa)
	}
	return x509.MarshalPKIXPublicKey(k.ed25519)
}

// ID is the SHA-256 of the key's DER form (SubjectPublicKeyInfo) in hex: the name of the key in output and file names.
func (k PublicKey) ID() string { return hex.EncodeToString(k.id[:]) }

// ShortID is the first 16 characters of ID, used in file names and tables.
func (k PublicKey) ShortID() string { return k.ID()[:16] }

// PEM is the key as a "PUBLIC KEY" block.
func (k PublicKey) PEM() ([]byte, error) {
	if k.ecdsa != nil {
		return cryptoutils.MarshalPublicKeyToPEM(k.ecdsa)
	}
	return cryptoutils.MarshalPublicKeyToPEM(k.ed25519)
}

// ParsePublicKey reads one "PUBLIC KEY" PEM block and nothing else.
func ParsePublicKey(data []byte) (PublicKey, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return PublicKey{}, errors.New("not a public key in PEM form")
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return PublicKey{}, fmt.Errorf("a %s, not a public key; give the .pub file", block.Type)
	case block.Type != "PUBLIC KEY":
		return PublicKey{}, fmt.Errorf("PEM type %q, not \"PUBLIC KEY\"", block.Type)
	case len(bytes.TrimSpace(rest)) > 0:
		return PublicKey{}, errors.New("more than one key; give one file for each key")
	}
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return PublicKey{}, errors.New("not a public key that can be read")
	}
	return NewPublicKey(pub)
}

// LoadPublicKey reads a public key file. The error is a *KeyError.
func LoadPublicKey(path string) (PublicKey, error) {
	data, err := readKeyFile(path, false)
	if err != nil {
		return PublicKey{}, err
	}
	k, err := ParsePublicKey(data)
	if err != nil {
		return PublicKey{}, &KeyError{CodeBadKey, path, err}
	}
	return k, nil
}

// LoadPrivateKey reads an ECDSA P-256 private key: PKCS#8, encrypted PKCS#8 (PBES2) or cosign's form. The password is asked
// for only when the key is encrypted. A file that group or others can read is refused (not on Windows, which has no such
// bits). The error is a *KeyError, or the one of password.
func LoadPrivateKey(path string, password func() ([]byte, error)) (crypto.Signer, error) {
	data, err := readKeyFile(path, true)
	if err != nil {
		return nil, err
	}
	key, err := parsePrivateKey(data, password)
	if err != nil {
		var asking *askError
		if errors.As(err, &asking) {
			return nil, fmt.Errorf("%s: %w", path, asking.err)
		}
		code := CodeBadKey
		if errors.Is(err, ErrWrongPassword) {
			code = CodeWrongPassword
		}
		return nil, &KeyError{code, path, err}
	}
	return key, nil
}

// askError keeps a failure to get a password apart from a wrong one.
type askError struct{ err error }

func (e *askError) Error() string { return e.err.Error() }

func parsePrivateKey(data []byte, password func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("not a private key in PEM form")
	case block.Headers["Proc-Type"] != "":
		return nil, errors.New("an old encrypted PEM form; convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("more than one PEM block")
	}
	ask := func() ([]byte, error) {
		p, err := password()
		if err != nil {
			return nil, &askError{err}
		}
		// The library takes a nil password for "not encrypted".
		return append([]byte{}, p...), nil
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		key, err = parsePBES2(block.Bytes, ask)
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var asked *askError
		key, err = cryptoutils.UnmarshalPEMToPrivateKey(data, func(bool) ([]byte, error) { return ask() })
		if err != nil && !errors.As(err, &asked) {
			err = ErrWrongPassword
		}
	case "EC PRIVATE KEY", "RSA PRIVATE KEY":
		return nil, fmt.Errorf("a %q; convert it with openssl pkcs8 -topk8", block.Type)
	case "PUBLIC KEY":
		return nil, errors.New("a public key; give the .key file")
	default:
		return nil, fmt.Errorf("PEM type %q, not a private key in PKCS#8 or cosign form", block.Type)
	}
	var asked *askError
	switch {
	case errors.Is(err, ErrWrongPassword), errors.As(err, &asked), errors.Is(err, errUnsupported):
		return nil, err
	case err != nil:
		return nil, errors.New("not a private key that can be read")
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, errors.New("not an ECDSA P-256 key; make one with halo keygen")
	}
	return ec, nil
}

// pathCause is err without the operation and the path, which the message names already.
func pathCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// readKeyFile reads a regular file, through symbolic links (secret mounts use them), without ever blocking on a pipe.
func readKeyFile(path string, private bool) ([]byte, error) {
	fail := func(code *diag.Code, format string, args ...any) ([]byte, error) {
		return nil, &KeyError{code, path, fmt.Errorf(format, args...)}
	}
	if IsKeyURI(path) {
		return fail(CodeBadKey, "a key URI, which only signs; write the public key to a file (cosign public-key --key URI) and give that")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return fail(CodeBadKey, "cannot read the key file: %w", pathCause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(CodeBadKey, "cannot read the key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fail(CodeBadKey, "not a regular file")
	}
	if private && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fail(CodeOpenKey, "group or others can use this private key (mode %04o); run chmod 600", info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeySize+1))
	if err != nil {
		return fail(CodeBadKey, "cannot read the key file: %w", err)
	}
	if len(data) > maxKeySize {
		return fail(CodeBadKey, "larger than %d bytes: not a key", maxKeySize)
	}
	return data, nil
}
