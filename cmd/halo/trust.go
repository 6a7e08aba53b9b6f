package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// trustFlags are the flags of every command that uses a release, which is never used without being verified.
func trustFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "key", Usage: "a public key `FILE` that may have signed; may be repeated"},
		&cli.StringFlag{Name: "trust", Usage: "the trust `FILE` with the keys that must have signed (default: HALO_TRUST, else halo-trust.json in /etc/halo)"},
	}
}

// trustOf finds out whose signatures count: --key, else --trust, else HALO_TRUST, else the trust file of the device whose files are below root ("/" for this one).
func (p *program) trustOf(c *cli.Context, root string) (*sign.Trust, error) {
	keys, file := c.StringSlice("key"), c.String("trust")
	switch {
	case len(keys) > 0 && file != "":
		return nil, errors.New("--key and --trust exclude each other: a trust file names its own keys")
	case len(keys) > 0:
		trust := sign.TrustKeys()
		for _, file := range keys {
			k, err := sign.LoadPublicKey(file)
			if err != nil {
				return nil, err
			}
			trust.Keys = append(trust.Keys, k)
		}
		return trust, nil
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

// openRelease verifies the release in fsys completely by the flags of trustFlags, the clock (or --as-of) and, when the command has it, --state. A release that is
// not to be trusted is the answer no.
func (p *program) openRelease(c *cli.Context, fsys fs.FS, root string) (*artifacts.Verified, error) {
	trust, err := p.trustOf(c, root)
	if err != nil {
		return nil, err
	}
	now, _, err := p.instant(c)
	if err != nil {
		return nil, err
	}
	v, err := artifacts.Verify(c.Context, fsys, artifacts.VerifyOptions{Trust: trust, Now: now, StateFile: c.String("state")})
	if err != nil {
		return nil, rejected(err)
	}
	return v, nil
}

var errNoKey = errors.New("name the keys with --key PUB or --trust FILE: a release is trusted by a key you have, not by one it brings")
