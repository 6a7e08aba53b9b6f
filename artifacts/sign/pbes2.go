package sign

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"hash"

	"golang.org/x/crypto/scrypt"
)

// errUnsupported marks an encrypted key whose algorithms are not supported, as opposed to one that does not decrypt.
var errUnsupported = errors.New("unsupported encryption of the key")

// Bounds of the key derivation: far above what any tool writes (OpenSSL 3: 2,048 rounds; OWASP 2023: 600,000), low enough
// that a hostile file cannot hang or exhaust the process.
const (
	maxRounds       = 10_000_000
	maxScryptMemory = 256 << 20
)

// The structures of RFC 8018 (PBES2) and RFC 7914 (scrypt).
type (
	encryptedKeyInfo struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params struct {
		KDF    pkix.AlgorithmIdentifier
		Cipher pkix.AlgorithmIdentifier
	}
	pbkdf2Params struct {
		Salt      []byte
		Rounds    int
		KeyLength int                      `asn1:"optional"`
		PRF       pkix.AlgorithmIdentifier `asn1:"optional"`
	}
	scryptParams struct {
		Salt      []byte
		N, R, P   int
		KeyLength int `asn1:"optional"`
	}
)

// parsePBES2 decrypts a PKCS#8 key as openssl writes it: PBKDF2 or scrypt, AES-CBC. The sigstore library reads these too, but
// its decoder panics on a truncated ciphertext or a short IV (youmark/pkcs8, version of 2024-07-26).
func parsePBES2(der []byte, password func() ([]byte, error)) (any, error) {
	var info encryptedKeyInfo
	if rest, err := asn1.Unmarshal(der, &info); err != nil || len(rest) > 0 {
		return nil, errors.New("not an encrypted PKCS#8 key")
	}
	if info.Algorithm.Algorithm.String() != "1.2.840.113549.1.5.13" {
		return nil, fmt.Errorf("%w: not PBES2; convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc", errUnsupported)
	}
	var params pbes2Params
	if rest, err := asn1.Unmarshal(info.Algorithm.Parameters.FullBytes, &params); err != nil || len(rest) > 0 {
		return nil, errors.New("not an encrypted PKCS#8 key")
	}
	var keySize int
	switch oid := params.Cipher.Algorithm.String(); oid {
	case "2.16.840.1.101.3.4.1.2":
		keySize = 16
	case "2.16.840.1.101.3.4.1.22":
		keySize = 24
	case "2.16.840.1.101.3.4.1.42":
		keySize = 32
	default:
		return nil, fmt.Errorf("%w: cipher %s is not AES-CBC; convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc", errUnsupported, oid)
	}
	var iv []byte
	if rest, err := asn1.Unmarshal(params.Cipher.Parameters.FullBytes, &iv); err != nil || len(rest) > 0 || len(iv) != aes.BlockSize {
		return nil, errors.New("not an encrypted PKCS#8 key")
	}
	if len(info.Data) == 0 || len(info.Data)%aes.BlockSize != 0 {
		return nil, ErrWrongPassword
	}
	derive, err := derivation(params.KDF, keySize)
	if err != nil {
		return nil, err
	}
	pass, err := password()
	if err != nil {
		return nil, err
	}
	symmetric, err := derive(pass)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errUnsupported, err)
	}
	block, err := aes.NewCipher(symmetric)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(info.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, info.Data)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, ErrWrongPassword
	}
	key, err := x509.ParsePKCS8PrivateKey(plain[:len(plain)-pad])
	if err != nil {
		return nil, ErrWrongPassword
	}
	return key, nil
}

// derivation checks the parameters of the key derivation before a password is asked for.
func derivation(kdf pkix.AlgorithmIdentifier, size int) (func(password []byte) ([]byte, error), error) {
	switch oid := kdf.Algorithm.String(); oid {
	case "1.2.840.113549.1.5.12":
		var p pbkdf2Params
		if rest, err := asn1.Unmarshal(kdf.Parameters.FullBytes, &p); err != nil || len(rest) > 0 {
			return nil, errors.New("not an encrypted PKCS#8 key")
		}
		if p.Rounds < 1 || p.Rounds > maxRounds || p.KeyLength != 0 && p.KeyLength != size {
			return nil, fmt.Errorf("%w: PBKDF2 with %d rounds", errUnsupported, p.Rounds)
		}
		var h func() hash.Hash
		switch prf := p.PRF.Algorithm.String(); prf {
		case "", "1.2.840.113549.2.7":
			h = sha1.New
		case "1.2.840.113549.2.9":
			h = sha256.New
		case "1.2.840.113549.2.10":
			h = sha512.New384
		case "1.2.840.113549.2.11":
			h = sha512.New
		default:
			return nil, fmt.Errorf("%w: PBKDF2 with hash %s", errUnsupported, prf)
		}
		return func(password []byte) ([]byte, error) {
			return pbkdf2.Key(h, string(password), p.Salt, p.Rounds, size)
		}, nil
	case "1.3.6.1.4.1.11591.4.11":
		var p scryptParams
		if rest, err := asn1.Unmarshal(kdf.Parameters.FullBytes, &p); err != nil || len(rest) > 0 {
			return nil, errors.New("not an encrypted PKCS#8 key")
		}
		if p.N < 2 || p.R < 1 || p.P < 1 || p.P > 16 || p.R > 64 || p.N > maxScryptMemory/(128*p.R) || p.KeyLength != 0 && p.KeyLength != size {
			return nil, fmt.Errorf("%w: scrypt with N=%d r=%d p=%d", errUnsupported, p.N, p.R, p.P)
		}
		return func(password []byte) ([]byte, error) {
			return scrypt.Key(password, p.Salt, p.N, p.R, p.P, size)
		}, nil
	default:
		return nil, fmt.Errorf("%w: key derivation %s", errUnsupported, oid)
	}
}
