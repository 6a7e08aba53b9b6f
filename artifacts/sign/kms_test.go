package sign

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/kms/cliplugin/handler"
)

// TestMain is a plugin when the test binary runs under the name of one.
func TestMain(m *testing.M) {
	if name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), pluginPrefix); ok {
		os.Exit(plugin(name))
	}
	os.Exit(m.Run())
}

// testKMS is a key management service by Sigstore's own handler of the protocol.
type testKMS struct {
	signature.SignerVerifier
}

func (testKMS) CreateKey(context.Context, string) (crypto.PublicKey, error) {
	return nil, errors.New("no keys are made here")
}

func (testKMS) CryptoSigner(context.Context, func(error)) (crypto.Signer, crypto.SignerOpts, error) {
	return nil, nil, errors.New("not in the protocol")
}
func (testKMS) SupportedAlgorithms() []string { return nil }
func (testKMS) DefaultAlgorithm() string      { return "" }

// plugin answers one request: the service "good" with the key in the file that the URI names, the others wrongly.
func plugin(service string) int {
	args, err := handler.GetPluginArgs(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "plugin %s: %s\n", service, args.MethodName)
	key, err := LoadPrivateKey(args.InitOptions.KeyResourceID, nil)
	if err != nil {
		if err := handler.WriteErrorResponse(os.Stdout, err); err != nil {
			return 2
		}
		return 1
	}
	sv, err := signature.LoadSignerVerifier(key, args.InitOptions.HashFunc)
	if err != nil {
		return 2
	}
	switch {
	case service == "silent":
		return 3
	case service == "garbage":
		fmt.Print("hello")
		return 0
	case service == "empty":
		fmt.Print("{}")
		return 0
	case service == "endless":
		fmt.Print(strings.Repeat(" ", 2<<20))
		return 0
	case service == "stranger" && args.MethodName == "signMessage":
		other, _, err := signature.NewDefaultECDSASignerVerifier()
		if err != nil {
			return 2
		}
		_, err = handler.Dispatch(os.Stdout, os.Stdin, args, testKMS{both{other, sv}})
		return status(err)
	}
	_, err = handler.Dispatch(os.Stdout, os.Stdin, args, testKMS{sv})
	return status(err)
}

// both signs with one key and names another.
type both struct {
	signature.Signer
	signature.Verifier
}

func (b both) PublicKey(opts ...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return b.Verifier.PublicKey(opts...)
}

func status(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

func TestKMS(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the plugins of this test are links to the test binary")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"good", "silent", "garbage", "empty", "endless", "stranger"} {
		if err := os.Symlink(self, filepath.Join(bin, pluginPrefix+name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	dir := t.TempDir()
	pair, err := Keygen(filepath.Join(dir, "k"), nil)
	if err != nil {
		t.Fatal(err)
	}

	var stderr bytes.Buffer
	key, err := OpenKMS(t.Context(), "good://"+pair.Private, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(bin, "sigstore-kms-good"); key.Plugin != want {
		t.Errorf("plugin %s, not %s", key.Plugin, want)
	}
	s, err := Sign(key, message)
	if err != nil {
		t.Fatal(err)
	}
	if k, err := VerifyBundle(s.Bundle, []PublicKey{pair.Key}, message); err != nil || k.ID() != pair.Key.ID() {
		t.Errorf("bundle: %v", err)
	}
	digest := sha256.Sum256(message)
	raw, err := key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil || !ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], raw) {
		t.Errorf("signature of a digest: %v", err)
	}
	if got := stderr.String(); got != "plugin good: publicKey\nplugin good: signMessage\nplugin good: signMessage\n" {
		t.Errorf("the plugin said %q", got)
	}

	for _, tt := range []struct{ uri, want string }{
		{"nowhere://x", "no program sigstore-kms-nowhere on PATH"},
		{"../good://x", "is not the name of a key management service"},
		{"a/b://x", "is not the name of a key management service"},
		{"Good://x", "is not the name of a key management service"},
		{"://x", "is not the name of a key management service"},
		{"good://", "no key behind good://"},
		{"good://" + filepath.Join(dir, "none"), "cannot read the key file"},
		{"silent://" + pair.Private, "exit status 3"},
		{"garbage://" + pair.Private, "not of the plugin protocol"},
		{"empty://" + pair.Private, "answers without a public key"},
		{"endless://" + pair.Private, "more than 1048576 bytes"},
	} {
		_, err := OpenKMS(t.Context(), tt.uri, io.Discard)
		var bad *KeyError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.uri, err, tt.want)
		}
	}
	stranger, err := OpenKMS(t.Context(), "stranger://"+pair.Private, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(stranger, message); err == nil || !strings.Contains(err.Error(), "does not verify") {
		t.Errorf("a signature by another key: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenKMS(ctx, "good://"+pair.Private, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
