package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/lint/report"
)

// reachJSON is the answer of one target or sandbox for a host.
type reachJSON struct {
	Target   string     `json:"target,omitempty"`
	Ring     string     `json:"ring,omitempty"`
	Units    []string   `json:"units,omitempty"`
	Sandbox  string     `json:"sandbox,omitempty"`
	Decision string     `json:"decision"`
	Rule     string     `json:"rule"`
	Source   sourceJSON `json:"source,omitzero"`
}

func (p *program) whoCommand() *cli.Command {
	return &cli.Command{
		Name: "who", Usage: "list the rings, units and sandboxes that can reach a host, with the rule", ArgsUsage: "HOST",
		Description: "Exit status 0 when a target or a sandbox reaches the host, 1 when none does. With --all, those that do not are listed too.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "all", Usage: "list the targets and sandboxes that do not reach it too"}},
		Action:      p.egressWho,
	}
}

func (p *program) egressWho(c *cli.Context) error {
	f, err := form(c, "text", "json")
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return fmt.Errorf("egress who takes one host or URL, got %d", c.NArg())
	}
	r, err := p.open(c, "")
	if err != nil {
		return err
	}
	compiled, rep, err := p.query(c, r, compiler.Input{NoRender: true})
	if err != nil {
		return err
	}
	input := c.Args().First()
	var rows []reachJSON
	reached, host, note := 0, input, ""
	add := func(row reachJSON, allow bool) {
		row.Decision = effect(allow)
		if allow {
			reached++
		}
		if allow || c.Bool("all") {
			rows = append(rows, row)
		}
	}
	for _, t := range compiled.Targets {
		a, err := compiled.Egress(t, "", input, nil)
		if err != nil {
			return err
		}
		host, note = string(a.Host), portNote(&a)
		row := reachJSON{Target: t.ID, Ring: t.Ring.Name.V, Rule: a.Decision.Rule(), Source: sourceOf(compiled, rep, a.Decision.Pos)}
		for _, u := range t.Units {
			row.Units = append(row.Units, u.Name.V)
		}
		add(row, a.Decision.Allow)
	}
	for _, s := range compiled.Sandboxes {
		if s.Doc.Resolved == nil {
			continue
		}
		d := s.Doc.Resolved.Engine(nil).Decide(host, 0)
		add(reachJSON{Sandbox: s.Doc.Name.V, Rule: stepText(d), Source: sourceOf(compiled, rep, s.Doc.Name.Pos)}, d.Allowed)
	}
	if f == "json" {
		if rows == nil {
			rows = []reachJSON{}
		}
		out := map[string]any{"host": host, "input": input, "reached": reached, "results": rows}
		if note != "" {
			out["note"] = note
		}
		err = report.WriteJSON(p.out, out)
	} else if err = p.printReach(host, rows); err == nil && note != "" {
		_, err = fmt.Fprintf(p.out, "note   %s\n", note)
	}
	if err == nil && reached == 0 {
		return no
	}
	return err
}

func stepText(d pack.Decision) string {
	return strings.TrimSpace(fmt.Sprintf("step %d %s %s", d.Step, d.Rule, d.Match))
}

func (p *program) printReach(host string, rows []reachJSON) error {
	for _, r := range rows {
		name := r.Target
		if r.Sandbox != "" {
			name = "sandbox " + r.Sandbox
		}
		place := ""
		if r.Source.File != "" {
			place = fmt.Sprintf("  %s:%d:%d", r.Source.File, r.Source.Line, r.Source.Column)
		}
		if _, err := fmt.Fprintf(p.out, "%-5s %-24s %s%s\n", strings.ToUpper(r.Decision), name, r.Rule, place); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.out, "%s is reached by %s\n", host, reachers(rows))
	return err
}

// reachers counts who reaches a host: "4 targets and 1 sandbox".
func reachers(rows []reachJSON) string {
	targets, sandboxes := 0, 0
	for _, r := range rows {
		switch {
		case r.Decision != "allow":
		case r.Sandbox != "":
			sandboxes++
		default:
			targets++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(targets, "target", "targets")
	add(sandboxes, "sandbox", "sandboxes")
	if parts == nil {
		return "nobody"
	}
	return strings.Join(parts, " and ")
}
