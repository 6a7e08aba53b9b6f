package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/diff"
	page "halos.dev/halo/artifacts/report"
	"halos.dev/halo/lint/report"
)

func (p *program) reportCommand() *cli.Command {
	return &cli.Command{
		Name: "report", Usage: "write a release as one page for people and auditors", ArgsUsage: "RELEASE",
		Description: "Writes one HTML file that loads nothing: what is not held, the coverage matrix, rings and units with their files, the hosts of every target with a search,\n" +
			"exceptions, sandboxes, what changed since --previous, and how each grade is known. Every file of the release is compared with its manifest.\n\n" +
			"With --key, --trust or --certificate-identity the signature is verified and the page says by whom and when; a release that does not verify gives no page and\n" +
			"exit status 1. Without them the page says that the signature was not checked. The same release and flags give the same bytes, but for the time of that\n" +
			"check, which --as-of sets.",
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the HTML `FILE` to write; an existing one must be a page of this command"},
			&cli.StringFlag{Name: "previous", Usage: "an earlier `RELEASE` to compare with"},
		}, trustFlags(), keylessFlags(), transportFlags()),
		Action: p.report,
	}
}

func (p *program) report(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "one release: a directory, an archive or an oci:// address"); err != nil {
		return err
	}
	out := c.String("out")
	if out == "" {
		return errors.New("report needs --out FILE")
	}
	for _, release := range []string{c.Args().First(), c.String("previous")} {
		if release != "" && within(release, out) {
			return fmt.Errorf("--out %s is inside the release %s, which would not verify any more", out, release)
		}
	}
	fsys, err := p.releaseAt(c, c.Args().First())
	if err != nil {
		return rejected(err)
	}
	defer fsys.Close()
	in := page.Input{Halo: version, Title: codeTitle}
	if in.Manifest, in.Digest, in.Verified, err = p.judged(c, fsys, ""); err != nil {
		return err
	}
	if _, ok := in.Manifest.File("coverage.json"); ok {
		if in.Coverage, err = in.Manifest.ReadFile(fsys, "coverage.json"); err != nil {
			return rejected(err)
		}
	}
	inspection, err := artifacts.Inspect(fsys)
	if err != nil {
		return rejected(err)
	}
	in.Signatures = inspection.Signatures
	if old := c.String("previous"); old != "" {
		was, err := p.releaseAt(c, old)
		if err != nil {
			return fmt.Errorf("--previous: %w", rejected(err))
		}
		defer was.Close()
		if in.Previous, err = p.previous(c, in, fsys, was); err != nil {
			return fmt.Errorf("--previous: %w", err)
		}
	}
	data, err := page.Page(in)
	if err != nil {
		return err
	}
	if err := artifacts.WriteFile(out, "halo report", page.CodeNotReport, page.Mark, data); err != nil {
		return diskError(err)
	}
	verified := in.Verified != nil
	if f == "json" {
		return report.WriteJSON(p.out, struct {
			Report   string `json:"report"`
			Release  string `json:"release"`
			Verified bool   `json:"verified"`
			Size     int    `json:"size"`
		}{out, in.Digest, verified, len(data)})
	}
	signature := "signature not checked"
	if verified {
		signature = "signature verified"
	}
	_, err = fmt.Fprintf(p.out, "%s\n%s: %d bytes, %s\n", in.Digest, out, len(data), signature)
	return err
}

// within reports whether a file that may not exist yet lies below a directory.
func within(dir, file string) bool {
	root, err := os.Stat(dir)
	if err != nil || !root.IsDir() {
		return false
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	for at := filepath.Dir(abs); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			at = real
		}
		if info, err := os.Stat(at); err == nil && os.SameFile(info, root) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// judged reads a release of which every file was compared with its manifest. When the flags say whom to trust, it must be signed by them, unless its digest
// is named, which is one that a verified manifest names.
func (p *program) judged(c *cli.Context, fsys artifacts.FS, named string) (*artifacts.Manifest, string, *page.Verified, error) {
	asked := slices.ContainsFunc([]string{"key", "trust", "certificate-identity", "certificate-oidc-issuer", "trusted-root", "bundle"}, c.IsSet)
	_, data, err := artifacts.ManifestOf(fsys)
	if err != nil {
		return nil, "", nil, rejected(err)
	}
	if !asked || artifacts.Digest(data) == named {
		m, digest, err := artifacts.Whole(c.Context, fsys)
		return m, digest, nil, rejected(err)
	}
	v, err := p.openRelease(c, fsys, string(filepath.Separator))
	if err != nil {
		return nil, "", nil, err
	}
	at, _, err := p.instant(c)
	if err != nil {
		return nil, "", nil, err
	}
	by := &page.Verified{Keys: v.Signers, At: at}
	for _, s := range v.Identities {
		by.Identities = append(by.Identities, page.Identity{Name: s.Name, Issuer: s.Issuer})
	}
	return v.Manifest, v.Digest, by, nil
}

// previous reads the release that another one is compared with.
func (p *program) previous(c *cli.Context, in page.Input, fsys, was artifacts.FS) (*page.Previous, error) {
	named := ""
	if in.Verified != nil {
		named = in.Manifest.Previous
	}
	m, digest, verified, err := p.judged(c, was, named)
	if err != nil {
		return nil, err
	}
	old, err := diff.ReleaseIn("the release before", was)
	if err != nil {
		return nil, err
	}
	now, err := diff.ReleaseIn("this release", fsys)
	if err != nil {
		return nil, err
	}
	old.Judged, now.Judged = true, true
	changes, err := diff.Compare(old, now)
	if err != nil {
		return nil, err
	}
	return &page.Previous{Manifest: m, Digest: digest, Verified: verified, Named: digest == in.Manifest.Previous, Diff: changes}, nil
}

// codeTitle names a code in a few words; "" when this halo does not know it.
func codeTitle(id string) string {
	for _, c := range codes() {
		if c.ID == id {
			return c.Title
		}
	}
	return ""
}
