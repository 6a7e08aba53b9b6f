package sign

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// TrustName is the usual name of a trust file.
const TrustName = "halo-trust.json"

// Limits of a trust file.
const (
	maxTrustSize = 1 << 20
	maxTrustKeys = 256
	trustSchema  = 1
)

// Trust says whose signatures count: a pinned trust file, or keys given one by one.
type Trust struct {
	// Org is the organization whose releases these keys sign; "" when keys were given without a trust file, which then speak
	// for any.
	Org string
	// Version counts the trust files of an organization from 1; 0 when keys were given without a trust file.
	Version int64
	// Threshold is how many of Keys must have signed; at least 1.
	Threshold int
	// Keys are the trusted keys, sorted by ID in a trust file.
	Keys []PublicKey
	// Revoked are the IDs of keys that never count again, sorted.
	Revoked []string
}

// TrustKeys is the trust in any one of the given keys.
func TrustKeys(keys ...PublicKey) *Trust { return &Trust{Threshold: 1, Keys: keys} }

// TrustError says why a trust file is not used.
type TrustError struct {
	// Path is the trust file as given.
	Path string
	// Err is what was found.
	Err error
}

func (e *TrustError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TrustError) Unwrap() error { return e.Err }

// The form of a trust file. The fields are written in this order, which is the sorted one.
type (
	trustJSON struct {
		Keys          []trustKeyJSON `json:"keys"`
		Org           string         `json:"org"`
		Revoked       []string       `json:"revoked"`
		SchemaVersion int            `json:"schemaVersion"`
		Threshold     int            `json:"threshold"`
		Version       int64          `json:"version"`
	}
	trustKeyJSON struct {
		// ID is the SHA-256 of SPKI in hex.
		ID string `json:"id"`
		// SPKI is the DER form of the key.
		SPKI []byte `json:"spki"`
	}
)

// LoadTrust reads a trust file. The file is trusted because it is where the caller says; a file that every account may write is
// refused (not on Windows, which has no such bit). The error is a *TrustError, which matches fs.ErrNotExist when there is no file.
func LoadTrust(path string) (*Trust, error) {
	data, err := ReadTrustFile(path)
	if err != nil {
		return nil, err
	}
	t, err := ParseTrust(data)
	if err != nil {
		return nil, &TrustError{path, err}
	}
	return t, nil
}

// ReadTrustFile reads the bytes of a trust file with the checks of LoadTrust.
func ReadTrustFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, &TrustError{path, fmt.Errorf("cannot read the trust file: %w", pathCause(err))}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &TrustError{path, fmt.Errorf("cannot read the trust file: %w", pathCause(err))}
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, &TrustError{path, errors.New("not a regular file")}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return nil, &TrustError{path, fmt.Errorf("every account can write this trust file (mode %04o); run chmod o-w", info.Mode().Perm())}
	case info.Size() > maxTrustSize:
		return nil, &TrustError{path, fmt.Errorf("larger than %d bytes: not a trust file", maxTrustSize)}
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, &TrustError{path, fmt.Errorf("cannot read the trust file: %w", pathCause(err))}
	}
	return data, nil
}

// ParseTrust reads a trust file strictly: exactly the bytes that Encode writes.
func ParseTrust(data []byte) (*Trust, error) {
	if len(data) > maxTrustSize {
		return nil, fmt.Errorf("larger than %d bytes: not a trust file", maxTrustSize)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var doc trustJSON
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a trust file: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if doc.SchemaVersion != trustSchema {
		return nil, fmt.Errorf("schemaVersion %d, not %d, the one that this halo knows", doc.SchemaVersion, trustSchema)
	}
	t := &Trust{Org: doc.Org, Version: doc.Version, Threshold: doc.Threshold, Revoked: doc.Revoked}
	for _, k := range doc.Keys {
		pub, err := x509.ParsePKIXPublicKey(k.SPKI)
		if err != nil {
			return nil, fmt.Errorf("key %s: not a public key that can be read", k.ID)
		}
		key, err := NewPublicKey(pub)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.ID, err)
		}
		if key.ID() != k.ID {
			return nil, fmt.Errorf("key %s: its digest is %s", k.ID, key.ID())
		}
		t.Keys = append(t.Keys, key)
	}
	canonical, err := t.Encode()
	if err != nil {
		return nil, err
	}
	// What was decoded leniently (repeated keys, other spellings, bytes behind the object) comes out different.
	if !bytes.Equal(canonical, data) {
		return nil, errors.New("not in the form that halo writes; change trust files with halo release trust rotate, not by hand")
	}
	return t, nil
}

// Encode returns the bytes of the trust file, or an error when t breaks a rule: an organization, a version of 1 or more, at least
// threshold keys, every key once, none of them revoked, lists sorted by ID.
func (t *Trust) Encode() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	doc := trustJSON{Org: t.Org, Revoked: append([]string{}, t.Revoked...), SchemaVersion: trustSchema, Threshold: t.Threshold, Version: t.Version}
	for _, k := range t.Keys {
		der, err := k.spki()
		if err != nil {
			return nil, err
		}
		doc.Keys = append(doc.Keys, trustKeyJSON{k.ID(), der})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (t *Trust) check() error {
	switch {
	case t.Org == "" || len(t.Org) > 256 || strings.ContainsFunc(t.Org, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return fmt.Errorf("org %q is not the name of an organization", t.Org)
	case t.Version < 1 || t.Version >= 1<<53:
		return fmt.Errorf("version %d is not a number from 1 to 9007199254740991", t.Version)
	case len(t.Keys) == 0:
		return errors.New("no keys")
	case len(t.Keys) > maxTrustKeys || len(t.Revoked) > maxTrustKeys:
		return fmt.Errorf("more than %d keys", maxTrustKeys)
	case t.Threshold < 1 || t.Threshold > len(t.Keys):
		return fmt.Errorf("threshold %d, not 1 to %d, the number of keys", t.Threshold, len(t.Keys))
	}
	for i, k := range t.Keys {
		if i > 0 && t.Keys[i-1].ID() >= k.ID() {
			return fmt.Errorf("key %s is repeated or out of order", k.ID())
		}
		if slices.Contains(t.Revoked, k.ID()) {
			return fmt.Errorf("key %s is both trusted and revoked", k.ID())
		}
	}
	for i, id := range t.Revoked {
		if !isKeyID(id) {
			return fmt.Errorf("revoked: %q is not a key id (64 lower-case hex digits)", id)
		}
		if i > 0 && t.Revoked[i-1] >= id {
			return fmt.Errorf("revoked: %s is repeated or out of order", id)
		}
	}
	return nil
}

// Sort brings keys and revoked ids into the order of a trust file.
func (t *Trust) Sort() {
	slices.SortFunc(t.Keys, func(a, b PublicKey) int { return cmp.Compare(a.ID(), b.ID()) })
	slices.Sort(t.Revoked)
}

func isKeyID(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// ChainError says that a trust file may not take the place of another one: the answer is no.
type ChainError struct{ Reason string }

func (e *ChainError) Error() string { return e.Reason }

// Accept reads the trust file that is to take the place of t. data must be signed by the threshold of the keys of t, which is checked
// before anything in it is looked at, and by the threshold of its own keys; it must name the same organization, a higher version and
// everything that was revoked before. bundles are Sigstore bundles over data; those by other keys do not count. The error is a
// *ChainError.
func (t *Trust) Accept(data []byte, bundles [][]byte) (*Trust, error) {
	if err := t.signed(data, bundles, "old"); err != nil {
		return nil, err
	}
	next, err := ParseTrust(data)
	if err != nil {
		return nil, &ChainError{err.Error()}
	}
	switch {
	case next.Org != t.Org:
		return nil, &ChainError{fmt.Sprintf("a trust file of %q, not of %q", next.Org, t.Org)}
	case next.Version <= t.Version:
		return nil, &ChainError{fmt.Sprintf("version %d is not newer than %d", next.Version, t.Version)}
	}
	for _, id := range t.Revoked {
		if !slices.Contains(next.Revoked, id) {
			return nil, &ChainError{fmt.Sprintf("key %s is revoked and no longer named as such", id)}
		}
	}
	if err := next.signed(data, bundles, "new"); err != nil {
		return nil, err
	}
	return next, nil
}

// signed checks that enough of the keys signed data.
func (t *Trust) signed(data []byte, bundles [][]byte, which string) error {
	signers := map[string]bool{}
	for _, raw := range bundles {
		k, err := VerifyBundle(raw, t.Keys, data)
		switch {
		case err == nil:
			signers[k.ID()] = true
		case !errors.Is(err, ErrUnknownSigner):
			return &ChainError{err.Error()}
		}
	}
	if len(signers) < t.Threshold {
		return &ChainError{fmt.Sprintf("signed by %d of the %s keys; %d wanted", len(signers), which, t.Threshold)}
	}
	return nil
}

// Rotation is what changes from one trust file to the next.
type Rotation struct {
	// Add are keys to trust from now on.
	Add []PublicKey
	// Remove are IDs of keys that are no longer trusted, without blame; they may come back.
	Remove []string
	// Revoke are IDs of keys that never count again, whether they were trusted or not.
	Revoke []string
	// Threshold is the new one; 0 keeps it.
	Threshold int
}

// Rotate returns the trust file after t. It is to be signed by the old and the new keys before anyone accepts it.
func (t *Trust) Rotate(r Rotation) (*Trust, error) {
	next := &Trust{Org: t.Org, Version: t.Version + 1, Threshold: cmp.Or(r.Threshold, t.Threshold), Revoked: slices.Clone(t.Revoked)}
	for _, id := range r.Remove {
		if !slices.ContainsFunc(t.Keys, func(k PublicKey) bool { return k.ID() == id }) {
			return nil, fmt.Errorf("key %s is not trusted, so it cannot be removed", id)
		}
	}
	for _, id := range r.Revoke {
		if !isKeyID(id) {
			return nil, fmt.Errorf("%q is not a key id (64 lower-case hex digits)", id)
		}
		if !slices.Contains(next.Revoked, id) {
			next.Revoked = append(next.Revoked, id)
		}
	}
	for _, k := range slices.Concat(t.Keys, r.Add) {
		if !slices.Contains(r.Remove, k.ID()) && !slices.Contains(r.Revoke, k.ID()) {
			next.Keys = append(next.Keys, k)
		}
	}
	next.Sort()
	return next, next.check()
}
