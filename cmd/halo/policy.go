package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
	"halos.dev/halo/lint"
	"halos.dev/halo/lint/report"
)

// repo is an opened policy directory.
type repo struct {
	dir string
	fs  fs.FS
}

// open opens the policy repo that the arguments name: a directory given as argument, --policy-dir, or the nearest parent with a halos.yaml.
func (p *program) open(c *cli.Context, dir string) (*repo, error) {
	flag := c.String("policy-dir")
	switch {
	case dir != "" && flag != "" && filepath.Clean(dir) != filepath.Clean(flag):
		return nil, fmt.Errorf("both the argument %s and --policy-dir %s name a policy repo", dir, flag)
	case dir == "":
		dir = flag
	}
	if dir == "" {
		var err error
		if dir, err = nearest(); err != nil {
			return nil, err
		}
	}
	fsys, err := source.Dir(dir)
	if err != nil {
		return nil, fmt.Errorf("policy repo %s: %w", dir, cause(err))
	}
	return &repo{dir, fsys}, nil
}

// nearest finds the nearest parent of the working directory that holds a halos.yaml.
func nearest() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, policy.RootFile)); err == nil && !info.IsDir() {
			if rel, err := filepath.Rel(wd, dir); err == nil {
				return rel, nil
			}
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no %s in %s or a directory above it; name the policy repo with --policy-dir", policy.RootFile, wd)
		}
	}
}

// cause strips the path from a file system error that names it already.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// instant returns --as-of, and whether it was given.
func (p *program) instant(c *cli.Context) (time.Time, bool, error) {
	s := c.String("as-of")
	if s == "" {
		return p.now(), false, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("--as-of %q is not an RFC 3339 time such as 2026-11-30T12:00:00Z", s)
	}
	return t.UTC(), true, nil
}

// compile compiles the repo of a command.
func (p *program) compile(c *cli.Context, r *repo, in compiler.Input) (*compiler.Compiled, *report.Report, *diag.List, error) {
	now, _, err := p.instant(c)
	if err != nil {
		return nil, nil, nil, err
	}
	return p.compileAsOf(c, r, in, now)
}

// compileAsOf compiles with expiry judged at an instant; for a build without one, the clock judges and is not recorded.
func (p *program) compileAsOf(c *cli.Context, r *repo, in compiler.Input, now time.Time) (*compiler.Compiled, *report.Report, *diag.List, error) {
	if now.IsZero() {
		now = p.now()
	}
	in.FS, in.Now = r.fs, now
	var diags diag.List
	var texts lint.Texts
	if p.advise {
		in.Inspect = texts.Inspect
	}
	stop := p.progress(c, r, &in)
	compiled := compiler.Compile(c.Context, in, &diags)
	stop()
	if err := c.Context.Err(); err != nil {
		return nil, nil, nil, errors.New("interrupted")
	}
	if p.advise {
		lint.Run(compiled, r.fs, &texts, &diags)
	}
	if in.Question == nil {
		lint.CheckAcknowledgements(compiled.Repo, codes(), &diags)
	}
	rep := &report.Report{Diagnostics: lint.Acknowledge(compiled.Repo, diags.Sorted(), now, p.advise && diags.Errors() == 0), Files: compiled.Repo.Files, FS: r.fs, Version: version}
	rep.Prefix = prefix(r.dir)
	if diags.NoAnswer() && len(compiled.Repo.Files) == 0 {
		for i := range rep.Diagnostics {
			if rep.Diagnostics[i].File == "." {
				rep.Diagnostics[i].Message = "in " + r.dir + ": " + rep.Diagnostics[i].Message
			}
		}
	}
	return compiled, rep, &diags, nil
}

// progress shows what a compilation is at, for people at a terminal, until the function that it returns is called.
func (p *program) progress(c *cli.Context, r *repo, in *compiler.Input) (stop func()) {
	if in.Question != nil || c.Bool("quiet") || c.String("output") != "text" || !p.terminal(p.err) {
		return func() {}
	}
	var files atomic.Int64
	inspect := in.Inspect
	in.Inspect = func(file int, data []byte) bool {
		files.Add(1)
		return inspect != nil && inspect(file, data)
	}
	ticker := time.NewTicker(report.Ticks)
	erase := report.Progress(p.err, ticker.C, func() string { return fmt.Sprintf("checking %s: %d files read", r.dir, files.Load()) })
	return func() {
		ticker.Stop()
		erase()
	}
}

// prefix is what to put before file names of a repo so that they can be opened from here: the shorter of its path as given and from the working directory.
func prefix(dir string) string {
	short := filepath.Clean(dir)
	if wd, err := os.Getwd(); err == nil && filepath.IsAbs(short) {
		if rel, err := filepath.Rel(wd, short); err == nil && len(rel) < len(short) {
			short = rel
		}
	}
	if short == "." {
		return ""
	}
	return strings.TrimSuffix(filepath.ToSlash(short), "/") + "/"
}

// query compiles for a command that only asks: a policy with errors gives no answer.
func (p *program) query(c *cli.Context, r *repo, in compiler.Input) (*compiler.Compiled, *report.Report, error) {
	compiled, rep, diags, err := p.compile(c, r, in)
	if err != nil {
		return nil, nil, err
	}
	if diags.Errors() > 0 {
		rep.Diagnostics = slices.DeleteFunc(rep.Diagnostics, func(d diag.Diagnostic) bool { return d.Severity != diag.Error })
		if err := rep.Text(p.err, p.style(c, p.err)); err != nil {
			return nil, nil, err
		}
		return nil, nil, errors.New("the policy does not load; run halo lint")
	}
	return compiled, rep, nil
}

// style says whether to colour what goes to w.
func (p *program) style(c *cli.Context, w any) report.Style {
	switch c.String("color") {
	case "always":
		return report.Color
	case "never":
		return report.Style{}
	}
	if p.getenv("NO_COLOR") != "" || !p.terminal(w) {
		return report.Style{}
	}
	return report.Color
}

// terminal reports whether w is a terminal that understands more than text.
func (p *program) terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && p.getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// form checks --output against what a command prints.
func form(c *cli.Context, allowed ...string) (string, error) {
	f := c.String("output")
	if !slices.Contains(allowed, f) {
		return "", fmt.Errorf("--output %s is not one of %s", f, strings.Join(allowed, ", "))
	}
	switch c.String("color") {
	case "auto", "always", "never":
	default:
		return "", fmt.Errorf("--color %s is not one of auto, always, never", c.String("color"))
	}
	return f, nil
}

// oneArg returns the only argument, or "".
func oneArg(c *cli.Context, what string) (string, error) {
	if c.NArg() > 1 {
		return "", fmt.Errorf("%s takes at most one %s, got %d", c.Command.Name, what, c.NArg())
	}
	return c.Args().First(), nil
}

// noArgs refuses arguments.
func noArgs(c *cli.Context) error {
	if c.NArg() > 0 {
		return fmt.Errorf("%s takes no argument, got %q", c.Command.Name, c.Args().First())
	}
	return nil
}
