package sign

import (
	"crypto/elliptic"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// KeyPair names what Keygen wrote.
type KeyPair struct {
	// Private and Public are the files NAME.key (mode 0600) and NAME.pub (0644).
	Private, Public string
	// Key is the public half.
	Key PublicKey
	// Unencrypted is true when the password was empty; the caller warns with CodePlainKey.
	Unencrypted bool
}

// Keygen makes an ECDSA P-256 key and writes NAME.key and NAME.pub. With a password the private key has cosign's encrypted
// form ("ENCRYPTED SIGSTORE PRIVATE KEY": scrypt and NaCl secretbox); with an empty one, which the user chose on purpose, it is
// plain PKCS#8. Nothing is ever overwritten, and either both files are there afterwards or none of this run. The error is a
// *KeyError.
func Keygen(name string, password []byte) (*KeyPair, error) {
	pair := &KeyPair{Private: name + ".key", Public: name + ".pub", Unencrypted: len(password) == 0}
	// Look before the slow derivation; O_EXCL below decides.
	for _, path := range []string{pair.Private, pair.Public} {
		if _, err := os.Lstat(path); err == nil {
			return nil, &KeyError{CodeKeyExists, path, errors.New("exists already; keys are never overwritten")}
		}
	}
	var ask cryptoutils.PassFunc
	if !pair.Unencrypted {
		ask = func(bool) ([]byte, error) { return password, nil }
	}
	priv, pub, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), ask)
	if err != nil {
		return nil, &KeyError{CodeBadKey, pair.Private, err}
	}
	if pair.Key, err = ParsePublicKey(pub); err != nil {
		return nil, &KeyError{CodeBadKey, pair.Public, err}
	}
	if err := writeKeyFile(pair.Private, priv, 0o600); err != nil {
		return nil, err
	}
	if err := writeKeyFile(pair.Public, pub, 0o644); err != nil {
		os.Remove(pair.Private)
		return nil, err
	}
	return pair, nil
}

// writeKeyFile creates a file that was not there, whole and on disk, or leaves none.
func writeKeyFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		code, reason := CodeBadKey, err
		if errors.Is(err, fs.ErrExist) {
			code, reason = CodeKeyExists, errors.New("exists already; keys are never overwritten")
		}
		return &KeyError{code, path, reason}
	}
	_, err = f.Write(data)
	if err == nil && runtime.GOOS != "windows" {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(path)
		return &KeyError{CodeBadKey, path, fmt.Errorf("cannot write the key: %w", err)}
	}
	return nil
}
