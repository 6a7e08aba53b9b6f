package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/lint/report"
)

func (p *program) releasePackCommand() *cli.Command {
	return &cli.Command{
		Name: "pack", Usage: "write a release as one tar archive", ArgsUsage: "RELEASE",
		Description: "Writes the release with its signatures into a deterministic tar archive: the same release gives the same bytes anywhere. halo release verify and\n" +
			"inspect read the archive in place, and tar xf unpacks it. The release must be whole; signatures are carried along, not checked.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the archive `FILE` to write (default: RELEASE.tar); an existing one must be an archive of a release"},
		},
		Action: p.releasePack,
	}
}

func (p *program) releasePack(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release"); err != nil {
		return err
	}
	path := c.Args().First()
	out := c.String("out")
	if out == "" {
		out = filepath.Clean(path) + ".tar"
		if base := filepath.Base(path); base == "." || base == ".." || base == string(filepath.Separator) {
			return fmt.Errorf("pack needs --out FILE, since %s is no name", path)
		}
	}
	fsys, err := artifacts.Open(path)
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

// verifyRelease verifies the release at path, a directory or an archive, by the flags of the command.
func (p *program) verifyRelease(c *cli.Context, path string) (*artifacts.Verified, error) {
	fsys, err := artifacts.Open(path)
	if err != nil {
		return nil, rejected(err)
	}
	defer fsys.Close()
	return p.openRelease(c, fsys, string(filepath.Separator))
}
