package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/lint/report"
)

const packArgument = "PACK is the name of a built-in pack (open, balanced, strict), the name of a pack of the policy repo (packs/NAME/pack.yaml), or the path of a\n" +
	"directory or file: write ./NAME for a directory that looks like a name. A pack that is not found or does not load is never replaced by another.\n"

func (p *program) packCommand() *cli.Command {
	return &cli.Command{
		Name: "pack", Usage: "list, show, check and pin DefenseClaw sandbox packs",
		Subcommands: []*cli.Command{{
			Name: "list", Usage: "list the built-in packs and those of the policy repo",
			Description: "Prints name, profile, digest and place of each. Without a policy repo, only the built-in packs. Exit status 1 when a pack of the repo does not load.",
			Action:      p.packList,
		}, {
			Name: "show", Usage: "print a pack with every default written out", ArgsUsage: "PACK",
			Description: packArgument + "With --raw, prints the exact bytes of the file, which are what the digest is of.",
			Flags:       []cli.Flag{&cli.BoolFlag{Name: "raw", Usage: "print the exact bytes of the file"}},
			Action:      p.packShow,
		}, {
			Name: "validate", Usage: "check packs as DefenseClaw loads them", ArgsUsage: "[PACK...]",
			Description: packArgument + "Without a PACK, checks every pack of the policy repo. Exit status 0 when all load, 1 when one is refused, 2 when one cannot be read or is too large.",
			Flags: []cli.Flag{
				&cli.BoolFlag{Name: "owner-check", Usage: "also refuse packs that somebody else could change, as DefenseClaw does on a device"},
				&cli.StringFlag{Name: "digest", Usage: "also refuse a pack whose digest is not `DIGEST` (sha256: and 64 hex digits)"},
			},
			Action: p.packValidate,
		}, {
			Name: "digest", Usage: "print the digest that pins a pack", ArgsUsage: "PACK...",
			Description: packArgument + "The digest is sha256: and what sha256sum prints for the file. A pack that does not load gets none.",
			Action:      p.packDigest,
		}},
	}
}

// packFinder finds packs by what was written on the command line.
type packFinder struct {
	pack.Finder
	// repo is the policy repo as it was written, "" when there is none; missing is why.
	repo    string
	missing error
}

// packs opens the packs of the policy repo, when there is one. A repo that was named must exist.
func (p *program) packs(c *cli.Context) (*packFinder, error) {
	f := &packFinder{}
	if r, err := p.open(c, ""); err == nil {
		f.repo = r.dir
	} else if f.missing = err; c.IsSet("policy-dir") {
		return nil, err
	}
	root, err := filepath.Abs(filepath.Join(f.repo, "packs"))
	if err != nil {
		return nil, err
	}
	f.FS = os.DirFS(filepath.VolumeName(root) + string(filepath.Separator))
	f.Home = filepath.ToSlash(p.getenv("HOME"))
	if f.repo != "" {
		f.Dir = filepath.ToSlash(root)
	}
	return f, nil
}

// read reads the pack that an argument names. Errors and the pack speak of it as the argument does.
func (f *packFinder) read(arg string) (*pack.File, error) {
	if arg == "" {
		return nil, errors.New("the name of a pack is empty")
	}
	if pack.ValidName(arg) {
		if f.repo == "" && !pack.IsBuiltin(arg) {
			return nil, fmt.Errorf("%s is not a built-in pack and there is no policy repo to look in: %w", arg, f.missing)
		}
		file, err := f.Read(arg)
		return f.shown(file, err, f.Dir, filepath.ToSlash(filepath.Join(f.repo, "packs")))
	}
	if strings.HasPrefix(arg, "~/") {
		return f.Read(arg)
	}
	abs, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	finder := *f
	if volume := filepath.VolumeName(abs); volume != "" {
		finder.FS = os.DirFS(volume + string(filepath.Separator))
	}
	abs = filepath.ToSlash(abs)
	file, err := finder.Read(abs)
	return f.shown(file, err, abs, strings.TrimSuffix(filepath.ToSlash(arg), "/"))
}

// shown puts the path as it was written in the place of the absolute one.
func (f *packFinder) shown(file *pack.File, err error, abs, written string) (*pack.File, error) {
	shorten := func(s string) string {
		if rest, ok := strings.CutPrefix(s, abs); ok && abs != "" {
			return written + rest
		}
		return s
	}
	if e, ok := errors.AsType[*pack.Error](err); ok {
		e.Path = shorten(e.Path)
		if abs != "" {
			e.Reason = strings.Replace(e.Reason, " "+abs, " "+written, 1)
		}
	}
	if file != nil {
		file.Path = shorten(file.Path)
	}
	return file, err
}

type packJSON struct {
	Name     string         `json:"name,omitempty"`
	Profile  string         `json:"profile,omitempty"`
	Digest   string         `json:"digest,omitempty"`
	Path     string         `json:"path"`
	BuiltIn  bool           `json:"builtin"`
	Valid    bool           `json:"valid"`
	Error    *packErrorJSON `json:"error,omitempty"`
	Warnings []warningJSON  `json:"warnings,omitempty"`
	Pack     map[string]any `json:"pack,omitempty"`
}

type packErrorJSON struct {
	Text   string `json:"text"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
	Class  string `json:"class"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

type warningJSON struct {
	Code    string `json:"code"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// packResult describes a pack, or why there is none.
func packResult(path string, file *pack.File, err error) packJSON {
	if err != nil {
		out := packJSON{Path: path, Error: &packErrorJSON{Text: err.Error(), Reason: err.Error()}}
		if e, ok := errors.AsType[*pack.Error](err); ok {
			out.Path = e.Path
			*out.Error = packErrorJSON{e.Error(), e.Key, e.Reason, e.Class, e.Line, e.Column, e.Hint}
		}
		return out
	}
	out := packJSON{Name: file.Name, Profile: file.Profile(), Digest: file.Digest, Path: file.Path, BuiltIn: file.BuiltIn, Valid: true}
	for _, d := range file.Warnings {
		out.Warnings = append(out.Warnings, warningJSON{d.Code.ID, d.Pos.Line(), d.Pos.Col(), d.Path, d.Message, d.Hint})
	}
	return out
}

// printPackError prints the loader's text as it is on a device, and what to write instead.
func (p *program) printPackError(err error) {
	fmt.Fprintln(p.err, report.Printable(err.Error()))
	if e, ok := errors.AsType[*pack.Error](err); ok && e.Hint != "" {
		fmt.Fprintf(p.err, "  hint: %s\n", report.Printable(e.Hint))
	}
}

func (p *program) printPackWarnings(c *cli.Context, file *pack.File) {
	if c.Bool("quiet") {
		return
	}
	for _, d := range file.Warnings {
		fmt.Fprintf(p.err, "%s:%d:%d: %s[%s] %s: %s\n", report.Printable(file.Path), d.Pos.Line(), d.Pos.Col(), d.Severity, d.Code.ID, d.Path, report.Printable(d.Message))
		if d.Hint != "" {
			fmt.Fprintf(p.err, "  hint: %s\n", report.Printable(d.Hint))
		}
	}
}

func (p *program) packList(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := noArgs(c); err != nil {
		return err
	}
	finder, err := p.packs(c)
	if err != nil {
		return err
	}
	entries, err := finder.List()
	if err != nil {
		return err
	}
	rows := make([]packJSON, 0, len(entries))
	bad := false
	for _, e := range entries {
		file, err := finder.shown(e.File, e.Err, finder.Dir, filepath.ToSlash(filepath.Join(finder.repo, "packs")))
		row := packResult("", file, err)
		row.Name = e.Name
		bad = bad || err != nil
		rows = append(rows, row)
		if err != nil && f == "text" {
			p.printPackError(err)
		}
	}
	if f == "json" {
		err = report.WriteJSON(p.out, map[string]any{"packs": rows})
	} else {
		err = p.printPacks(rows)
	}
	if err == nil && bad {
		return no
	}
	return err
}

// printPacks prints a table of packs; a pack that does not load has its error on standard error.
func (p *program) printPacks(rows []packJSON) error {
	names, profiles := 0, 0
	for _, r := range rows {
		names, profiles = max(names, len(report.Printable(r.Name))), max(profiles, len(r.Profile))
	}
	for _, r := range rows {
		digest := r.Digest
		if !r.Valid {
			digest = "does not load"
		}
		if _, err := fmt.Fprintf(p.out, "%-*s  %-*s  %s  %s\n", names, report.Printable(r.Name), profiles, r.Profile, digest, report.Printable(r.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) packShow(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if err := exactly(c, 1, "a pack"); err != nil {
		return err
	}
	finder, err := p.packs(c)
	if err != nil {
		return err
	}
	file, err := finder.read(c.Args().First())
	if err != nil {
		p.printPackError(err)
		return none
	}
	p.printPackWarnings(c, file)
	text := pack.Print(file.Pack)
	switch {
	case c.Bool("raw") && f == "json":
		return errors.New("--raw prints the file as it is, and not as json")
	case c.Bool("raw"):
		_, err = p.out.Write(file.Data)
	case f == "json":
		out := packResult("", file, nil)
		if err := yaml.Unmarshal(text, &out.Pack); err != nil {
			return err
		}
		err = report.WriteJSON(p.out, out)
	default:
		_, err = fmt.Fprintf(p.out, "# pack    %s\n# profile %s\n# digest  %s\n# path    %s\n%s", file.Name, file.Profile(), file.Digest, report.Printable(file.Path), text)
	}
	return err
}

func (p *program) packValidate(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	want := c.String("digest")
	if c.IsSet("digest") && !pack.ValidDigest(want) {
		return fmt.Errorf(`--digest %q is not "sha256:" and 64 lower-case hex digits`, want)
	}
	finder, err := p.packs(c)
	if err != nil {
		return err
	}
	if c.Bool("owner-check") {
		user := os.Geteuid()
		if user < 0 {
			return fmt.Errorf("--owner-check: files on %s have no owner that DefenseClaw checks", runtime.GOOS)
		}
		finder.Owner = &pack.OwnerCheck{User: user, UID: pack.FileUID}
	}
	args := c.Args().Slice()
	if len(args) == 0 {
		if args, err = finder.names(); err != nil {
			return err
		}
	}
	if c.IsSet("digest") && len(args) != 1 {
		return fmt.Errorf("--digest is about one pack, not %d", len(args))
	}
	worst := status(0)
	rows := make([]packJSON, 0, len(args))
	for _, arg := range args {
		file, err := finder.read(arg)
		if err == nil && want != "" && file.Digest != want {
			err = &pack.Error{Path: file.Path, Class: "digest_mismatch", Reason: fmt.Sprintf("has digest %s, not the pinned %s", file.Digest, want)}
		}
		row := packResult(arg, file, err)
		rows = append(rows, row)
		worst = max(worst, packStatus(err))
		switch {
		case f == "json":
		case err != nil:
			p.printPackError(err)
		default:
			p.printPackWarnings(c, file)
			fmt.Fprintf(p.out, "ok  %s  %s  %s  %s\n", file.Name, file.Profile(), file.Digest, report.Printable(file.Path))
		}
	}
	if f == "json" {
		if err := writePacks(p, rows); err != nil {
			return err
		}
	}
	if worst > 0 {
		return worst
	}
	return nil
}

// packStatus tells packs that are refused from packs that cannot be read at all.
func packStatus(err error) status {
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*pack.Error](err)
	if !ok || slices.Contains([]string{"not_found", "unreadable", "relative_path", "too_large"}, e.Class) {
		return none
	}
	return no
}

// names are the packs of the repo, as validate is asked about them.
func (f *packFinder) names() ([]string, error) {
	if f.repo == "" {
		return nil, f.missing
	}
	entries, err := f.List()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		switch {
		case e.Err == nil && e.File.BuiltIn:
		case pack.ValidName(e.Name) && !pack.IsBuiltin(e.Name):
			out = append(out, e.Name)
		default:
			out = append(out, filepath.Join(f.repo, "packs", e.Name))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("policy repo %s has no packs; name a pack or a path", f.repo)
	}
	return out, nil
}

func (p *program) packDigest(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if c.NArg() == 0 {
		return errors.New("digest needs a pack")
	}
	finder, err := p.packs(c)
	if err != nil {
		return err
	}
	var rows []packJSON
	for _, arg := range c.Args().Slice() {
		file, err := finder.read(arg)
		if err != nil {
			p.printPackError(err)
			return none
		}
		rows = append(rows, packResult("", file, nil))
	}
	if f == "json" {
		return writePacks(p, rows)
	}
	for _, r := range rows {
		if len(rows) == 1 {
			_, err = fmt.Fprintln(p.out, r.Digest)
		} else {
			_, err = fmt.Fprintf(p.out, "%s  %s\n", r.Digest, report.Printable(r.Path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writePacks writes one pack as an object and several as a list.
func writePacks(p *program, rows []packJSON) error {
	if len(rows) == 1 {
		return report.WriteJSON(p.out, rows[0])
	}
	return report.WriteJSON(p.out, map[string]any{"packs": rows})
}
