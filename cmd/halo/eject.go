package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/simple"
	"halos.dev/halo/lint/report"
)

func (p *program) ejectCommand() *cli.Command {
	return &cli.Command{
		Name: "eject", Usage: "write the documents of simple mode out and take its keys out of halos.yaml", ArgsUsage: "[DIR]",
		Description: "The gateway goes to gateway.yaml, the profile to profiles/default.yaml and the rings to rings/rings.yaml; a document that lies over one of them is made whole where\n" +
			"it stands. The repo means exactly the same afterwards: that is proven before anything is written. A file that exists is refused; a run that is killed leaves a\n" +
			"repo that means the same and can be ejected again. In halos.yaml every other line stays, comments before a key included. Exit status 1 when the policy has errors.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "print the files and write nothing"},
		},
		Action: p.eject,
	}
}

type ejectedJSON struct {
	DryRun bool          `json:"dryRun"`
	Files  []ejectedFile `json:"files"`
	Notes  []string      `json:"notes"`
}

type ejectedFile struct {
	Path    string `json:"path"`
	Change  string `json:"change"`
	Content string `json:"content"`
}

func (p *program) eject(c *cli.Context) error {
	f, err := form(c, "text", "json")
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
	compiled, rep, diags, err := p.compile(c, r, compiler.Input{})
	if err != nil {
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
	e, err := simple.Eject(c.Context, r.fs, compiled.Repo)
	if err != nil {
		return err
	}
	dry := c.Bool("dry-run")
	if !dry {
		root, err := filepath.EvalSymlinks(r.dir)
		if err != nil {
			return err
		}
		edits := make([]artifacts.Edit, len(e.Changes))
		for i, x := range e.Changes {
			edits[i] = artifacts.Edit{Path: x.Name, Was: x.Was, Data: x.Data}
		}
		if err := artifacts.WriteEdits(c.Context, root, edits); err != nil {
			return err
		}
	}
	if f == "json" {
		out := ejectedJSON{DryRun: dry, Files: []ejectedFile{}, Notes: append([]string{}, e.Notes...)}
		for _, x := range e.Changes {
			out.Files = append(out.Files, ejectedFile{x.Name, changeWord(x), string(x.Data)})
		}
		return report.WriteJSON(p.out, out)
	}
	for _, x := range e.Changes {
		if dry {
			if _, err := fmt.Fprintf(p.out, "# ==> %s (%s)\n%s", x.Name, changeWord(x), x.Data); err != nil {
				return err
			}
		} else if !c.Bool("quiet") {
			if _, err := fmt.Fprintf(p.out, "%-7s  %s\n", changeWord(x), prefix(r.dir)+x.Name); err != nil {
				return err
			}
		}
	}
	if c.Bool("quiet") {
		return nil
	}
	for _, n := range e.Notes {
		fmt.Fprintf(p.err, "note: %s\n", n)
	}
	return nil
}

func changeWord(x simple.Change) string {
	if x.Was == nil {
		return "new"
	}
	return "changed"
}
