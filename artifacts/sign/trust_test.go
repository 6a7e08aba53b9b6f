package sign

import (
	"bytes"
	"crypto"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func newTrust(t testing.TB, version int64, threshold int, keys ...PublicKey) *Trust {
	t.Helper()
	trust := &Trust{Org: "acme", Version: version, Threshold: threshold, Keys: slices.Clone(keys)}
	trust.Sort()
	return trust
}

func encodeTrust(t testing.TB, trust *Trust) []byte {
	t.Helper()
	data, err := trust.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTrustRoundTrip(t *testing.T) {
	_, a := newKey(t)
	_, b := newKey(t)
	_, gone := newKey(t)
	trust := newTrust(t, 7, 2, a, b)
	trust.Revoked = []string{gone.ID()}
	data := encodeTrust(t, trust)
	back, err := ParseTrust(data)
	if err != nil {
		t.Fatal(err)
	}
	if back.Org != "acme" || back.Version != 7 || back.Threshold != 2 || len(back.Keys) != 2 || back.Keys[0].ID() != trust.Keys[0].ID() || !slices.Equal(back.Revoked, trust.Revoked) {
		t.Errorf("got %+v", back)
	}
	if !bytes.Equal(encodeTrust(t, back), data) {
		t.Error("printing what was parsed gives other bytes")
	}
}

func TestTrustIsStrict(t *testing.T) {
	_, a := newKey(t)
	_, b := newKey(t)
	good := string(encodeTrust(t, newTrust(t, 1, 1, a, b)))
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "not a trust file"},
		{"cut", good[:len(good)/2], "not a trust file"},
		{"unknown field", strings.Replace(good, `"org"`, `"orb": 1, "org"`, 1), `unknown field "orb"`},
		{"field twice", strings.Replace(good, `"org": "acme"`, `"org": "acme", "org": "acme"`, 1), "not in the form"},
		{"other spelling", strings.Replace(good, `"org"`, `"Org"`, 1), "not in the form"},
		{"bytes behind", good + "x", "not in the form"},
		{"no final newline", strings.TrimSuffix(good, "\n"), "not in the form"},
		{"schema", strings.Replace(good, `"schemaVersion": 1`, `"schemaVersion": 2`, 1), "schemaVersion 2, not 1"},
		{"version", strings.Replace(good, `"version": 1`, `"version": 0`, 1), "version 0 is not"},
		{"threshold 0", strings.Replace(good, `"threshold": 1`, `"threshold": 0`, 1), "threshold 0, not 1 to 2"},
		{"threshold 3", strings.Replace(good, `"threshold": 1`, `"threshold": 3`, 1), "threshold 3, not 1 to 2"},
		{"no org", strings.Replace(good, `"acme"`, `""`, 1), "not the name of an organization"},
		{"wrong digest", strings.Replace(good, a.ID(), strings.Repeat("0", 64), 1), "its digest is " + a.ID()},
		{"revoked and trusted", strings.Replace(good, `"revoked": []`, `"revoked": ["`+a.ID()+`"]`, 1), "both trusted and revoked"},
		{"revoked is no id", strings.Replace(good, `"revoked": []`, `"revoked": ["x"]`, 1), "not a key id"},
	} {
		if _, err := ParseTrust([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := (&Trust{Org: "acme", Version: 1, Threshold: 1, Keys: []PublicKey{a, a}}).Encode(); err == nil {
		t.Error("a key twice is encoded: one signer would count for two")
	}
}

func FuzzParseTrust(f *testing.F) {
	_, a := newKey(f)
	_, b := newKey(f)
	f.Add(encodeTrust(f, newTrust(f, 1, 2, a, b)))
	f.Add([]byte(`{"keys":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trust, err := ParseTrust(data)
		if err != nil {
			return
		}
		if out := encodeTrust(t, trust); !bytes.Equal(out, data) {
			t.Errorf("%q parses and prints as %q", data, out)
		}
	})
}

func TestTrustAccept(t *testing.T) {
	var keys []crypto.Signer
	var pubs []PublicKey
	for range 4 {
		k, p := newKey(t)
		keys, pubs = append(keys, k), append(pubs, p)
	}
	gone := strings.Repeat("0", 64)
	old := newTrust(t, 3, 2, pubs[0], pubs[1])
	old.Revoked = []string{gone}
	next := func(change func(*Trust)) *Trust {
		n := newTrust(t, 4, 2, pubs[1], pubs[2])
		n.Revoked = []string{gone}
		change(n)
		n.Sort()
		return n
	}
	same := func(*Trust) {}
	for _, tt := range []struct {
		name    string
		next    *Trust
		signers []int
		want    string // "" when it may follow
	}{
		{"both thresholds", next(same), []int{0, 1, 2}, ""},
		{"strangers do not count and do no harm", next(same), []int{3, 0, 1, 2}, ""},
		{"leap", next(func(n *Trust) { n.Version = 9 }), []int{0, 1, 2}, ""},
		{"nobody", next(same), nil, "signed by 0 of the old keys; 2 wanted"},
		{"one old key", next(same), []int{1, 2}, "signed by 1 of the old keys; 2 wanted"},
		{"one old key twice", next(same), []int{1, 1, 2}, "signed by 1 of the old keys; 2 wanted"},
		{"one new key", next(same), []int{0, 1}, "signed by 1 of the new keys; 2 wanted"},
		{"same version", next(func(n *Trust) { n.Version = 3 }), []int{0, 1, 2}, "version 3 is not newer than 3"},
		{"other organization", next(func(n *Trust) { n.Org = "other" }), []int{0, 1, 2}, `a trust file of "other", not of "acme"`},
		{"revocation forgotten", next(func(n *Trust) { n.Revoked = nil }), []int{0, 1, 2}, "is revoked and no longer named"},
	} {
		data := encodeTrust(t, tt.next)
		var bundles [][]byte
		for _, i := range tt.signers {
			s, err := Sign(keys[i], data)
			if err != nil {
				t.Fatal(err)
			}
			bundles = append(bundles, s.Bundle)
		}
		got, err := old.Accept(data, bundles)
		if err == nil && got.Version != tt.next.Version {
			t.Errorf("%s: got version %d", tt.name, got.Version)
		}
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	// A signature over another file is not one that is merely unknown.
	n := next(same)
	s, err := Sign(keys[0], encodeTrust(t, old))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Accept(encodeTrust(t, n), [][]byte{s.Bundle}); err == nil || !strings.Contains(err.Error(), "the bundle is for another file") {
		t.Errorf("a signature over the old file: %v", err)
	}
	// What is signed by nobody is not parsed.
	if _, err := old.Accept([]byte("{"), nil); err == nil || !strings.Contains(err.Error(), "signed by 0 of the old keys") {
		t.Errorf("not JSON and not signed: %v", err)
	}
}

func TestRotate(t *testing.T) {
	_, a := newKey(t)
	_, b := newKey(t)
	_, c := newKey(t)
	old := newTrust(t, 1, 1, a, b)
	next, err := old.Rotate(Rotation{Add: []PublicKey{c}, Revoke: []string{a.ID()}, Threshold: 2})
	if err != nil {
		t.Fatal(err)
	}
	if next.Version != 2 || next.Threshold != 2 || len(next.Keys) != 2 || !slices.Equal(next.Revoked, []string{a.ID()}) || len(old.Revoked) != 0 {
		t.Errorf("got %+v", next)
	}
	for _, tt := range []struct {
		name   string
		change Rotation
		want   string
	}{
		{"revoked comes back", Rotation{Add: []PublicKey{a}}, "both trusted and revoked"},
		{"twice", Rotation{Add: []PublicKey{b}}, "repeated"},
		{"below threshold", Rotation{Remove: []string{b.ID()}}, "threshold 2, not 1 to 1"},
		{"not there", Rotation{Remove: []string{a.ID()}}, "is not trusted"},
		{"no id", Rotation{Revoke: []string{"x"}}, "not a key id"},
	} {
		if _, err := next.Rotate(tt.change); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestLoadTrust(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, TrustName)
	if _, err := LoadTrust(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	_, a := newKey(t)
	if err := os.WriteFile(path, encodeTrust(t, newTrust(t, 1, 1, a)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTrust(path); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o646); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadTrust(path); err == nil || !strings.Contains(err.Error(), "every account can write") {
			t.Errorf("world-writable: %v", err)
		}
	}
	var bad *TrustError
	if _, err := LoadTrust(dir); !errors.As(err, &bad) {
		t.Errorf("a directory: %v", err)
	}
}
