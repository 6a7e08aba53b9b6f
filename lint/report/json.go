package report

import (
	"encoding/json"
	"io"

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

// Summary counts findings in JSON output.
type Summary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Files    int `json:"files"`
}

// Document is the JSON form of a report.
type Document struct {
	SchemaVersion int       `json:"schemaVersion"`
	Diagnostics   []Finding `json:"diagnostics"`
	Summary       Summary   `json:"summary"`
}

// Document returns the report as data. File names are relative to the policy repo.
func (r *Report) Document() Document {
	doc := Document{SchemaVersion: 1, Diagnostics: make([]Finding, 0, len(r.Diagnostics))}
	src := r.lines()
	for _, d := range r.Diagnostics {
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
	doc.Summary.Files = len(r.Files)
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
