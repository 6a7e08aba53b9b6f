package main

import (
	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/harness/all"
	"halos.dev/halo/lint/report"
)

func (p *program) harnessesCommand() *cli.Command {
	return &cli.Command{
		Name: "harnesses", Usage: "print what each harness can hold",
		Description: "Outside a policy repo: the tables for the newest version of each harness that this halo knows. In one: for the versions that the ring pins,\n" +
			"lowered to what its policy reaches.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "ring", Usage: "the `RING` whose pins to use (default: the default ring)"}},
		Action: func(c *cli.Context) error {
			f, err := form(c, "text", "json", "markdown")
			if err != nil {
				return err
			}
			if err := noArgs(c); err != nil {
				return err
			}
			m, err := p.matrix(c)
			if err != nil {
				return err
			}
			switch f {
			case "json":
				return report.WriteJSON(p.out, m)
			case "markdown":
				return m.Markdown(p.out, "Coverage")
			}
			return m.Text(p.out)
		},
	}
}

// matrix returns the built-in tables outside a policy repo, and those for a ring's pins in one.
func (p *program) matrix(c *cli.Context) (*coverage.Matrix, error) {
	if c.String("policy-dir") == "" && c.String("ring") == "" {
		if _, err := nearest(); err != nil {
			return coverage.Builtin(all.Harnesses()), nil
		}
	}
	r, err := p.open(c, "")
	if err != nil {
		return nil, err
	}
	compiled, _, err := p.query(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return nil, err
	}
	t, err := compiled.Resolve(compiler.Who{Ring: c.String("ring")})
	if err != nil {
		return nil, err
	}
	return compiled.Coverage(t.Policy), nil
}
