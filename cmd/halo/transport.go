package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/oci"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/artifacts/sign/keyless"
	"halos.dev/halo/lint/report"
)

// transportFlags are the flags of every command that may talk to a registry.
func transportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "plain-http", Usage: "allow HTTP without TLS to a registry that is not on this machine"},
		&cli.DurationFlag{Name: "timeout", Value: 15 * time.Minute, Usage: "give up on a registry after this `TIME`"},
	}
}

func (p *program) releasePackCommand() *cli.Command {
	return &cli.Command{
		Name: "pack", Usage: "write a release as one tar archive", ArgsUsage: "RELEASE",
		Description: "Writes the release with its signatures into a deterministic tar archive: the same release gives the same bytes anywhere. halo release verify and\n" +
			"inspect read the archive in place, and tar xf unpacks it. The release must be whole; signatures are carried along, not checked.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the archive `FILE` to write (default: RELEASE.tar); an existing one must be an archive of a release"},
		}, transportFlags()...),
		Action: p.releasePack,
	}
}

func (p *program) releasePushCommand() *cli.Command {
	return &cli.Command{
		Name: "push", Usage: "put a signed release into an OCI registry", ArgsUsage: "RELEASE oci://HOST/REPOSITORY:TAG",
		Description: "The same release has the same digest in every registry. Blobs go first and tags last: a push that stops halfway moves no tag, and the next one sends\n" +
			"only what is missing. Credentials come from the docker configuration (DOCKER_CONFIG, else ~/.docker). The release must be whole and signed;\n" +
			"with --key or --trust it is verified first.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringSliceFlag{Name: "tag", Usage: "a further `TAG` that is to name the release, such as that of a ring; may be repeated"},
		}, trustFlags(), transportFlags()),
		Action: p.releasePush,
	}
}

func (p *program) releasePullCommand() *cli.Command {
	return &cli.Command{
		Name: "pull", Usage: "get a release from an OCI registry, verified", ArgsUsage: "oci://HOST/REPOSITORY:TAG",
		Description: "Verifies the release as halo release verify does before the first file of --out is written; it is written whole or not at all. An existing --out must be\n" +
			"a halo release. With --certificate-identity the signature is by a workflow or person that a certificate names. Exit status 1 when the release does not\n" +
			"verify.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the release `DIR` to write"},
			&cli.StringFlag{Name: "state", Usage: "a state `FILE` that makes pulling forward-only; updated on success"},
		}, trustFlags(), identityFlags(), transportFlags()),
		Action: p.releasePull,
	}
}

func (p *program) releasePack(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release: a directory, an archive or an oci:// address"); err != nil {
		return err
	}
	path := c.Args().First()
	out := c.String("out")
	if out == "" {
		out = filepath.Clean(path) + ".tar"
		if base := filepath.Base(path); base == "." || base == ".." || base == string(filepath.Separator) || strings.HasPrefix(path, oci.Scheme) {
			return fmt.Errorf("pack needs --out FILE, since %s is no file name", path)
		}
	}
	fsys, err := p.releaseAt(c, path)
	if err != nil {
		return rejected(err)
	}
	defer fsys.Close()
	info, err := artifacts.WriteArchiveFile(c.Context, fsys, out, artifacts.ArchiveOptions{})
	if err != nil {
		return rejected(diskError(err))
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Archive string `json:"archive"`
			Digest  string `json:"digest"`
			SHA256  string `json:"sha256"`
			Files   int    `json:"files"`
			Size    int64  `json:"size"`
		}{out, info.Digest, info.SHA256, info.Files, info.Size})
	}
	_, err = fmt.Fprintf(p.out, "%s\n%s: %d files, %d bytes, sha256 %s\n", info.Digest, out, info.Files, info.Size, info.SHA256)
	return err
}

func (p *program) releasePush(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 2, "a release and an address like oci://registry.example/acme/policy:v1"); err != nil {
		return err
	}
	to, err := oci.ParseReference(c.Args().Get(1))
	if err != nil {
		return err
	}
	fsys, err := p.releaseAt(c, c.Args().First())
	if err != nil {
		return rejected(err)
	}
	defer fsys.Close()
	if c.IsSet("key") || c.IsSet("trust") {
		if _, err := p.openRelease(c, fsys, string(filepath.Separator)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	pushed, err := oci.Push(ctx, fsys, to, c.StringSlice("tag"), p.registry(c))
	if err != nil {
		return rejected(diskError(err))
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Reference string      `json:"reference"`
			Digest    string      `json:"digest"`
			Release   string      `json:"release"`
			Tags      []oci.Moved `json:"tags"`
			Bundles   int         `json:"bundles"`
			Sent      int64       `json:"sent"`
		}{pushed.Reference.String(), pushed.Digest, pushed.Release, pushed.Tags, pushed.Bundles, pushed.Sent})
	}
	for _, t := range pushed.Tags {
		if t.Before != "" && !c.Bool("quiet") {
			fmt.Fprintf(p.err, "note: tag %s named %s before\n", t.Tag, t.Before)
		}
	}
	_, err = fmt.Fprintf(p.out, "%s\n%s: %d bundles, %d bytes sent\n", pushed.Release, pushed.Reference, pushed.Bundles, pushed.Sent)
	return err
}

func (p *program) releasePull(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "an address like oci://registry.example/acme/policy:v1"); err != nil {
		return err
	}
	out := c.String("out")
	if out == "" {
		return errors.New("pull needs --out DIR")
	}
	from, err := oci.ParseReference(c.Args().First())
	if err != nil {
		return err
	}
	if err := p.trusts(c); err != nil {
		return err
	}
	tmp, done, err := artifacts.Workspace(out)
	if err != nil {
		return err
	}
	defer done()
	rel, err := p.fetch(c, from, tmp)
	if err != nil {
		return rejected(diskError(err))
	}
	defer rel.Close()
	v, err := p.openRelease(c, rel, string(filepath.Separator))
	if err != nil {
		return err
	}
	if err := v.Write(c.Context, out); err != nil {
		return rejected(diskError(err))
	}
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Release   string   `json:"release"`
			Reference string   `json:"reference"`
			Digest    string   `json:"digest"`
			Keys      []string `json:"keys"`
			Org       string   `json:"org"`
			Version   string   `json:"version"`
			Sequence  int64    `json:"sequence"`
			Files     int      `json:"files"`
			// Identities are who signed without a key.
			Identities []keyless.Signer `json:"identities,omitempty"`
		}{out, rel.Reference.String(), v.Digest, append([]string{}, v.Signers...), v.Manifest.Org, v.Manifest.Version, v.Manifest.Sequence, len(v.Manifest.Files), v.Identities})
	}
	_, err = fmt.Fprintf(p.out, "%s\n%s: version %s, sequence %d, %d files, from %s\n", v.Digest, out, v.Manifest.Version, v.Manifest.Sequence, len(v.Manifest.Files), rel.Reference)
	return err
}

// verifyRelease verifies the release at path, a directory, an archive or an address in a registry, by the flags of the command.
func (p *program) verifyRelease(c *cli.Context, path string) (*artifacts.Verified, error) {
	if err := p.trusts(c); err != nil {
		return nil, err
	}
	fsys, err := p.releaseAt(c, path)
	if err != nil {
		return nil, rejected(err)
	}
	defer fsys.Close()
	return p.openRelease(c, fsys, string(filepath.Separator))
}

// releaseAt opens the release at path, a directory, an archive or an address in a registry. What is fetched lies in a temporary file until it is closed.
func (p *program) releaseAt(c *cli.Context, path string) (artifacts.FS, error) {
	if !strings.HasPrefix(path, oci.Scheme) {
		return artifacts.Open(path)
	}
	ref, err := oci.ParseReference(path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "halo-")
	if err != nil {
		return nil, err
	}
	rel, err := p.fetch(c, ref, dir)
	if err != nil {
		return nil, errors.Join(diskError(err), os.RemoveAll(dir))
	}
	return &temporary{rel, dir}, nil
}

// localRelease opens a release of this machine, for commands that must work without a network.
func localRelease(path string) (artifacts.FS, error) {
	if strings.HasPrefix(path, oci.Scheme) {
		return nil, fmt.Errorf("%s is in a registry; get it with halo release pull, which verifies it, and name the directory", path)
	}
	return artifacts.Open(path)
}

// temporary is a release with a directory that goes when it is closed.
type temporary struct {
	artifacts.FS
	dir string
}

func (t *temporary) Close() error { return errors.Join(t.FS.Close(), os.RemoveAll(t.dir)) }

// fetch downloads a release into dir within --timeout.
func (p *program) fetch(c *cli.Context, ref oci.Reference, dir string) (*oci.Release, error) {
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	return oci.Fetch(ctx, ref, dir, p.registry(c))
}

// registry says how to talk to registries.
func (p *program) registry(c *cli.Context) oci.Options {
	o := oci.Options{PlainHTTP: c.Bool("plain-http"), Retries: 3, Agent: "halo/" + version}
	// The configuration is read when a registry is asked, and a damaged one is an error only then.
	o.Credentials = func(ctx context.Context, host string) (auth.Credential, error) {
		store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("docker configuration: %w", err)
		}
		return credentials.Credential(store)(ctx, host)
	}
	if k, err := p.byIdentity(c); k != nil && err == nil {
		o.Prefer = func(bundle, manifest []byte) bool {
			_, err := keyless.Verify(bundle, manifest, k.Root, k.Identity)
			return err == nil
		}
	} else if trust, err := p.trustOf(c, string(filepath.Separator)); err == nil {
		o.Prefer = func(bundle, manifest []byte) bool {
			b, err := sign.ParseBundle(bundle)
			if err != nil {
				return false
			}
			_, err = b.Verify(trust.Keys, manifest)
			return err == nil
		}
	}
	return o
}
