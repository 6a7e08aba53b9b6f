package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/lint/report"
)

func (p *program) lintCommand() *cli.Command {
	return &cli.Command{
		Name: "lint", Usage: "check a policy repo, advisory rules included", ArgsUsage: "[DIR]",
		Description: "Everything that validate does, and advice. Findings go to standard error and a summary to standard output; with --output json, sarif,\n" +
			"github or junit the findings are the output. Exit status 1 when there are errors (or warnings, with --fail-on warning).",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "the least `SEVERITY` that fails: error or warning"},
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
	_, rep, diags, err := p.compile(c, r, compiler.Input{})
	if err != nil {
		return err
	}
	rep.Strict = strict
	if err := p.print(c, rep, f); err != nil {
		return err
	}
	errors, warnings := rep.Counts()
	switch {
	case diags.NoAnswer():
		return none
	case errors > 0 || strict && warnings > 0:
		return no
	}
	return nil
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
