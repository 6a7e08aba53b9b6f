package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint/cache"
	"halos.dev/halo/lint/report"
	"halos.dev/halo/lint/watch"
)

func (p *program) lintCommand() *cli.Command {
	return &cli.Command{
		Name: "lint", Usage: "check a policy repo, advisory rules included", ArgsUsage: "[DIR]",
		Description: "Everything that validate does, and advice. Findings go to standard error and a summary to standard output; with --output json, sarif,\n" +
			"github or junit the findings are the output. Exit status 1 when there are errors (or warnings, with --fail-on warning).",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "the least `SEVERITY` that fails: error or warning"},
			&cli.BoolFlag{Name: "watch", Usage: "check again at every change, until interrupted; the exit status is that of the last check"},
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
	if c.Bool("watch") {
		return p.watch(c, r.dir, f, strict)
	}
	rep, answered, err := p.findings(c, r)
	if err != nil {
		return err
	}
	return p.judge(c, rep, answered, f, strict)
}

// judge prints a report and answers with the status that it means.
func (p *program) judge(c *cli.Context, rep *report.Report, answered bool, f string, strict bool) error {
	rep.Strict = strict
	if err := p.print(c, rep, f); err != nil {
		return err
	}
	wrong, warnings := rep.Counts()
	switch {
	case !answered:
		return none
	case wrong > 0 || strict && warnings > 0:
		return no
	}
	return nil
}

// watch checks a repo again and again; a change of files that no check looked at is none.
func (p *program) watch(c *cli.Context, dir, f string, strict bool) error {
	if f != "text" {
		return fmt.Errorf("--watch prints text, not --output %s", f)
	}
	var last error
	var earlier *cache.Recorder
	err := watch.Run(c.Context, dir, func() {
		r, err := p.open(c, dir)
		if err == nil {
			rec := cache.NewRecorder(r.fs)
			if earlier != nil && rec.After(c.Context, earlier) {
				return
			}
			var rep *report.Report
			var answered bool
			if rep, answered, err = p.record(c, r, rec); err == nil {
				earlier = rec
				err = p.judge(c, rep, answered, f, strict)
			}
		}
		if c.Context.Err() != nil {
			return
		}
		if _, said := errors.AsType[status](err); err != nil && !said {
			earlier = nil
			fmt.Fprintf(p.err, "halo: %s\n", err)
			err = none
		}
		last = err
		if !c.Bool("quiet") {
			fmt.Fprintf(p.err, "watching %s\n", dir)
		}
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	return last
}

// record compiles a repo through a recorder.
func (p *program) record(c *cli.Context, r *repo, rec *cache.Recorder) (rep *report.Report, answered bool, err error) {
	now, _, err := p.instant(c)
	if err != nil {
		return nil, false, err
	}
	_, rep, diags, err := p.compileAsOf(c, &repo{r.dir, rec}, compiler.Input{Memory: rec}, cache.Instant(now))
	if err != nil {
		return nil, false, err
	}
	rep.FS = r.fs
	return rep, !diags.NoAnswer(), nil
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
	rec := cache.NewRecorder(r.fs)
	if rep, _ := store.Find(c.Context, q, rec, 0); rep != nil {
		rep.FS, rep.Version, rep.Prefix = r.fs, version, prefix(r.dir)
		return rep, true, nil
	}
	rep, answered, err = p.record(c, r, rec)
	if err != nil || !answered {
		return rep, false, err
	}
	if err := store.Save(q, rec, rep, ""); err != nil && p.getenv("HALO_CACHE") != "" {
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
