// Package coverage makes the coverage matrix, harness by operating system by concept, from the capability tables. Every table and page that shows what a
// harness holds is printed here.
package coverage

import (
	"fmt"
	"io"
	"strings"

	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Cell is what one harness does with one concept on one operating system.
type Cell struct {
	Concept  string   `json:"concept"`
	OS       string   `json:"os"`
	Grade    string   `json:"grade"`
	Verified bool     `json:"verified"`
	How      string   `json:"how"`
	Limit    string   `json:"limit"`
	Bypass   []string `json:"bypass"`
	Evidence string   `json:"evidence"`
}

// Row is one harness at one version.
type Row struct {
	Harness string `json:"harness"`
	Version string `json:"version"`
	Cells   []Cell `json:"cells"`
}

// Sandbox says how far a file of a Sandbox document holds: OpenShell's policy.yaml for an agent, or DefenseClaw's openshell block.
type Sandbox struct {
	Sandbox string `json:"sandbox"`
	// File is openshell or defenseclaw, Agent the agent of a policy.yaml.
	File     string   `json:"file"`
	Agent    string   `json:"agent,omitempty"`
	Grade    string   `json:"grade"`
	Verified bool     `json:"verified"`
	Limits   []string `json:"limits"`
	Evidence string   `json:"evidence"`
}

// Matrix is the coverage of several harnesses.
type Matrix struct {
	SchemaVersion int   `json:"schemaVersion"`
	Rows          []Row `json:"harnesses"`
	// Sandboxes is what the policy's Sandbox document is rendered to.
	Sandboxes []Sandbox `json:"sandboxes,omitempty"`
	// Enforced counts cells of grade enforced, Unverified those of them that were read and not observed.
	Enforced   int `json:"enforced"`
	Unverified int `json:"unverified"`
}

// Add adds a harness at a version. Grade, when not nil, lowers a capability to what one policy reaches.
func (m *Matrix) Add(h *harness.Harness, v harness.Version, grade func(c harness.Concept, os string) (harness.Grade, bool)) {
	row := Row{Harness: h.ID, Version: v.String()}
	for _, concept := range policy.Concepts {
		for _, os := range policy.OSes {
			c := h.Capability(harness.Concept(concept), os, v)
			g := c.Grade
			if grade != nil {
				if lower, ok := grade(harness.Concept(concept), os); ok {
					g = lower
				}
			}
			cell := Cell{Concept: concept, OS: os, Grade: g.String(), Verified: c.Verified, How: c.How, Limit: c.Limit, Bypass: c.Bypass, Evidence: c.Evidence}
			if cell.Bypass == nil {
				cell.Bypass = []string{}
			}
			if g == harness.Enforced {
				m.Enforced++
				if !c.Verified {
					m.Unverified++
				}
			}
			row.Cells = append(row.Cells, cell)
		}
	}
	m.SchemaVersion = 1
	m.Rows = append(m.Rows, row)
}

// Builtin returns the tables of every harness at its newest known version.
func Builtin(hs []*harness.Harness) *Matrix {
	m := &Matrix{SchemaVersion: 1}
	for _, h := range hs {
		m.Add(h, h.Known, nil)
	}
	return m
}

// Word returns the grade as tables show it: enforced counts as (unverified) until it was seen on the real program.
func (c *Cell) Word() string {
	if c.Grade == harness.Enforced.String() && !c.Verified {
		return "enforced (unverified)"
	}
	return c.Grade
}

// Text prints one line per harness and concept with the grade on each system, for terminals.
func (m *Matrix) Text(w io.Writer) error {
	var b strings.Builder
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "%s %s\n", r.Harness, r.Version)
		fmt.Fprintf(&b, "  %-16s", "")
		for _, os := range policy.OSes {
			fmt.Fprintf(&b, " %-22s", os)
		}
		b.WriteString("\n")
		for i := 0; i < len(r.Cells); i += len(policy.OSes) {
			line := fmt.Sprintf("  %-16s", r.Cells[i].Concept)
			for j := range policy.OSes {
				line += fmt.Sprintf(" %-22s", r.Cells[i+j].Word())
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		b.WriteString("\n")
	}
	for _, x := range m.Sandboxes {
		fmt.Fprintf(&b, "sandbox %s\n  %-16s %s\n", x.Sandbox, x.what(), x.Word())
		for _, l := range x.Limits {
			fmt.Fprintf(&b, "    %s\n", l)
		}
		b.WriteString("\n")
	}
	b.WriteString(m.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// what names the file and whose it is.
func (x *Sandbox) what() string {
	if x.Agent == "" {
		return x.File
	}
	return x.File + " " + x.Agent
}

// Word returns the grade as tables show it, as Cell.Word does.
func (x *Sandbox) Word() string {
	c := Cell{Grade: x.Grade, Verified: x.Verified}
	return c.Word()
}

func (m *Matrix) summary() string {
	return fmt.Sprintf("%d cells enforced, %d of them not yet observed on the real program", m.Enforced, m.Unverified)
}

// Markdown prints a table per harness with how each concept is held, what it does not hold and how that is known.
func (m *Matrix) Markdown(w io.Writer, title string) error {
	var b strings.Builder
	b.WriteString("# " + title + "\n\n")
	b.WriteString("What each harness holds of a policy. **enforced** holds against the user's own files, flags and variables; **overridable** holds until a user, a\n" +
		"repository, a flag or a variable undoes it; **default** is a start value; **none** is not held. `(unverified)` marks a grade that was read in the\n" +
		"vendor's program or documentation and not yet observed.\n\n")
	b.WriteString(m.summary() + ".\n")
	for _, r := range m.Rows {
		fmt.Fprintf(&b, "\n## %s %s\n\n| concept | %s | how | limits | undone by | evidence |\n| --- |%s --- | --- | --- | --- |\n", r.Harness, r.Version, strings.Join(policy.OSes, " | "), strings.Repeat(" --- |", len(policy.OSes)))
		for i := 0; i < len(r.Cells); i += len(policy.OSes) {
			cells := r.Cells[i : i+len(policy.OSes)]
			fmt.Fprintf(&b, "| %s |", cells[0].Concept)
			for _, c := range cells {
				fmt.Fprintf(&b, " %s |", c.Word())
			}
			fmt.Fprintf(&b, " %s | %s | %s | %s |\n", perOS(cells, func(c *Cell) string { return c.How }), perOS(cells, func(c *Cell) string { return c.Limit }),
				perOS(cells, func(c *Cell) string { return strings.Join(c.Bypass, ", ") }), perOS(cells, func(c *Cell) string { return c.Evidence }))
		}
	}
	if len(m.Sandboxes) > 0 {
		b.WriteString("\n## Sandboxes\n\nA policy.yaml is never looser than the egress policy; the limits say where it is stricter, or holds by other means.\n\n| sandbox | file | grade | limits | evidence |\n| --- | --- | --- | --- | --- |\n")
		for _, x := range m.Sandboxes {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", x.Sandbox, x.what(), x.Word(), strings.Join(x.Limits, "; "), x.Evidence)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// perOS joins a text over the systems and names the systems where they differ.
func perOS(cells []Cell, text func(*Cell) string) string {
	var texts []string
	oss := map[string][]string{}
	for i := range cells {
		t := text(&cells[i])
		if _, ok := oss[t]; !ok {
			texts = append(texts, t)
		}
		oss[t] = append(oss[t], cells[i].OS)
	}
	var out []string
	for _, t := range texts {
		switch {
		case t == "":
		case len(texts) == 1:
			out = append(out, t)
		default:
			out = append(out, strings.Join(oss[t], ", ")+": "+t)
		}
	}
	return strings.ReplaceAll(strings.Join(out, "; "), "|", "\\|")
}
