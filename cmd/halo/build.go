package main

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/assemble"
	"halos.dev/halo/artifacts/sign"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint/cache"
	"halos.dev/halo/lint/report"
)

func (p *program) buildCommand() *cli.Command {
	return &cli.Command{
		Name: "build", Usage: "compile a policy repo into a release", ArgsUsage: "[DIR]",
		Description: "Compiles every target, reads the rendered files back, and writes the release to --out whole or not at all. An existing --out must be a halo\n" +
			"release. Without --key the release is not signed; sign it later with halo release sign. An unsigned release that an earlier run wrote of the same policy is\n" +
			"compared with its manifest and left as it is; with --key all the work is done, always.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "the release `DIR` to write"},
			&cli.StringFlag{Name: "ring", Usage: "build the targets of one `RING` only"},
			&cli.StringFlag{Name: "version", Value: "0.0.0-dev", Usage: "the `VERSION` of the release"},
			&cli.Int64Flag{Name: "sequence", Usage: "the `NUMBER` of the release, which must grow with every release"},
			&cli.StringFlag{Name: "previous", Usage: "the release before: its `RELEASE` directory or digest"},
			&cli.StringFlag{Name: "key", Usage: "sign with the private `KEY`: a file, or a URI like awskms://REF for the plugin sigstore-kms-awskms"},
			noCacheFlag(),
		},
		Action: p.build,
	}
}

func (p *program) build(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	dir, err := oneArg(c, "directory")
	if err != nil {
		return err
	}
	out := c.String("out")
	if out == "" {
		return errors.New("build needs --out DIR")
	}
	if c.Int64("sequence") < 0 || c.Int64("sequence") >= 1<<53 {
		return errors.New("--sequence is a whole number from 0 to 9007199254740991")
	}
	if v := c.String("version"); v == "" || len(v) > 128 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-_") != "" {
		return fmt.Errorf("--version %q: letters, digits and . + - _ only", v)
	}
	previous, err := previousDigest(c.String("previous"))
	if err != nil {
		return err
	}
	// The key comes before the work: a wrong password must not cost a build.
	signer, err := p.signer(c)
	if err != nil {
		return err
	}
	r, err := p.open(c, dir)
	if err != nil {
		return err
	}
	asOf, given, err := p.instant(c)
	if err != nil {
		return err
	}
	day := cache.Instant(asOf)
	if !given {
		asOf = time.Time{}
	}
	var store *cache.Store
	if signer == nil {
		store = p.cache(c)
	}
	q, err := buildQuestion(c, r, out, day)
	if err != nil {
		return err
	}
	rec := cache.NewRecorder(r.fs)
	recorded := r
	if store != nil {
		if m := p.made(c, r, store, q, rec, asOf, previous); m != nil {
			return p.built(c, f, out, m)
		}
		recorded = &repo{r.dir, rec}
	}
	compiled, rep, diags, err := p.compileAsOf(c, recorded, compiler.Input{Keep: true, Ring: c.String("ring")}, day)
	if err != nil {
		return err
	}
	rep.FS = r.fs
	if ring := c.String("ring"); ring != "" && diags.Errors() == 0 && compiled.Repo.Ring(ring) == nil {
		_, err := compiled.Resolve(compiler.Who{Ring: ring})
		return err
	}
	if diags.Errors() > 0 {
		if err := p.print(c, rep, f); err != nil {
			return err
		}
		if diags.NoAnswer() {
			return none
		}
		return no
	}
	id, extra, err := p.identity(c, r, compiled.Repo.Files, asOf, previous)
	if err != nil {
		return err
	}
	found := *rep
	rep.Diagnostics = append(slices.Clip(rep.Diagnostics), extra.Sorted()...)
	b, err := assemble.Plan(c.Context, compiled, id)
	if err != nil {
		return err
	}
	for _, d := range extra.Sorted() {
		b.Manifest.Warnings = append(b.Manifest.Warnings, artifacts.Warning{Code: d.Code.ID, Message: d.Message})
	}
	// About the signature and not the release, which is the same with and without one.
	if signer != nil && b.Manifest.Expires.IsZero() {
		rep.Diagnostics = append(rep.Diagnostics, diag.Diagnostic{Code: artifacts.CodeNoExpiry, Severity: diag.Warning, Pos: compiled.Repo.Root.Org.Pos, Document: "Halos", Path: "lifetime", Message: "the release never expires: halos.yaml has no lifetime"})
	}
	rel, err := b.Seal()
	if err != nil {
		return err
	}
	if signer != nil {
		if _, err := rel.Sign(signer); err != nil {
			return err
		}
	}
	if err := rel.Write(c.Context, out); err != nil {
		return diskError(err)
	}
	if store != nil {
		if err := store.Save(q, rec, &found, note(rel.Digest(), id)); err != nil && p.getenv("HALO_CACHE") != "" {
			p.uncached(c, store, err)
		}
	}
	return p.built(c, f, out, &made{rel.Digest(), rel.Manifest, rep, signer != nil})
}

// made is a release that lies in --out, and the findings of its policy.
type made struct {
	digest   string
	manifest *artifacts.Manifest
	report   *report.Report
	signed   bool
}

// buildQuestion is what a build is asked that its findings or the place of its release depend on.
func buildQuestion(c *cli.Context, r *repo, out string, day time.Time) (cache.Question, error) {
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return cache.Question{}, err
	}
	if out, err = filepath.Abs(out); err != nil {
		return cache.Question{}, err
	}
	return cache.Question{Dir: dir, Day: day, Build: fmt.Sprintf("%q %q", c.String("ring"), out)}, nil
}

// note is what the cache remembers of a release: its digest, and what it says of itself.
func note(digest string, id assemble.Identity) string { return fmt.Sprintf("%s\n%+v", digest, id) }

// made returns the release in --out when an earlier run wrote it of what would be seen again, it is whole, and nobody has signed it since.
func (p *program) made(c *cli.Context, r *repo, store *cache.Store, q cache.Question, rec *cache.Recorder, asOf time.Time, previous string) *made {
	rep, said := store.Find(c.Context, q, rec, 0)
	if rep == nil {
		return nil
	}
	rep.FS, rep.Version, rep.Prefix = r.fs, version, prefix(r.dir)
	id, extra, err := p.identity(c, r, rep.Files, asOf, previous)
	out := c.String("out")
	if info, lerr := os.Lstat(out); err != nil || lerr != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(out)
	if err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return strings.HasSuffix(e.Name(), ".sig") || strings.HasSuffix(e.Name(), ".sigstore.json")
	}) {
		return nil
	}
	fsys, err := artifacts.Open(out)
	if err != nil {
		return nil
	}
	defer fsys.Close()
	m, digest, err := artifacts.Whole(c.Context, fsys)
	if err != nil || said != note(digest, id) {
		return nil
	}
	rep.Diagnostics = append(rep.Diagnostics, extra.Sorted()...)
	return &made{digest: digest, manifest: m, report: rep}
}

// built says what was built.
func (p *program) built(c *cli.Context, f, out string, m *made) error {
	targets := map[string]bool{}
	for _, t := range m.manifest.Targets {
		targets[t.ID] = true
	}
	if f == "json" {
		doc := m.report.Document()
		return report.WriteJSON(p.out, struct {
			Release  string           `json:"release"`
			Digest   string           `json:"digest"`
			Targets  int              `json:"targets"`
			Files    int              `json:"files"`
			Signed   bool             `json:"signed"`
			Findings []report.Finding `json:"diagnostics"`
			Summary  report.Summary   `json:"summary"`
		}{out, m.digest, len(targets), len(m.manifest.Files), m.signed, doc.Diagnostics, doc.Summary})
	}
	if !c.Bool("quiet") {
		if err := m.report.Text(p.err, p.style(c, p.err)); err != nil {
			return err
		}
	}
	signed := "not signed"
	if m.signed {
		signed = "signed"
	}
	_, err := fmt.Fprintf(p.out, "%s\n%s: %d targets, %d files, %s\n", m.digest, out, len(targets), len(m.manifest.Files), signed)
	return err
}

// identity finds out what the release says of itself; extra has the warnings about it.
func (p *program) identity(c *cli.Context, r *repo, files source.Files, asOf time.Time, previous string) (assemble.Identity, *diag.List, error) {
	var extra diag.List
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	origin, err := artifacts.GitOrigin(c.Context, r.dir, names)
	if err != nil {
		return assemble.Identity{}, nil, fmt.Errorf("git: %w", err)
	}
	issued, known, err := artifacts.SourceTime(asOf, p.getenv("SOURCE_DATE_EPOCH"), origin)
	if err != nil {
		return assemble.Identity{}, nil, err
	}
	if !known {
		extra.Add(diag.Diagnostic{Code: artifacts.CodeNoTime, Severity: diag.Warning, File: ".", Message: "no source time: the policy is not the state of a commit, so the release is dated 1970-01-01T00:00:00Z"})
	}
	return assemble.Identity{Version: c.String("version"), Sequence: c.Int64("sequence"), Previous: previous, Issued: issued, Origin: origin,
		Tool: artifacts.Tool{Name: "halo", Version: version}}, &extra, nil
}

func previousDigest(s string) (string, error) {
	if s == "" || artifacts.IsDigest(s) {
		return s, nil
	}
	_, data, err := artifacts.ReadManifest(s)
	if err != nil {
		return "", fmt.Errorf("--previous: %w", err)
	}
	return artifacts.Digest(data), nil
}

// signer opens the private key of --key, a file or the URI of a key management service, or returns nil.
func (p *program) signer(c *cli.Context) (crypto.Signer, error) {
	file := c.String("key")
	switch {
	case file == "":
		return nil, nil
	case sign.IsKeyURI(file):
		k, err := sign.OpenKMS(c.Context, file, p.err)
		if err != nil {
			return nil, err
		}
		if !c.Bool("quiet") {
			fmt.Fprintf(p.err, "note: %s signs through %s\n", file, k.Plugin)
		}
		return k, nil
	}
	return sign.LoadPrivateKey(file, p.passwords().Password)
}

func (p *program) passwords() sign.PasswordSource {
	s := sign.PasswordSource{LookupEnv: p.lookupEnv, Prompt: p.err}
	if f, ok := p.in.(*os.File); ok {
		s.Terminal = f
	}
	return s
}

// diskError says what a failed write means.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("%w; nothing was replaced", pe)
		}
	}
	return err
}
