package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/simple"
	"halos.dev/halo/lint/report"
)

func expandFlag() cli.Flag {
	return &cli.BoolFlag{Name: "expand", Usage: "print the documents that the root keys of simple mode make, with the place of every value, and nothing else"}
}

type expandedJSON struct {
	Documents []documentJSON `json:"documents"`
}

type documentJSON struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	YAML string `json:"yaml"`
}

// expand prints what simple mode makes of halos.yaml.
func (p *program) expand(c *cli.Context, form string) error {
	for _, flag := range slices.Sorted(slices.Values(c.LocalFlagNames())) {
		if flag != "expand" {
			return fmt.Errorf("--expand is about the whole repo and goes without --%s", flag)
		}
	}
	if c.NArg() > 0 {
		return errors.New("--expand is about the whole repo and goes without an argument")
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	compiled, _, err := p.query(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return err
	}
	if compiled.Repo.Root.Simple == nil {
		return simple.ErrNotSimple
	}
	docs, err := simple.Documents(compiled.Repo)
	if err != nil {
		return err
	}
	if form == "json" {
		out := expandedJSON{Documents: []documentJSON{}}
		for _, d := range docs {
			out.Documents = append(out.Documents, documentJSON(d))
		}
		return report.WriteJSON(p.out, out)
	}
	for i, d := range docs {
		if i > 0 {
			if _, err := fmt.Fprintln(p.out, "---"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprint(p.out, d.YAML); err != nil {
			return err
		}
	}
	return nil
}
