package report

import (
	"encoding/json"
	"io"
	"slices"

	"halos.dev/halo/compiler/diag"
)

// Finding is a diagnostic in JSON output.
type Finding struct {
	Code      string  `json:"code"`
	Severity  string  `json:"severity"`
	File      string  `json:"file"`
	Line      int     `json:"line"`
	Column    int     `json:"column"`
	EndLine   int     `json:"endLine"`
	EndColumn int     `json:"endColumn"`
	Document  string  `json:"document"`
	Path      string  `json:"path"`
	Message   string  `json:"message"`
	Hint      string  `json:"hint"`
	Related   []Place `json:"related"`
}

// Place is a related place in JSON output.
type Place struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// Summary counts findings in JSON output. Omitted is how many of them are counted and not listed.
type Summary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Files    int `json:"files"`
	Omitted  int `json:"omitted,omitempty"`
}

// listed is how many findings JSON output lists.
const listed = 10_000

// Document is the JSON form of a report.
type Document struct {
	SchemaVersion int       `json:"schemaVersion"`
	Diagnostics   []Finding `json:"diagnostics"`
	Summary       Summary   `json:"summary"`
}

// Document returns the report as data. File names are relative to the policy repo.
func (r *Report) Document() Document {
	ds, left := capped(r.Diagnostics, listed)
	doc := Document{SchemaVersion: 1, Diagnostics: make([]Finding, 0, len(ds))}
	src := r.lines()
	for _, d := range ds {
		s := src.span(d.Pos)
		f := Finding{Code: d.Code.ID, Severity: d.Severity.String(), File: r.FileOf(d), Line: s.line, Column: s.col, EndLine: s.endLine, EndColumn: s.endCol,
			Document: d.Document, Path: d.Path, Message: d.Message, Hint: d.Hint, Related: []Place{}}
		if !d.Pos.IsValid() {
			f.Line, f.Column, f.EndLine, f.EndColumn = 0, 0, 0, 0
		}
		for _, rel := range d.Related {
			f.Related = append(f.Related, Place{r.Files.Name(rel.Pos), rel.Pos.Line(), rel.Pos.Col(), rel.Message})
		}
		doc.Diagnostics = append(doc.Diagnostics, f)
	}
	doc.Summary.Errors, doc.Summary.Warnings = r.Counts()
	doc.Summary.Files, doc.Summary.Omitted = len(r.Files), left
	return doc
}

// JSON prints the report as one JSON document.
func (r *Report) JSON(w io.Writer) error { return WriteJSON(w, r.Document()) }

// WriteJSON prints a value as every JSON output of halo is printed: two spaces of indentation, no escaping of <, > and &, one final newline.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// worst orders findings errors first and keeps the total order within a severity.
func worst(ds []diag.Diagnostic) []diag.Diagnostic {
	out := make([]diag.Diagnostic, 0, len(ds))
	for _, sev := range []diag.Severity{diag.Error, diag.Warning, diag.Info} {
		for _, d := range ds {
			if d.Severity == sev {
				out = append(out, d)
			}
		}
	}
	return out
}

// capped returns the n worst findings in the total order, and how many it leaves out.
func capped(ds []diag.Diagnostic, n int) (kept []diag.Diagnostic, left int) {
	if len(ds) <= n {
		return ds, 0
	}
	kept = worst(ds)[:n]
	slices.SortStableFunc(kept, diag.Compare)
	return kept, len(ds) - n
}
