package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/lint/report"
)

func (p *program) explainCommand() *cli.Command {
	return &cli.Command{
		Name: "explain", Usage: "print the effective policy and where each value comes from", ArgsUsage: "[KEY]",
		Description: "KEY limits the output to a key or a section, such as egress or sandbox.mode. With --harness and --os, what that harness holds of it follows.",
		Flags: append(targetFlags(), osFlag(),
			&cli.StringFlag{Name: "harness", Usage: "also say what `HARNESS` holds of it"}),
		Action: p.explain,
	}
}

type explainJSON struct {
	Target  string      `json:"target"`
	Profile string      `json:"profile"`
	Values  []valueJSON `json:"values"`
	Files   []string    `json:"files,omitempty"`
	Gaps    []gapJSON   `json:"gaps,omitempty"`
}

type valueJSON struct {
	Key    string     `json:"key"`
	Value  string     `json:"value"`
	Source sourceJSON `json:"source"`
}

func (p *program) explain(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	key, err := oneArg(c, "key")
	if err != nil {
		return err
	}
	system, err := system(c)
	if err != nil {
		return err
	}
	id := c.String("harness")
	if id != "" && !slices.Contains(policy.Harnesses, id) {
		return fmt.Errorf("--harness %s is not one of %s", id, strings.Join(policy.Harnesses, ", "))
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	units := c.StringSlice("unit")
	compiled, rep, err := p.query(c, r, compiler.Input{NoRender: true, Question: &policy.Question{Units: units}})
	if err != nil {
		return err
	}
	t, err := compiled.Resolve(compiler.Who{Ring: c.String("ring"), Units: units})
	if err != nil {
		return err
	}
	out := explainJSON{Target: t.ID, Profile: t.Policy.Profile, Values: []valueJSON{}}
	for _, v := range effective.Values(t.Policy) {
		if key != "" && v.Key != key && !strings.HasPrefix(v.Key, key+".") && !strings.HasPrefix(v.Key, key+"[") {
			continue
		}
		out.Values = append(out.Values, valueJSON{v.Key, v.Value, sourceOf(compiled, rep, v.Pos)})
	}
	if key != "" && len(out.Values) == 0 {
		return fmt.Errorf("the effective policy of %s has no value %s", t.ID, key)
	}
	if id != "" {
		found := false
		for _, x := range compiled.Renderings(t.Policy, system) {
			if x.Harness.ID != id {
				continue
			}
			found = true
			for _, file := range x.Files {
				out.Files = append(out.Files, file.Dest)
			}
			for _, g := range x.Gaps {
				out.Gaps = append(out.Gaps, gapJSON{compiler.GapCode(g).ID, string(g.Concept), g.Field, g.Entry, g.Grade.String(), g.Reason})
			}
		}
		if !found {
			return fmt.Errorf("profile %s does not enable %s", t.Policy.Profile, id)
		}
	}
	if f == "json" {
		return report.WriteJSON(p.out, out)
	}
	fmt.Fprintf(p.out, "%s  (profile %s)\n", out.Target, out.Profile)
	width := 0
	for _, v := range out.Values {
		width = max(width, len(v.Key))
	}
	for _, v := range out.Values {
		value := v.Value
		if i := strings.IndexByte(value, '\n'); i >= 0 {
			value = value[:i] + " …"
		}
		fmt.Fprintf(p.out, "  %-*s  %s  # %s:%d:%d %s\n", width, v.Key, value, v.Source.File, v.Source.Line, v.Source.Column, v.Source.Document)
	}
	for _, file := range out.Files {
		fmt.Fprintf(p.out, "file  %s\n", file)
	}
	for _, g := range out.Gaps {
		fmt.Fprintf(p.out, "gap   %s (%s): %s\n", g.Concept, g.Grade, g.Reason)
	}
	return nil
}
