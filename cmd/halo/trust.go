package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/artifacts/sign/keyless"
	"halos.dev/halo/lint/report"
)

// trustFlags are the flags of every command that uses a release, which is never used without being verified.
func trustFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "key", Usage: "a public key `FILE` that may have signed; may be repeated"},
		&cli.StringFlag{Name: "trust", Usage: "the trust `FILE` with the keys that must have signed (default: HALO_TRUST, else halo-trust.json in /etc/halo)"},
	}
}

// keylessFlags are identityFlags with the signatures to look at.
func keylessFlags() []cli.Flag {
	return append(identityFlags(),
		&cli.StringSliceFlag{Name: "bundle", Usage: "a Sigstore bundle `FILE` over the manifest, or an attestation about it; may be repeated (default: manifest.json.sigstore.json of the release)"})
}

// identityFlags are trust in an identity instead of keys, spelled as in cosign.
func identityFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "certificate-identity", Usage: "the `IDENTITY` (workflow URI or address) that must have signed, instead of a key"},
		&cli.StringFlag{Name: "certificate-oidc-issuer", Usage: "the `ISSUER` that knows the identity"},
		&cli.StringFlag{Name: "trusted-root", Usage: "the trusted root `FILE` with the authorities and logs that count"},
	}
}

// byIdentity reads the flags of identityFlags; nil when none is given. It has no bundles yet.
func (p *program) byIdentity(c *cli.Context) (*artifacts.Keyless, error) {
	id := keyless.Identity{Name: c.String("certificate-identity"), Issuer: c.String("certificate-oidc-issuer")}
	rootFile := c.String("trusted-root")
	if id == (keyless.Identity{}) && rootFile == "" && len(c.StringSlice("bundle")) == 0 {
		return nil, nil
	}
	if id.Name == "" || id.Issuer == "" || rootFile == "" {
		return nil, errors.New("verifying without a key needs all of --certificate-identity, --certificate-oidc-issuer and --trusted-root")
	}
	if len(c.StringSlice("key")) > 0 || c.String("trust") != "" {
		return nil, errors.New("--certificate-identity excludes --key and --trust")
	}
	data, err := readCapped(rootFile)
	if err != nil {
		return nil, err
	}
	k := &artifacts.Keyless{Identity: id, Bundles: map[string][]byte{}}
	if k.Root, err = keyless.ParseRoot(data); err != nil {
		return nil, fmt.Errorf("%s: %w", rootFile, err)
	}
	return k, nil
}

// keyless reads the flags of keylessFlags, and the bundle of the release in fsys when they name none; nil when no flag is given.
func (p *program) keyless(c *cli.Context, fsys fs.FS) (*artifacts.Keyless, error) {
	k, err := p.byIdentity(c)
	if k == nil || err != nil {
		return nil, err
	}
	for _, file := range c.StringSlice("bundle") {
		if k.Bundles[file], err = readCapped(file); err != nil {
			return nil, err
		}
	}
	if len(k.Bundles) == 0 {
		if k.Bundles[artifacts.BundleName], err = fs.ReadFile(fsys, artifacts.BundleName); errors.Is(err, fs.ErrNotExist) {
			return nil, answerError{fmt.Errorf("%s: missing: the release brings no signature", artifacts.BundleName)}
		} else if err != nil {
			return nil, err
		}
	}
	return k, nil
}

// trusts refuses flags that say nothing about whom to trust, before anything is fetched.
func (p *program) trusts(c *cli.Context) error {
	k, err := p.byIdentity(c)
	if k == nil && err == nil {
		_, err = p.trustOf(c, string(filepath.Separator))
	}
	return err
}

// readCapped reads a bundle or a trusted root, which a pipe is not.
func readCapped(file string) ([]byte, error) {
	if info, err := os.Stat(file); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, keyless.MaxSize+1))
}

// trustOf finds out whose signatures count: --key, else --trust, else HALO_TRUST, else the trust file of the device whose files are below root ("/" for this one).
func (p *program) trustOf(c *cli.Context, root string) (*sign.Trust, error) {
	keys, file := c.StringSlice("key"), c.String("trust")
	switch {
	case len(keys) > 0 && file != "":
		return nil, errors.New("--key and --trust exclude each other: a trust file names its own keys")
	case len(keys) > 0:
		loaded, err := publicKeys(keys)
		if err != nil {
			return nil, err
		}
		return sign.TrustKeys(loaded...), nil
	case file != "":
		return sign.LoadTrust(file)
	}
	if file := p.getenv("HALO_TRUST"); file != "" {
		return sign.LoadTrust(file)
	}
	trust, err := sign.LoadTrust(defaultTrust(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (%s is not there either)", errNoKey, defaultTrust(root))
	}
	return trust, err
}

// defaultTrust is where a device keeps its trust file.
func defaultTrust(root string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(root, "ProgramData", "halo", sign.TrustName)
	}
	return filepath.Join(root, "etc", "halo", sign.TrustName)
}

// openRelease verifies the release in fsys completely by the flags of trustFlags (and keylessFlags, when the command has them), the clock (or --as-of) and, when the command has it, --state. A release that is
// not to be trusted is the answer no.
func (p *program) openRelease(c *cli.Context, fsys fs.FS, root string) (*artifacts.Verified, error) {
	var opts artifacts.VerifyOptions
	var err error
	if opts.Keyless, err = p.keyless(c, fsys); err != nil {
		return nil, err
	}
	if opts.Keyless == nil {
		if opts.Trust, err = p.trustOf(c, root); err != nil {
			return nil, err
		}
	}
	return p.verify(c, fsys, opts)
}

// verifyWith is openRelease with the trust at hand.
func (p *program) verifyWith(c *cli.Context, fsys fs.FS, trust *sign.Trust) (*artifacts.Verified, error) {
	return p.verify(c, fsys, artifacts.VerifyOptions{Trust: trust})
}

func (p *program) verify(c *cli.Context, fsys fs.FS, opts artifacts.VerifyOptions) (*artifacts.Verified, error) {
	opts.StateFile = c.String("state")
	var err error
	if opts.Now, _, err = p.instant(c); err != nil {
		return nil, err
	}
	v, err := artifacts.Verify(c.Context, fsys, opts)
	if err != nil {
		return nil, rejected(err)
	}
	return v, nil
}

var errNoKey = errors.New("name the keys with --key PUB or --trust FILE: a release is trusted by a key you have, not by one it brings")

func (p *program) trustCommand() *cli.Command {
	out := &cli.StringFlag{Name: "out", Usage: "the trust `FILE` to write; never one that is there"}
	threshold := &cli.IntFlag{Name: "threshold", Usage: "the `NUMBER` of keys that must sign (default: 1 in a first file, else what it was)"}
	return &cli.Command{
		Name: "trust", Usage: "make, change and accept trust files",
		Description: "A trust file names the keys of an organization, how many of them must sign, and the keys that are revoked. It is trusted because it was put where it is;\n" +
			"after that only a file that enough of the old and of the new keys signed takes its place.",
		Subcommands: []*cli.Command{
			{
				Name: "init", Usage: "make the first trust file of an organization", ArgsUsage: "PUB...",
				Description: "PUB are the public key files. The file is not signed: it is trusted where you put it, by default /etc/halo/halo-trust.json of a device.",
				Flags:       []cli.Flag{out, threshold, &cli.StringFlag{Name: "org", Usage: "the `ORG` of halos.yaml, whose releases the keys sign"}},
				Action:      p.trustInit,
			},
			{
				Name: "rotate", Usage: "write the next version of a trust file, to be signed by the old and the new keys", ArgsUsage: "FILE",
				Description: "FILE stays as it is. What --out says counts nowhere until enough keys signed it (halo release trust sign) and it was taken (halo release trust update).",
				Flags: []cli.Flag{
					out, threshold,
					&cli.StringSliceFlag{Name: "add", Usage: "a public key `FILE` to trust; may be repeated"},
					&cli.StringSliceFlag{Name: "remove", Usage: "a `KEY` (id or public key file) that is no longer used; may be repeated"},
					&cli.StringSliceFlag{Name: "revoke", Usage: "a `KEY` (id or public key file) that never counts again; may be repeated"},
				},
				Action: p.trustRotate,
			},
			{
				Name: "sign", Usage: "sign a trust file; the signature is written beside it", ArgsUsage: "FILE",
				Description: "Writes FILE.ID.sigstore.json, where ID begins the id of the key; carry it along with FILE.",
				Flags:       []cli.Flag{&cli.StringFlag{Name: "key", Usage: "the private `KEY`: a file, or a URI like awskms://REF for the plugin sigstore-kms-awskms"}},
				Action:      p.trustSign,
			},
			{
				Name: "update", Usage: "put a newer trust file in the place of the one in use", ArgsUsage: "NEW",
				Description: "NEW must be of the same organization, have a higher version, name every revoked key, and be signed by the threshold of the old and of the new keys.\n" +
					"Its signatures are the files NEW.*.sigstore.json. Exit status 1 when it may not follow; then nothing is written.",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "trust", Usage: "the trust `FILE` in use (default: HALO_TRUST, else halo-trust.json in /etc/halo)"}},
				Action: p.trustUpdate,
			},
			{
				Name: "show", Usage: "list what a trust file says", ArgsUsage: "FILE",
				Description: "Prints organization, version, threshold, and the ids of the keys that count and of those that are revoked.",
				Action: func(c *cli.Context) error {
					return p.trustFile(c, func(file string) (*sign.Trust, error) { return sign.LoadTrust(file) })
				},
			},
		},
	}
}

// trustFile runs a command with one trust file as its argument and shows the trust it answers with.
func (p *program) trustFile(c *cli.Context, do func(file string) (*sign.Trust, error)) error {
	if err := exactly(c, 1, "one trust file"); err != nil {
		return err
	}
	return p.showTrust(c, func() (*sign.Trust, error) { return do(c.Args().First()) })
}

func (p *program) showTrust(c *cli.Context, do func() (*sign.Trust, error)) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	t, err := do()
	if err != nil {
		return rejected(err)
	}
	ids := make([]string, len(t.Keys))
	for i, k := range t.Keys {
		ids[i] = k.ID()
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Org       string   `json:"org"`
			Version   int64    `json:"version"`
			Threshold int      `json:"threshold"`
			Keys      []string `json:"keys"`
			Revoked   []string `json:"revoked"`
		}{t.Org, t.Version, t.Threshold, ids, append([]string{}, t.Revoked...)})
	}
	fmt.Fprintf(p.out, "trust of %s, version %d: %d of %d keys must sign\n", t.Org, t.Version, t.Threshold, len(t.Keys))
	for _, id := range ids {
		fmt.Fprintf(p.out, "  key     %s\n", id)
	}
	for _, id := range t.Revoked {
		fmt.Fprintf(p.out, "  revoked %s\n", id)
	}
	return nil
}

func publicKeys(files []string) ([]sign.PublicKey, error) {
	keys := make([]sign.PublicKey, 0, len(files))
	for _, file := range files {
		k, err := sign.LoadPublicKey(file)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// keyIDs takes each key by its id or its file.
func keyIDs(keys []string) ([]string, error) {
	ids := make([]string, 0, len(keys))
	for _, key := range keys {
		if len(key) == 64 && strings.Trim(key, "0123456789abcdef") == "" {
			ids = append(ids, key)
			continue
		}
		k, err := sign.LoadPublicKey(key)
		if err != nil {
			return nil, err
		}
		ids = append(ids, k.ID())
	}
	return ids, nil
}

func (p *program) trustInit(c *cli.Context) error {
	if c.String("out") == "" || c.String("org") == "" || c.NArg() == 0 {
		return errors.New("trust init needs --org ORG, --out FILE and one or more public keys")
	}
	return p.showTrust(c, func() (*sign.Trust, error) {
		keys, err := publicKeys(c.Args().Slice())
		if err != nil {
			return nil, err
		}
		t := &sign.Trust{Org: c.String("org"), Version: 1, Threshold: 1, Keys: keys}
		if c.IsSet("threshold") {
			t.Threshold = c.Int("threshold")
		}
		t.Sort()
		return t, artifacts.WriteTrust(c.String("out"), t)
	})
}

func (p *program) trustRotate(c *cli.Context) error {
	if c.String("out") == "" {
		return errors.New("trust rotate needs --out FILE: the trust file in use is replaced only once the new one is signed (halo release trust update)")
	}
	if c.IsSet("threshold") && c.Int("threshold") < 1 {
		return errors.New("--threshold is 1 or more")
	}
	return p.trustFile(c, func(file string) (*sign.Trust, error) {
		t, err := sign.LoadTrust(file)
		if err != nil {
			return nil, err
		}
		r := sign.Rotation{Threshold: c.Int("threshold")}
		if r.Add, err = publicKeys(c.StringSlice("add")); err != nil {
			return nil, err
		}
		if r.Remove, err = keyIDs(c.StringSlice("remove")); err != nil {
			return nil, err
		}
		if r.Revoke, err = keyIDs(c.StringSlice("revoke")); err != nil {
			return nil, err
		}
		if t, err = t.Rotate(r); err != nil {
			return nil, err
		}
		return t, artifacts.WriteTrust(c.String("out"), t)
	})
}

func (p *program) trustSign(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one trust file"); err != nil {
		return err
	}
	if c.String("key") == "" {
		return errors.New("sign needs --key KEY, the private key")
	}
	signer, err := p.signer(c)
	if err != nil {
		return err
	}
	s, err := artifacts.SignTrust(c.Args().First(), signer)
	if err != nil {
		return err
	}
	if f == "json" {
		return report.WriteJSON(p.out, map[string]string{"key": s.Key.ID()})
	}
	_, err = fmt.Fprintf(p.out, "signed %s\nkey    %s\n", c.Args().First(), s.Key.ID())
	return err
}

func (p *program) trustUpdate(c *cli.Context) error {
	file := cmp.Or(c.String("trust"), p.getenv("HALO_TRUST"), defaultTrust(string(filepath.Separator)))
	return p.trustFile(c, func(next string) (*sign.Trust, error) { return artifacts.UpdateTrust(file, next) })
}
