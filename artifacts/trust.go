package artifacts

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"halos.dev/halo/artifacts/sign"
)

// WriteTrust writes a trust file that was not there; an existing one is replaced by UpdateTrust alone.
func WriteTrust(path string, t *sign.Trust) error {
	data, err := t.Encode()
	if err != nil {
		return &sign.TrustError{Path: path, Err: err}
	}
	if _, err := os.Lstat(path); err == nil {
		return &sign.TrustError{Path: path, Err: errors.New("exists already; write the new trust file elsewhere and bring it in with halo release trust update")}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write trust file: %w", err)
	}
	if err := replaceFile(path, data, 0o644); err != nil {
		return fmt.Errorf("write trust file: %w", err)
	}
	return nil
}

// SignTrust signs a trust file. The signature is a Sigstore bundle beside it, PATH.ID.sigstore.json, one for each key.
func SignTrust(path string, signer crypto.Signer) (*sign.Signature, error) {
	data, err := sign.ReadTrustFile(path)
	if err != nil {
		return nil, err
	}
	if _, err := sign.ParseTrust(data); err != nil {
		return nil, &sign.TrustError{Path: path, Err: err}
	}
	s, err := sign.Sign(signer, data)
	if err != nil {
		return nil, err
	}
	if err := replaceFile(path+"."+s.Key.ShortID()+".sigstore.json", s.Bundle, 0o644); err != nil {
		return nil, fmt.Errorf("sign trust file: %w", err)
	}
	return s, nil
}

// UpdateTrust puts the trust file next in the place of the one at path when it may follow: see sign.Trust.Accept. Its signatures are
// the files beside it whose names begin with its own and end in .sigstore.json. A *VerifyError is a no; then nothing was written.
func UpdateTrust(path, next string) (*sign.Trust, error) {
	old, err := sign.LoadTrust(path)
	if err != nil {
		return nil, err
	}
	data, err := sign.ReadTrustFile(next)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(next)
	fsys := DirFS(filepath.Clean(dir + "."))
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read signatures of the trust file: %w", err)
	}
	var bundles [][]byte
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base+".") || !strings.HasSuffix(e.Name(), ".sigstore.json") {
			continue
		}
		b, err := readCapped(fsys, e.Name(), sign.MaxBundleSize)
		if err != nil {
			return nil, fmt.Errorf("read signatures of the trust file: %w", err)
		}
		bundles = append(bundles, b)
	}
	t, err := old.Accept(data, bundles)
	var no *sign.ChainError
	switch {
	case errors.As(err, &no):
		return nil, refuse(sign.CodeTrustChain, next, "%s", no.Reason)
	case err != nil:
		return nil, err
	}
	if err := replaceFile(path, data, 0o644); err != nil {
		return nil, fmt.Errorf("write trust file: %w", err)
	}
	return t, nil
}
