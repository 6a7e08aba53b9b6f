package report

import (
	"encoding/json"
	"slices"

	"halos.dev/halo/compiler/coverage"
	"halos.dev/halo/compiler/policy"
)

// matrix is a coverage matrix and the rings that have it.
type matrix struct {
	rings []string
	coverage.Matrix
}

// matrices joins the rings with the same coverage.
func (r *reporter) matrices() []*matrix {
	if r.distinct != nil {
		return r.distinct
	}
	r.distinct = []*matrix{}
	at := map[string]*matrix{}
	for _, x := range r.rings {
		// Equal matrices have equal JSON; that of a matrix which was just read cannot fail.
		key, _ := json.Marshal(x.Matrix)
		m := at[string(key)]
		if m == nil {
			m = &matrix{Matrix: x.Matrix}
			at[string(key)] = m
			r.distinct = append(r.distinct, m)
		}
		m.rings = append(m.rings, x.Ring)
	}
	return r.distinct
}

// grades are the words of a matrix, best first, with the marks and what they mean.
var grades = []struct {
	word       string
	mark       markup
	definition markup
}{
	{"enforced", "enforced", "holds against the user's own files, flags and variables"},
	{"enforced (unverified)", "unverified", "the same, read in the vendor's program or documentation and not yet observed"},
	{"overridable", "overridable", "holds until a user, a repository, a flag or a variable undoes it"},
	{"default", "default", "a start value"},
	{"none", "none", "not held"},
}

// grade writes a word with its mark.
func (r *reporter) grade(word string) {
	for _, g := range grades {
		if g.word == word {
			r.put("<span class=\"g g-{}\"><svg aria-hidden=true><use href=#s-{} /></svg>{}</span>", g.mark, g.mark, word)
			return
		}
	}
	r.put("<span class=g>{}</span>", word)
}

func (r *reporter) coverage() {
	all := r.matrices()
	if len(all) == 0 {
		r.put("<p>This release has no <code>coverage.json</code>, so what the harnesses hold is not known.</p>\n")
		return
	}
	r.put("<dl class=legend>\n")
	for _, g := range grades {
		r.put("<div><dt>")
		r.grade(g.word)
		r.put("</dt><dd>{}</dd></div>\n", g.definition)
	}
	r.put("</dl>\n")
	for i, m := range all {
		if len(all) > 1 {
			r.put("<h3>Coverage {}: ", i+1)
			r.count(len(m.rings), "ring", "rings")
			r.put("</h3>\n<div class=who>")
			r.fold(m.rings, "rings")
			r.put("</div>\n")
		}
		r.put("<p>")
		r.count(m.Enforced, "cell is enforced", "cells are enforced")
		r.put(", {} of them not yet observed on the real program.</p>\n", m.Unverified)
		r.overview(m)
		for j := range m.Rows {
			r.harness(&m.Rows[j])
		}
		r.sandboxCoverage(m)
	}
}

// overview writes a concept in each line and a harness in each column.
func (r *reporter) overview(m *matrix) {
	heads := []markup{"Concept"}
	for _, row := range m.Rows {
		var p page
		p.put("{} <small>{}</small>", row.Harness, row.Version)
		heads = append(heads, markup(p.out))
	}
	t := r.table("matrix", "What each harness holds", nil, heads...)
	for _, concept := range policy.Concepts {
		cells := []any{concept}
		for i := range m.Rows {
			cells = append(cells, func() { r.cell(&m.Rows[i], concept) })
		}
		t.row(cells...)
	}
	t.end()
}

// cell writes what a harness holds of a concept.
func (r *reporter) cell(row *coverage.Row, concept string) {
	var cells []coverage.Cell
	for _, c := range row.Cells {
		if c.Concept == concept {
			cells = append(cells, c)
		}
	}
	r.gradesOf(cells)
}

// gradesOf writes the one grade of cells, or a line for each group of systems with the same.
func (r *reporter) gradesOf(cells []coverage.Cell) {
	var words []string
	oss := map[string][]string{}
	for i := range cells {
		w := cells[i].Word()
		if oss[w] == nil {
			words = append(words, w)
		}
		oss[w] = append(oss[w], cells[i].OS)
	}
	for _, w := range words {
		r.put("<div>")
		r.grade(w)
		if len(words) > 1 {
			r.put(" <small>")
			r.systems(oss[w])
			r.put("</small>")
		}
		r.put("</div>")
	}
}

// harness writes how a harness holds each concept, and what it does not hold.
func (r *reporter) harness(row *coverage.Row) {
	n := map[string]int{}
	for i := range row.Cells {
		n[row.Cells[i].Word()]++
	}
	r.put("<details class=harness><summary><b>{}</b> {} <span>", row.Harness, row.Version)
	first := true
	for _, g := range grades {
		if n[g.word] > 0 {
			if !first {
				r.put(", ")
			}
			first = false
			r.put("{} {}", n[g.word], g.word)
		}
	}
	r.put("</span></summary>\n")
	t := r.table("stack limits", "How {} {} holds a policy, and its limits", []any{row.Harness, row.Version}, "Concept", "Systems", "Grade", "Held by", "Limit", "Undone by")
	for i := 0; i < len(row.Cells); {
		c := &row.Cells[i]
		n := 1
		for i+n < len(row.Cells) && row.Cells[i+n].Concept == c.Concept {
			n++
		}
		rest := slices.Clone(row.Cells[i : i+n])
		i += n
		for len(rest) > 0 {
			c := rest[0]
			// Whether a grade was observed is told beside it.
			same := func(x coverage.Cell) bool {
				return x.Grade == c.Grade && x.How == c.How && x.Limit == c.Limit && slices.Equal(x.Bypass, c.Bypass)
			}
			var cells []coverage.Cell
			var oss []string
			for _, x := range rest {
				if same(x) {
					cells, oss = append(cells, x), append(oss, x.OS)
				}
			}
			rest = slices.DeleteFunc(rest, same)
			t.row(c.Concept, func() { r.systems(oss) }, func() { r.gradesOf(cells) }, c.How, c.Limit, func() {
				for i, b := range c.Bypass {
					if i > 0 {
						r.put(", ")
					}
					r.put("<code>{}</code>", b)
				}
			})
		}
	}
	t.end()
	r.put("</details>\n")
}

func (r *reporter) sandboxCoverage(m *matrix) {
	if len(m.Sandboxes) == 0 {
		return
	}
	r.put("<p>A <code>policy.yaml</code> is never looser than the rules for hosts; the limits say where it is stricter, or holds by other means.</p>\n")
	t := r.table("stack limits", "What sandboxes hold", nil, "Sandbox", "File", "Grade", "Limits")
	for i := range m.Sandboxes {
		x := &m.Sandboxes[i]
		t.row(x.Sandbox, func() {
			r.put("{}", x.File)
			if x.Agent != "" {
				r.put(" for {}", x.Agent)
			}
		}, func() { r.grade(x.Word()) }, func() {
			r.put("<ul class=plain>")
			for _, l := range x.Limits {
				r.put("<li>{}", l)
			}
			r.put("</ul>")
		})
	}
	t.end()
}

// proof is a way in which something is known, and of what.
type proof struct {
	text     string
	observed bool
	concepts []string
	systems  []string
}

func (r *reporter) evidence() {
	all := r.matrices()
	if len(all) == 0 {
		r.put("<p>This release has no <code>coverage.json</code>, so how its coverage is known is not known.</p>\n")
		return
	}
	r.put("<p>How the grades are known. A grade is observed when the program was run and seen to do what the grade says, on the version and day that the evidence names; the others were read in its code, its schema or its documentation.</p>\n")
	type version struct{ harness, version string }
	var order []version
	proofs := map[version][]*proof{}
	note := func(v version, text string, observed bool, concept, os string) {
		if proofs[v] == nil {
			order = append(order, v)
		}
		i := slices.IndexFunc(proofs[v], func(p *proof) bool { return p.text == text && p.observed == observed })
		if i < 0 {
			i = len(proofs[v])
			proofs[v] = append(proofs[v], &proof{text: text, observed: observed})
		}
		p := proofs[v][i]
		if !slices.Contains(p.concepts, concept) {
			p.concepts = append(p.concepts, concept)
		}
		if os != "" && !slices.Contains(p.systems, os) {
			p.systems = append(p.systems, os)
		}
	}
	for _, m := range all {
		for _, row := range m.Rows {
			for _, c := range row.Cells {
				note(version{row.Harness, row.Version}, c.Evidence, c.Verified, c.Concept, c.OS)
			}
		}
		for _, x := range m.Sandboxes {
			note(version{harness: "sandbox " + x.File}, x.Evidence, x.Verified, x.Sandbox, "")
		}
	}
	t := r.table("stack evidence", "How each grade is known", nil, "Harness", "Version", "Observed", "Evidence", "Concepts", "Systems")
	for _, v := range order {
		slices.SortStableFunc(proofs[v], func(a, b *proof) int {
			switch {
			case a.observed == b.observed:
				return 0
			case a.observed:
				return -1
			}
			return 1
		})
		for _, p := range proofs[v] {
			observed := "no"
			if p.observed {
				observed = "yes"
			}
			t.row(v.harness, v.version, observed, p.text, func() { r.words(p.concepts) }, func() { r.systems(p.systems) })
		}
	}
	t.end()
}
