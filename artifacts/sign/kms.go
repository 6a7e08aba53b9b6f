package sign

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// A key management service is reached through the program sigstore-kms-NAME, as cosign reaches it (Sigstore KMS plugin protocol,
// version 1, sigstore 1.10.11 and 1.11): a JSON request in an argument, the message on standard input, a JSON answer on standard
// output. The client of that library does the same and costs 2 MB and 10 ms of every start, so this is one of its own.
const (
	pluginPrefix    = "sigstore-kms-"
	pluginProtocol  = "v1"
	maxPluginAnswer = 1 << 20
	// pluginGrace is how long the pipes of a plugin that was stopped may stay open.
	pluginGrace = 5 * time.Second
)

// IsKeyURI reports whether key names a key of a key management service, NAME://REF, rather than a file.
func IsKeyURI(key string) bool { return strings.Contains(key, "://") }

// KMSKey is a private key that stays in a key management service.
type KMSKey struct {
	// Plugin is the program that was found on PATH for the name of the URI.
	Plugin string

	ctx    context.Context
	uri    string
	ref    string
	stderr io.Writer
	public PublicKey
}

var _ crypto.MessageSigner = (*KMSKey)(nil)

// OpenKMS asks the plugin of uri for its public key. The plugin runs within ctx, with the environment of this process, and what it has
// to say goes to stderr. The error is a *KeyError.
func OpenKMS(ctx context.Context, uri string, stderr io.Writer) (*KMSKey, error) {
	fail := func(format string, args ...any) (*KMSKey, error) {
		return nil, &KeyError{CodeBadKey, uri, fmt.Errorf(format, args...)}
	}
	name, ref, _ := strings.Cut(uri, "://")
	// A name with a separator would be a path, and so a program of the working directory.
	if name == "" || name[0] < 'a' || name[0] > 'z' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fail("%q is not the name of a key management service (lower-case letters, digits and hyphens)", name)
	}
	if ref == "" {
		return fail("no key behind %s://", name)
	}
	plugin, err := exec.LookPath(pluginPrefix + name)
	if err != nil {
		return fail("no program %s%s on PATH; it is the plugin that cosign uses for %s:// too", pluginPrefix, name, name)
	}
	k := &KMSKey{Plugin: plugin, ctx: ctx, uri: uri, ref: ref, stderr: stderr}
	answer, err := k.call(pluginRequest{Method: "publicKey", PublicKey: &pluginPublicKey{}}, nil)
	if err != nil {
		return nil, err
	}
	if answer.PublicKey == nil {
		return fail("%s answers without a public key", plugin)
	}
	if k.public, err = ParsePublicKey(answer.PublicKey.PEM); err != nil {
		return fail("%s: %w", plugin, err)
	}
	if k.public.ecdsa == nil {
		return fail("an Ed25519 key; releases are signed with ECDSA P-256, which every verifier accepts")
	}
	return k, nil
}

// Public returns the public half.
func (k *KMSKey) Public() crypto.PublicKey { return k.public.ecdsa }

// SignMessage signs msg, which the plugin hashes with SHA-256. The error is a *KeyError.
func (k *KMSKey) SignMessage(_ io.Reader, msg []byte, _ crypto.SignerOpts) ([]byte, error) {
	return k.sign(pluginMessage{}, msg)
}

// Sign signs a SHA-256 digest. The error is a *KeyError.
func (k *KMSKey) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	return k.sign(pluginMessage{digest, crypto.SHA256}, nil)
}

func (k *KMSKey) sign(m pluginMessage, stdin []byte) ([]byte, error) {
	answer, err := k.call(pluginRequest{Method: "signMessage", Sign: &pluginSign{Options: pluginSignOptions{Message: m}}}, stdin)
	if err != nil {
		return nil, err
	}
	if answer.Sign == nil || len(answer.Sign.Signature) == 0 {
		return nil, &KeyError{CodeBadKey, k.uri, fmt.Errorf("%s answers without a signature", k.Plugin)}
	}
	return answer.Sign.Signature, nil
}

// The requests and answers, as far as halo uses them. Bytes are base64 and hash functions the numbers of package crypto.
type (
	pluginRequest struct {
		Init      pluginInit       `json:"initOptions"`
		Method    string           `json:"methodName"`
		PublicKey *pluginPublicKey `json:"publicKey,omitempty"`
		Sign      *pluginSign      `json:"signMessage,omitempty"`
	}
	pluginInit struct {
		Protocol string      `json:"protocolVersion"`
		Key      string      `json:"keyResourceID"`
		Hash     crypto.Hash `json:"hashFunc"`
		RPC      struct{}    `json:"rpcOptions"`
	}
	pluginPublicKey struct {
		Options struct {
			RPC struct{} `json:"rpcOptions"`
		} `json:"publicKeyOptions"`
	}
	pluginSign struct {
		Options pluginSignOptions `json:"signOptions"`
	}
	pluginSignOptions struct {
		RPC     struct{}      `json:"rpcOptions"`
		Message pluginMessage `json:"messageOptions"`
	}
	pluginMessage struct {
		Digest []byte      `json:"digest,omitempty"`
		Hash   crypto.Hash `json:"hashFunc,omitempty"`
	}
	pluginAnswer struct {
		Error     string `json:"errorMessage"`
		PublicKey *struct {
			PEM []byte `json:"publicKeyPEM"`
		} `json:"publicKey"`
		Sign *struct {
			Signature []byte `json:"signature"`
		} `json:"signMessage"`
	}
)

func (k *KMSKey) call(request pluginRequest, stdin []byte) (*pluginAnswer, error) {
	fail := func(format string, args ...any) (*pluginAnswer, error) {
		return nil, &KeyError{CodeBadKey, k.uri, fmt.Errorf("%s: %w", k.Plugin, fmt.Errorf(format, args...))}
	}
	request.Init = pluginInit{Protocol: pluginProtocol, Key: k.ref, Hash: crypto.SHA256}
	argument, err := json.Marshal(request)
	if err != nil {
		return fail("%w", err)
	}
	cmd := exec.CommandContext(k.ctx, k.Plugin, pluginProtocol, string(argument))
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stderr = k.stderr
	cmd.WaitDelay = pluginGrace
	out := &cappedBuffer{limit: maxPluginAnswer}
	cmd.Stdout = out
	err = cmd.Run()
	if out.over {
		return fail("more than %d bytes of output", out.limit)
	}
	// A plugin that fails says why in its answer; its exit status alone says nothing.
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 1) {
		return fail("%w", err)
	}
	answer := new(pluginAnswer)
	if jsonErr := json.Unmarshal(out.data, answer); jsonErr != nil {
		if err != nil {
			return fail("%w", err)
		}
		return fail("the answer is not of the plugin protocol")
	}
	if answer.Error != "" {
		return fail("%s", oneLine(answer.Error))
	}
	return answer, nil
}

// oneLine keeps a foreign text on one line of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// cappedBuffer refuses more than limit bytes. It has no method but Write, so that nothing copies into it by another way.
type cappedBuffer struct {
	data  []byte
	limit int
	over  bool
}

func (b *cappedBuffer) Write(p []byte) (int, error) {
	if len(b.data)+len(p) > b.limit {
		b.over = true
		return 0, io.ErrShortWrite
	}
	b.data = append(b.data, p...)
	return len(p), nil
}
