package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/adopt"
	"halos.dev/halo/artifacts/device"
	"halos.dev/halo/artifacts/mdm"
	"halos.dev/halo/artifacts/oci"
	page "halos.dev/halo/artifacts/report"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/artifacts/sign/keyless"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint"
	"halos.dev/halo/lint/report"
)

func (p *program) releaseCommand() *cli.Command {
	build := p.buildCommand()
	return &cli.Command{
		Name: "release", Usage: "build, sign, verify and inspect releases",
		Subcommands: []*cli.Command{
			build,
			{
				Name: "sign", Usage: "sign a release", ArgsUsage: "DIR",
				Description: "DIR is a release directory, which must be whole: every file is compared with the manifest first. The first signer writes manifest.json.sigstore.json and\n" +
					"manifest.json.sig; another key adds manifest.json.ID.sigstore.json, and a key that signed before replaces its own. A password of the key comes from\n" +
					"HALO_KEY_PASSWORD or COSIGN_PASSWORD, or a prompt on a terminal.",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "key", Usage: "the private `KEY`: a file, or a URI like awskms://REF for the plugin sigstore-kms-awskms"}},
				Action: p.releaseSign,
			},
			{
				Name: "verify", Usage: "verify a release with pinned keys or a pinned identity", ArgsUsage: "RELEASE",
				Description: "RELEASE is a directory, an archive or an address oci://HOST/REPOSITORY:TAG. Checks the signature over the manifest first, then organization, order and expiry,\n" +
					"then every file, and that there is no other. Exit status 1 when the release does not verify.\n" +
					"With --certificate-identity the signature is by a workflow or person that a certificate names, checked against --trusted-root without a network.",
				Flags:  slices.Concat(trustFlags(), keylessFlags(), []cli.Flag{&cli.StringFlag{Name: "state", Usage: "a state `FILE` that makes verification forward-only; updated on success"}}, transportFlags()),
				Action: p.releaseVerify,
			},
			{
				Name: "inspect", Usage: "list what a release holds, without verifying it", ArgsUsage: "RELEASE",
				Description: "RELEASE is a directory, an archive or an address oci://HOST/REPOSITORY:TAG. Prints what the manifest says: who it is for, when it ends, who seems to have\n" +
					"signed, and the files of every target. Nothing of it is checked, so nothing of it is proven.",
				Flags:  transportFlags(),
				Action: p.releaseInspect,
			},
			p.trustCommand(),
			p.releasePackCommand(), p.releasePushCommand(), p.releasePullCommand(),
		},
	}
}

func (p *program) releaseSign(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release directory"); err != nil {
		return err
	}
	if c.String("key") == "" {
		return errors.New("sign needs --key KEY, the private key")
	}
	signer, err := p.signer(c)
	if err != nil {
		return err
	}
	dir := c.Args().First()
	s, err := artifacts.SignDir(c.Context, dir, signer)
	if err != nil {
		return rejected(err)
	}
	m, data, err := artifacts.ReadManifest(dir)
	if err != nil {
		return rejected(err)
	}
	if m.Expires.IsZero() {
		fmt.Fprintf(p.err, "warning[%s] the release never expires: halos.yaml has no lifetime\n", artifacts.CodeNoExpiry.ID)
	}
	digest := artifacts.Digest(data)
	if f == "json" {
		return report.WriteJSON(p.out, map[string]string{"digest": digest, "key": s.Key.ID()})
	}
	_, err = fmt.Fprintf(p.out, "signed %s\nkey    %s\n", digest, s.Key.ID())
	return err
}

// rejected marks a release that does not verify, or a device that must not be changed as asked, as a negative answer.
func rejected(err error) error {
	if r, ok := errors.AsType[*device.Refusal](err); ok && !r.Code.NoAnswer {
		return answerError{err}
	}
	if _, ok := errors.AsType[*artifacts.VerifyError](err); ok {
		return answerError{err}
	}
	return err
}

func (p *program) releaseVerify(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release: a directory, an archive or an oci:// address"); err != nil {
		return err
	}
	v, err := p.verifyRelease(c, c.Args().First())
	if err != nil {
		if r, ok := errors.AsType[*artifacts.VerifyError](err); ok && f == "json" {
			if err := report.WriteJSON(p.out, struct {
				Verified bool                `json:"verified"`
				Code     string              `json:"code"`
				Problems []artifacts.Problem `json:"problems"`
				More     int                 `json:"more"`
			}{false, r.Code.ID, r.Problems, r.More}); err != nil {
				return err
			}
			return no
		}
		return err
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Verified bool     `json:"verified"`
			Digest   string   `json:"digest"`
			Keys     []string `json:"keys"`
			Org      string   `json:"org"`
			Version  string   `json:"version"`
			Sequence int64    `json:"sequence"`
			Files    int      `json:"files"`
			Detached bool     `json:"detached"`
			// Identities are who signed without a key.
			Identities []keyless.Signer `json:"identities,omitempty"`
		}{true, v.Digest, append([]string{}, v.Signers...), v.Manifest.Org, v.Manifest.Version, v.Manifest.Sequence, len(v.Manifest.Files), v.Detached, v.Identities})
	}
	if len(v.Signers) > 0 && !v.Detached && !c.Bool("quiet") {
		fmt.Fprintf(p.err, "note: there is no %s, which openssl needs; %s, which was verified, is enough for halo and cosign\n", artifacts.DetachedName, artifacts.BundleName)
	}
	fmt.Fprintf(p.out, "verified %s\n  org %s, version %s, sequence %d, %d files\n", v.Digest, v.Manifest.Org, v.Manifest.Version, v.Manifest.Sequence, len(v.Manifest.Files))
	for _, s := range v.Identities {
		verb := "signed"
		if s.Predicate != "" {
			verb = "attested (" + s.Predicate + ")"
		}
		fmt.Fprintf(p.out, "  %s by %s of %s at %s\n", verb, s.Name, s.Issuer, s.Time.UTC().Format(time.RFC3339))
	}
	if len(v.Signers) > 0 {
		fmt.Fprintf(p.out, "  signed by key %s\n", strings.Join(v.Signers, ", "))
	}
	return nil
}

func (p *program) releaseInspect(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release: a directory, an archive or an oci:// address"); err != nil {
		return err
	}
	fsys, err := p.releaseAt(c, c.Args().First())
	if err != nil {
		return err
	}
	defer fsys.Close()
	in, err := artifacts.Inspect(fsys)
	if err != nil {
		return err
	}
	if f == "json" {
		return report.WriteJSON(p.out, in)
	}
	return in.Text(p.out)
}

func (p *program) keygenCommand() *cli.Command {
	return &cli.Command{
		Name: "keygen", Usage: "make a key pair for signing releases",
		Description: "Writes NAME.key (cosign's encrypted form, mode 0600) and NAME.pub. The password comes from HALO_KEY_PASSWORD or COSIGN_PASSWORD, or a prompt on\n" +
			"a terminal; set to the empty text, the key is not encrypted. No existing file is overwritten.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "out", Usage: "the `NAME` of the two files"}},
		Action: func(c *cli.Context) error {
			f, err := form(c, "text", "json")
			if err != nil {
				return err
			}
			if err := noArgs(c); err != nil {
				return err
			}
			if c.String("out") == "" {
				return errors.New("keygen needs --out NAME")
			}
			password, err := p.passwords().NewPassword()
			if err != nil {
				return err
			}
			pair, err := sign.Keygen(c.String("out"), password)
			if err != nil {
				return err
			}
			if pair.Unencrypted {
				fmt.Fprintf(p.err, "warning[%s] %s is not encrypted: whoever reads it can sign releases\n", sign.CodePlainKey.ID, pair.Private)
			}
			if f == "json" {
				return report.WriteJSON(p.out, map[string]string{"private": pair.Private, "public": pair.Public, "key": pair.Key.ID()})
			}
			_, err = fmt.Fprintf(p.out, "%s\n%s\nkey %s\n", pair.Private, pair.Public, pair.Key.ID())
			return err
		},
	}
}

// codes joins the codes of every package, in order of their ids.
func codes() []*diag.Code {
	out := slices.Concat(compiler.Codes(), lint.Codes(), artifacts.Codes(), oci.Codes(), sign.Codes(), device.Codes(), mdm.Codes(), page.Codes(), adopt.Codes())
	slices.SortFunc(out, func(a, b *diag.Code) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
