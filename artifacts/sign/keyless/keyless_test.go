package keyless_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"halos.dev/halo/artifacts/sign/keyless"
	"halos.dev/halo/artifacts/sign/keyless/keylesstest"
)

var (
	now     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	message = []byte(`{"org":"acme"}`)
	id      = keyless.Identity{Name: "https://github.com/acme/policy/.github/workflows/release.yml@refs/tags/v1", Issuer: "https://token.actions.githubusercontent.com"}
	acme    = keylesstest.Signing{Identity: id.Name, Issuer: id.Issuer}
)

const slsa = "https://slsa.dev/provenance/v1"

func root(t testing.TB, w *keylesstest.World, r keylesstest.Root) *keyless.Root {
	t.Helper()
	parsed, err := keyless.ParseRoot(w.TrustedRoot(r))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestVerify(t *testing.T) {
	w, other := keylesstest.New(now), keylesstest.New(now)
	with := func(change func(*keylesstest.Signing)) keylesstest.Signing {
		s := acme
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name string
		s    keylesstest.Signing
		root keylesstest.Root
		want string // "" when it verifies
	}{
		{"everything", acme, keylesstest.Root{}, ""},
		{"long ago, since time is proven", with(func(s *keylesstest.Signing) { s.Age = 240 * time.Hour }), keylesstest.Root{}, ""},
		{"attestation", with(func(s *keylesstest.Signing) { s.Predicate = slsa }), keylesstest.Root{}, ""},
		{"time by the log alone", with(func(s *keylesstest.Signing) { s.NoTimestamp = true }), keylesstest.Root{}, ""},
		{"promise alone", with(func(s *keylesstest.Signing) { s.NoTimestamp, s.NoProof = true, true }), keylesstest.Root{}, ""},
		{"proof and timestamp", with(func(s *keylesstest.Signing) { s.NoPromise = true }), keylesstest.Root{}, ""},
		{"timestamp alone where no log is listed", with(func(s *keylesstest.Signing) { s.NoLog = true }), keylesstest.Root{NoLog: true}, ""},
		{"no certificate log where none is listed", with(func(s *keylesstest.Signing) { s.NoSCT = true }), keylesstest.Root{NoCertificateLog: true}, ""},

		{"no log entry", with(func(s *keylesstest.Signing) { s.NoLog = true }), keylesstest.Root{}, "no log entry, and the trusted root lists logs"},
		{"entry of a log that is not listed", acme, keylesstest.Root{NoLog: true}, "by a log that the trusted root does not list"},
		{"no certificate log", with(func(s *keylesstest.Signing) { s.NoSCT = true }), keylesstest.Root{}, "no timestamp of a certificate log"},
		{"no time", with(func(s *keylesstest.Signing) { s.NoTimestamp, s.NoPromise = true, true }), keylesstest.Root{}, "nothing proves when it was signed"},
		{"entry that proves nothing", with(func(s *keylesstest.Signing) { s.NoProof, s.NoPromise = true, true }), keylesstest.Root{}, "neither a promise nor a proof"},
		{"timestamp of nobody", acme, keylesstest.Root{NoTimestamper: true}, "not signed by a timestamp authority of the trusted root"},
		{"other workflow", with(func(s *keylesstest.Signing) { s.Identity = "https://github.com/evil/policy" }), keylesstest.Root{}, `signed by "https://github.com/evil/policy", not by`},
		{"other issuer", with(func(s *keylesstest.Signing) { s.Issuer = "https://evil.example" }), keylesstest.Root{}, `the identity is known to "https://evil.example", not to`},
		{"certificate for servers", with(func(s *keylesstest.Signing) { s.Usage = x509.ExtKeyUsageServerAuth }), keylesstest.Root{}, "the certificate is not by an authority"},
		{"before the authority", with(func(s *keylesstest.Signing) { s.Age = 3 * 365 * 24 * time.Hour }), keylesstest.Root{NoLog: true}, "timestamp authority of the trusted root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := keyless.Verify(w.Sign(message, tt.s), message, root(t, w, tt.root), id)
			switch {
			case tt.want != "":
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			case err != nil:
				t.Error(err)
			case got.Identity != id || !got.Time.Equal(now.Add(-tt.s.Age)) || got.Predicate != tt.s.Predicate:
				t.Errorf("signer %+v", got)
			}
			// Another world never speaks for this one.
			if _, err := keyless.Verify(w.Sign(message, tt.s), message, root(t, other, tt.root), id); err == nil {
				t.Error("verifies with the trusted root of another Sigstore")
			}
		})
	}
	for _, s := range []keylesstest.Signing{acme, with(func(s *keylesstest.Signing) { s.Predicate = slsa })} {
		if _, err := keyless.Verify(w.Sign(message, s), append(bytes.Clone(message), ' '), root(t, w, keylesstest.Root{}), id); err == nil || !strings.Contains(err.Error(), "another file") {
			t.Errorf("changed message: %v", err)
		}
	}
	if _, err := keyless.Verify(w.Sign(message, acme), message, root(t, w, keylesstest.Root{}), keyless.Identity{}); err == nil {
		t.Error("verifies for nobody in particular")
	}
}

// Every piece of evidence belongs to its signature: none can be taken from another bundle of the same identity and world.
func TestEvidenceDoesNotMove(t *testing.T) {
	w := keylesstest.New(now)
	trusted := root(t, w, keylesstest.Root{})
	for _, path := range [][]string{
		{"verificationMaterial", "certificate"},
		{"verificationMaterial", "tlogEntries"},
		{"verificationMaterial", "timestampVerificationData"},
		{"messageSignature", "signature"},
		{"messageSignature", "messageDigest"},
	} {
		var mine, theirs map[string]map[string]any
		for v, m := range map[*map[string]map[string]any][]byte{&mine: message, &theirs: []byte("other")} {
			var whole map[string]json.RawMessage
			if err := json.Unmarshal(w.Sign(m, acme), &whole); err != nil {
				t.Fatal(err)
			}
			*v = map[string]map[string]any{}
			for _, part := range []string{"verificationMaterial", "messageSignature"} {
				var fields map[string]any
				if err := json.Unmarshal(whole[part], &fields); err != nil {
					t.Fatal(err)
				}
				(*v)[part] = fields
			}
		}
		assemble := func() []byte {
			data, err := json.Marshal(map[string]any{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": mine["verificationMaterial"], "messageSignature": mine["messageSignature"]})
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		if _, err := keyless.Verify(assemble(), message, trusted, id); err != nil {
			t.Fatal(err)
		}
		mine[path[0]][path[1]] = theirs[path[0]][path[1]]
		if _, err := keyless.Verify(assemble(), message, trusted, id); err == nil {
			t.Errorf("%s of another bundle is taken", strings.Join(path, "."))
		}
	}
}

// One changed bit anywhere that carries meaning is refused; nothing panics.
func TestEveryBitOfABundleCounts(t *testing.T) {
	w := keylesstest.New(now)
	trusted := root(t, w, keylesstest.Root{})
	for _, s := range []keylesstest.Signing{acme, {Identity: id.Name, Issuer: id.Issuer, Predicate: slsa}} {
		good := w.Sign(message, s)
		if _, err := keyless.Verify(good, message, trusted, id); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(good); i += 1 + len(good)/1500 {
			changed := bytes.Clone(good)
			changed[i] ^= 2
			got, err := keyless.Verify(changed, message, trusted, id)
			if err == nil && (!unsigned(good, i) || got.Identity != id || !got.Time.Equal(now)) {
				t.Fatalf("byte %d (%q) changed to %q and it verifies: …%s…", i, good[i], changed[i], good[max(0, i-30):min(len(good), i+10)])
			}
			if _, err := keyless.Verify(good[:i], message, trusted, id); err == nil {
				t.Fatalf("the first %d bytes verify", i)
			}
		}
	}
}

// unsigned says that a byte of a bundle is not covered by any signature, by the formats: the unused bits of the last digit of base64, the
// name and the key hint in a checkpoint, and what wraps a timestamp (versions, lists of hashes). It must change nothing about the answer.
func unsigned(data []byte, i int) bool {
	end := bytes.IndexByte(data[i:], '"')
	if end >= 1 && end <= 3 && (data[i+1] == '=' || data[i+1] == '"') {
		return true
	}
	within := func(from, to string) bool {
		start := bytes.Index(data, []byte(from))
		return start >= 0 && i >= start && i < start+bytes.Index(data[start:], []byte(to))
	}
	return within(`"signedTimestamp":"`, `"}`) || within(`\n\n`, " log.example ") || within(" log.example ", `\n"`) && i < bytes.LastIndex(data, []byte(" log.example "))+len(" log.example ")+6
}

func TestOpenSSLTimestamps(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("SKIPPED: openssl is not installed, so timestamps were not cross-checked here")
	}
	w := keylesstest.New(now)
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var doc struct {
		Stampers []struct {
			Chain struct {
				Certificates []struct {
					Raw []byte `json:"rawBytes"`
				} `json:"certificates"`
			} `json:"certChain"`
		} `json:"timestampAuthorities"`
	}
	if err := json.Unmarshal(w.TrustedRoot(keylesstest.Root{}), &doc); err != nil {
		t.Fatal(err)
	}
	certs := doc.Stampers[0].Chain.Certificates
	write("root.pem", []byte("-----BEGIN CERTIFICATE-----\n"+base64.StdEncoding.EncodeToString(certs[len(certs)-1].Raw)+"\n-----END CERTIFICATE-----\n"))
	write("stamp.tsr", w.Timestamp(message, now))
	write("message", message)
	cmd := exec.CommandContext(t.Context(), openssl, "ts", "-verify", "-data", "message", "-in", "stamp.tsr", "-CAfile", "root.pem", "-attime", "1767323045")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("openssl does not take the timestamps of this test: %v\n%s", err, out)
	}
}

func TestParseRoot(t *testing.T) {
	good := string(keylesstest.New(now).TrustedRoot(keylesstest.Root{}))
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "not a trusted root"},
		{"unknown field", strings.Replace(good, `"mediaType"`, `"skip":true,"mediaType"`, 1), `unknown field "skip"`},
		{"behind it", good + "{}", "more bytes behind it"},
		{"bundle", string(keylesstest.New(now).Sign(message, acme)), "not a trusted root"},
		{"other type", strings.Replace(good, "trustedroot", "other", 1), "not that of a trusted root"},
		{"nobody", `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`, "no certificate authority"},
	} {
		if _, err := keyless.ParseRoot([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	w := keylesstest.New(now)
	trusted := root(f, w, keylesstest.Root{})
	good := w.Sign(message, acme)
	f.Add(good)
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`))
	f.Fuzz(func(t *testing.T, bundle []byte) {
		if s, err := keyless.Verify(bundle, message, trusted, id); err == nil && s.Identity != id {
			t.Errorf("%s verifies as %+v", bundle, s)
		}
	})
}
