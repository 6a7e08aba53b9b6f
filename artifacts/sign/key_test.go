package sign

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"halos.dev/halo/compiler/diag"
)

func password(p string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(p), nil }
}

func TestKeygenRoundTrip(t *testing.T) {
	for _, pass := range []string{"", "correct horse"} {
		name := filepath.Join(t.TempDir(), "release")
		pair, err := Keygen(name, []byte(pass))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(pair.Private)
		if err != nil {
			t.Fatal(err)
		}
		wantType := "ENCRYPTED SIGSTORE PRIVATE KEY"
		if pass == "" {
			wantType = "PRIVATE KEY"
		}
		if b, _ := pem.Decode(data); b == nil || b.Type != wantType || pair.Unencrypted != (pass == "") {
			t.Errorf("password %q: key of type %v, unencrypted %v", pass, b, pair.Unencrypted)
		}
		ask := password(pass)
		if pass == "" {
			ask = noPassword(t)
		}
		key, err := LoadPrivateKey(pair.Private, ask)
		if err != nil {
			t.Fatal(err)
		}
		pub, err := LoadPublicKey(pair.Public)
		if err != nil {
			t.Fatal(err)
		}
		if pub.ID() != pair.Key.ID() {
			t.Error("the public file holds another key than was reported")
		}
		if _, err := VerifyBundle(mustSign(t, key).Bundle, []PublicKey{pub}, message); err != nil {
			t.Errorf("password %q: the pair does not fit: %v", pass, err)
		}
		if text, err := pub.PEM(); err != nil {
			t.Error(err)
		} else if again, err := ParsePublicKey(text); err != nil || again.ID() != pub.ID() {
			t.Errorf("PEM round trip: %v", err)
		}
		if runtime.GOOS != "windows" {
			for path, want := range map[string]os.FileMode{pair.Private: 0o600, pair.Public: 0o644} {
				if info, err := os.Stat(path); err != nil || info.Mode() != want {
					t.Errorf("%s has mode %v, not %v", path, info.Mode(), want)
				}
			}
		}
	}
}

func TestKeygenNeverOverwrites(t *testing.T) {
	for _, taken := range []string{"release.key", "release.pub"} {
		for _, link := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, taken)
			if link {
				// A dangling link must not be written through.
				if err := os.Symlink("elsewhere", path); err != nil {
					t.Skip("SKIPPED: no symbolic links here")
				}
			} else {
				write(t, path, []byte("mine"))
			}
			_, err := Keygen(filepath.Join(dir, "release"), nil)
			wantCode(t, err, CodeKeyExists)
			entries, _ := os.ReadDir(dir)
			if len(entries) != 1 {
				t.Errorf("%s taken: %d files afterwards", taken, len(entries))
			}
		}
	}
}

func TestKeyFilesAreExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "release.pub")
	write(t, path, nil)
	wantCode(t, writeKeyFile(path, []byte("x"), 0o644), CodeKeyExists)
	if data, err := os.ReadFile(path); err != nil || len(data) != 0 {
		t.Errorf("the file that was there changed to %q (%v)", data, err)
	}
	_, err := Keygen(filepath.Join(t.TempDir(), "no", "such", "dir"), nil)
	wantCode(t, err, CodeBadKey)
}

func wantCode(t *testing.T, err error, code *diag.Code) {
	t.Helper()
	var key *KeyError
	if !errors.As(err, &key) {
		t.Errorf("error %v is not a KeyError", err)
	} else if key.Code != code || !key.Code.NoAnswer {
		t.Errorf("error %v has code %s, not %s", err, key.Code.ID, code.ID)
	}
}

func TestLoadPrivateKeyForms(t *testing.T) {
	key, _ := newKey(t)
	plain := pemOf(t, key)
	der, _ := pem.Decode(plain)
	sealed, err := encrypted.Encrypt(der.Bytes, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	emptyPassword, err := encrypted.Encrypt(der.Bytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}) }
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		pass string
		code *diag.Code
		want string
	}{
		{"PKCS#8", plain, "", nil, ""},
		{"sigstore", block("ENCRYPTED SIGSTORE PRIVATE KEY", sealed), "secret", nil, ""},
		{"cosign", block("ENCRYPTED COSIGN PRIVATE KEY", sealed), "secret", nil, ""},
		{"cosign, empty password", block("ENCRYPTED COSIGN PRIVATE KEY", emptyPassword), "", nil, ""},
		{"cosign, wrong password", block("ENCRYPTED COSIGN PRIVATE KEY", sealed), "Secret", CodeWrongPassword, "wrong password"},
		{"cosign, no password", block("ENCRYPTED COSIGN PRIVATE KEY", sealed), "", CodeWrongPassword, "wrong password"},
		{"cosign, not sealed", block("ENCRYPTED COSIGN PRIVATE KEY", der.Bytes), "secret", CodeWrongPassword, "damaged"},
		{"empty", nil, "", CodeBadKey, "PEM"},
		{"text", []byte("hello"), "", CodeBadKey, "PEM"},
		{"two keys", append(bytes.Clone(plain), plain...), "", CodeBadKey, "more than one"},
		{"public key", block("PUBLIC KEY", der.Bytes), "", CodeBadKey, "give the .key file"},
		{"SEC 1", block("EC PRIVATE KEY", der.Bytes), "", CodeBadKey, "openssl pkcs8 -topk8"},
		{"old encrypted PEM", []byte("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"), "", CodeBadKey, "openssl pkcs8"},
		{"certificate", block("CERTIFICATE", der.Bytes), "", CodeBadKey, "CERTIFICATE"},
		{"damaged", block("PRIVATE KEY", der.Bytes[1:]), "", CodeBadKey, "can be read"},
		{"P-384", pemOf(t, p384), "", CodeBadKey, "P-256"},
		{"Ed25519", pemOf(t, ed), "", CodeBadKey, "P-256"},
		{"large", bytes.Repeat([]byte("x"), maxKeySize+1), "", CodeBadKey, "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "k")
			write(t, path, tt.data)
			got, err := LoadPrivateKey(path, password(tt.pass))
			if tt.code == nil {
				if err != nil {
					t.Fatal(err)
				}
				if !key.Public().(*ecdsa.PublicKey).Equal(got.Public()) {
					t.Error("another key")
				}
				return
			}
			wantCode(t, err, tt.code)
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q, want %q and the path", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q tells the password", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "k")
	write(t, path, block("ENCRYPTED COSIGN PRIVATE KEY", sealed))
	if _, err := LoadPrivateKey(path, func() ([]byte, error) { return nil, ErrNoPassword }); !errors.Is(err, ErrNoPassword) {
		t.Errorf("nobody to ask: %v", err)
	}
}

func TestPrivateKeyPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no permission bits")
	}
	key, _ := newKey(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "k")
	write(t, path, pemOf(t, key))
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o644: false, 0o610: false, 0o602: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadPrivateKey(path, noPassword(t))
		if ok && err != nil {
			t.Errorf("mode %v: %v", mode, err)
		} else if !ok {
			wantCode(t, err, CodeOpenKey)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("k", link); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPrivateKey(link, noPassword(t)); err != nil {
		t.Errorf("through a link: %v", err)
	}
	_, err := LoadPrivateKey(dir, noPassword(t))
	wantCode(t, err, CodeBadKey)
	_, err = LoadPrivateKey(filepath.Join(dir, "none"), noPassword(t))
	wantCode(t, err, CodeBadKey)
	_, err = LoadPrivateKey("awskms://alias/halo", noPassword(t))
	wantCode(t, err, CodeBadKey)
	if !strings.Contains(err.Error(), "a key URI, which only signs") {
		t.Errorf("KMS: %v", err)
	}
}

func TestParsePublicKey(t *testing.T) {
	key, pub := newKey(t)
	text, err := pub.PEM()
	if err != nil {
		t.Fatal(err)
	}
	edPub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, err := NewPublicKey(edPub)
	if err != nil {
		t.Fatal(err)
	}
	edText, err := ed.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if k, err := ParsePublicKey(edText); err != nil || k.ID() != ed.ID() {
		t.Errorf("Ed25519: %v", err)
	}
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "PEM"},
		{"private key", string(pemOf(t, key)), "give the .pub file"},
		{"two keys", string(text) + string(edText), "more than one key"},
		{"certificate", strings.ReplaceAll(string(text), "PUBLIC KEY", "CERTIFICATE"), "CERTIFICATE"},
		{"damaged", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "can be read"},
	} {
		if _, err := ParsePublicKey([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	path := filepath.Join(t.TempDir(), "p")
	write(t, path, []byte("no key"))
	_, err = LoadPublicKey(path)
	wantCode(t, err, CodeBadKey)
}

// What openssl writes must be readable, with any of its ciphers that are still in use.
func TestOpenSSLKeys(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("SKIPPED: openssl is not installed, so encrypted PKCS#8 was not cross-checked")
	}
	key, pub := newKey(t)
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	write(t, in, pemOf(t, key))
	for _, args := range [][]string{
		{"-v2", "aes-256-cbc"},
		{"-v2", "aes-192-cbc", "-v2prf", "hmacWithSHA512"},
		{"-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1", "-iter", "100000"},
		{"-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA384"},
		{"-scrypt"},
	} {
		out := filepath.Join(dir, "out")
		cmd := exec.CommandContext(t.Context(), openssl, append([]string{"pkcs8", "-topk8", "-in", in, "-out", out, "-passout", "pass:geheim"}, args...)...)
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, msg)
		}
		if err := os.Chmod(out, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadPrivateKey(out, password("geheim"))
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if k, err := NewPublicKey(got.Public()); err != nil || k.ID() != pub.ID() {
			t.Errorf("%v: another key (%v)", args, err)
		}
		_, err = LoadPrivateKey(out, password("Geheim"))
		wantCode(t, err, CodeWrongPassword)
	}
	// Our own plain key is one that openssl reads.
	pair, err := Keygen(filepath.Join(dir, "release"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.CommandContext(t.Context(), openssl, "pkey", "-in", pair.Private, "-noout").CombinedOutput(); err != nil {
		t.Errorf("openssl does not read our key: %v\n%s", err, msg)
	}
}

func FuzzPrivateKey(f *testing.F) {
	key, _ := newKey(f)
	f.Add(pemOf(f, key))
	f.Add([]byte(encryptedSample))
	f.Add([]byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		key, err := parsePrivateKey(data, password("geheim"))
		if (key == nil) == (err == nil) {
			t.Fatalf("key %v, error %v", key, err)
		}
	})
}

// encryptedSample is a throw-away key made by OpenSSL 3.0.19 (pkcs8 -topk8 -v2 aes-256-cbc -iter 2), password geheim.
const encryptedSample = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHrMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAipRl9oNH7FMAIBAjAM
BggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQKUI0Lvbnnb3+cRHDYLLfKgSBkOW+
xQy7ILR0Q4sIgkeWA8Qp3BzBgnQho4GmHB3nKBUUXtOg4xLwzh+xBC384dVZHYDO
ODHHooo/Lt5Cq0qOTfwteU00tEHqjlz0J7jGOCt/iKWIcbSGxDpaDPlEMLz5ITMK
OCM2Wpr2o5YNLWzjTQLtJTUTO0s8Ja789fRn2P38WDcjN7B5ybbdtx7I5pIGJQ==
-----END ENCRYPTED PRIVATE KEY-----
`

func TestEncryptedSample(t *testing.T) {
	block, _ := pem.Decode([]byte(encryptedSample))
	if _, err := parsePrivateKey([]byte(encryptedSample), password("geheim")); err != nil {
		t.Fatal(err)
	}
	// Any cut or changed byte is an error and never a panic; CBC alone cannot tell every change of the key apart.
	for i := range block.Bytes {
		for _, data := range [][]byte{block.Bytes[:i], append(bytes.Clone(block.Bytes[:i]), append([]byte{block.Bytes[i] ^ 0x41}, block.Bytes[i+1:]...)...)} {
			text := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: data})
			if key, err := parsePrivateKey(text, password("geheim")); err == nil && len(data) == i {
				t.Fatalf("the first %d bytes are a key: %v", i, key.Public())
			}
		}
	}
}

func TestPasswordSource(t *testing.T) {
	env := func(pairs ...string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			return "", false
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, tt := range []struct {
		name string
		env  func(string) (string, bool)
		want string
		err  error
	}{
		{"halo", env("HALO_KEY_PASSWORD", "a"), "a", nil},
		{"cosign", env("COSIGN_PASSWORD", "b"), "b", nil},
		{"halo wins", env("COSIGN_PASSWORD", "b", "HALO_KEY_PASSWORD", "a"), "a", nil},
		{"empty halo wins", env("COSIGN_PASSWORD", "b", "HALO_KEY_PASSWORD", ""), "", nil},
		{"none and no terminal", env(), "", ErrNoPassword},
	} {
		for _, terminal := range []*os.File{nil, r} {
			s := PasswordSource{LookupEnv: tt.env, Terminal: terminal, Prompt: new(bytes.Buffer)}
			for _, get := range []func() ([]byte, error){s.Password, s.NewPassword} {
				if got, err := get(); string(got) != tt.want || !errors.Is(err, tt.err) {
					t.Errorf("%s: %q, %v", tt.name, got, err)
				}
			}
		}
	}
}

func TestCodes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.ID] || !strings.HasPrefix(c.ID, "HALO19") || c.Title == "" || c.Text == "" || c.Since == "" {
			t.Errorf("code %+v is repeated, out of range or not complete", c)
		}
		seen[c.ID] = true
	}
}
