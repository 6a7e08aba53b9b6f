package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint/cache"
	"halos.dev/halo/lint/report"
)

func (p *program) lintCommand() *cli.Command {
	return &cli.Command{
		Name: "lint", Usage: "check a policy repo, advisory rules included", ArgsUsage: "[DIR]",
		Description: "Everything that validate does, and advice. Findings go to standard error and a summary to standard output; with --output json, sarif,\n" +
			"github or junit the findings are the output. Exit status 1 when there are errors (or warnings, with --fail-on warning).",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "the least `SEVERITY` that fails: error or warning"},
			noCacheFlag(),
		},
		Action: func(c *cli.Context) error {
			failOn := c.String("fail-on")
			if failOn != "error" && failOn != "warning" {
				return fmt.Errorf("--fail-on %s is not one of error, warning", failOn)
			}
			p.advise = true
			return p.check(c, failOn == "warning")
		},
	}
}

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name: "validate", Usage: "check everything that would stop a build", ArgsUsage: "[DIR]",
		Description: "Reads the repo strictly, resolves every ring and unit, renders every target and reads the rendered files back. Nothing is written.",
		Flags:       []cli.Flag{noCacheFlag()},
		Action:      func(c *cli.Context) error { return p.check(c, false) },
	}
}

func (p *program) check(c *cli.Context, strict bool) error {
	f, err := form(c, "text", "json", "sarif", "github", "junit")
	if err != nil {
		return err
	}
	dir, err := oneArg(c, "directory")
	if err != nil {
		return err
	}
	r, err := p.open(c, dir)
	if err != nil {
		return err
	}
	rep, answered, err := p.findings(c, r)
	if err != nil {
		return err
	}
	rep.Strict = strict
	if err := p.print(c, rep, f); err != nil {
		return err
	}
	errors, warnings := rep.Counts()
	switch {
	case !answered:
		return none
	case errors > 0 || strict && warnings > 0:
		return no
	}
	return nil
}

func noCacheFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-cache", Usage: "do all the work, whatever an earlier run found; HALO_CACHE=off does it for every run"}
}

// findings compiles a repo for its findings alone, or finds those of an earlier run that saw the same; answered is false when they are no answer.
func (p *program) findings(c *cli.Context, r *repo) (rep *report.Report, answered bool, err error) {
	now, _, err := p.instant(c)
	if err != nil {
		return nil, false, err
	}
	now = cache.Instant(now)
	store := p.cache(c)
	if store == nil {
		_, rep, diags, err := p.compileAsOf(c, r, compiler.Input{}, now)
		return rep, err == nil && !diags.NoAnswer(), err
	}
	abs, err := filepath.Abs(r.dir)
	if err != nil {
		return nil, false, err
	}
	q := cache.Question{Dir: abs, Advise: p.advise, Day: now}
	if rep := store.Find(c.Context, q, r.fs, 0); rep != nil {
		rep.FS, rep.Version, rep.Prefix = r.fs, version, prefix(r.dir)
		return rep, true, nil
	}
	rec := cache.NewRecorder(r.fs)
	_, rep, diags, err := p.compileAsOf(c, &repo{r.dir, rec}, compiler.Input{}, now)
	if err != nil {
		return nil, false, err
	}
	rep.FS = r.fs
	if diags.NoAnswer() {
		return rep, false, nil
	}
	if err := store.Save(q, rec, rep); err != nil && p.getenv("HALO_CACHE") != "" {
		p.uncached(c, store, err)
	}
	return rep, true, nil
}

// cache returns where findings are remembered, or nil.
func (p *program) cache(c *cli.Context) *cache.Store {
	dir := cache.Locate(p.getenv("HALO_CACHE"))
	running, err := cache.Running()
	if c.Bool("no-cache") || dir == "" || err != nil {
		return nil
	}
	s := &cache.Store{Dir: dir, Program: running, Codes: codes()}
	if err := s.Check(); err != nil {
		p.uncached(c, s, err)
		return nil
	}
	return s
}

// uncached says why nothing is remembered.
func (p *program) uncached(c *cli.Context, s *cache.Store, err error) {
	if !c.Bool("quiet") {
		fmt.Fprintf(p.err, "note: the cache %s is not used: %s\n", s.Dir, cause(err))
	}
}

// print prints a report in one of its forms.
func (p *program) print(c *cli.Context, rep *report.Report, form string) error {
	switch form {
	case "json":
		return rep.JSON(p.out)
	case "sarif":
		return rep.SARIF(p.out)
	case "github":
		return rep.GitHub(p.out)
	case "junit":
		return rep.JUnit(p.out)
	}
	summary := rep.Summary()
	shown := *rep
	if c.Bool("quiet") {
		shown.Diagnostics = nil
		for _, d := range rep.Diagnostics {
			if d.Severity == diag.Error {
				shown.Diagnostics = append(shown.Diagnostics, d)
			}
		}
	}
	if err := shown.Text(p.err, p.style(c, p.err)); err != nil {
		return err
	}
	if c.Bool("quiet") {
		return nil
	}
	_, err := fmt.Fprintln(p.out, summary)
	return err
}
