// Package lint gives advice about a policy repo: what is legal and probably not meant. What stops a build is found by the compiler; nothing here does.
//
// Each rule is one file: its code with the text that people read, and the function that finds it.
package lint

import (
	"io/fs"
	"slices"

	"halos.dev/halo/compiler"
	"halos.dev/halo/compiler/diag"
)

// Rule is one kind of advice.
type Rule struct {
	Code *diag.Code
	// Find reports every place the rule has something to say about.
	Find func(*Pass)
}

// Pass is one run of one rule over a compiled repo.
type Pass struct {
	*compiler.Compiled
	// FS is the policy repo, for rules about files that are not policy documents.
	FS fs.FS
	// Texts has what was seen in the bytes of the files.
	Texts *Texts
	code  *diag.Code
	diags *diag.List
}

// Rules lists every rule in order of its code.
func Rules() []Rule {
	return []Rule{exfiltration, dnsOverHTTPS, unusedDocument, emptyRing, farPins, untestedDenial, projectFiles, lineEndings,
		configurationRoot, openConfiguration, hiddenSecret, repeatedEntry}
}

// Codes lists the codes of the rules and of acknowledgements.
func Codes() []*diag.Code {
	var out []*diag.Code
	for _, r := range Rules() {
		out = append(out, r.Code)
	}
	return append(out, codeAckRefused, codeAckExpired, codeAckUnused)
}

// Run runs every rule but those whose code is in skip. Texts looked at the files while they were compiled (compiler.Input.Inspect); diags has what the compiler
// found.
func Run(c *compiler.Compiled, fsys fs.FS, texts *Texts, diags *diag.List, skip ...string) {
	for _, r := range Rules() {
		if !slices.Contains(skip, r.Code.ID) {
			r.Find(&Pass{c, fsys, texts, r.Code, diags})
		}
	}
}

// about is a finding of the rule at a place.
func (p *Pass) about(pos diag.Pos, path, format string, args ...any) diag.Diagnostic {
	d := diag.New(p.code, pos, path, format, args...)
	p.Repo.Locate(&d)
	return d
}

// Report adds a finding of the rule at a place.
func (p *Pass) Report(pos diag.Pos, path, format string, args ...any) {
	p.diags.Add(p.about(pos, path, format, args...))
}

// ReportFile adds a finding about a file that is not a policy document.
func (p *Pass) ReportFile(file, format string, args ...any) {
	d := diag.New(p.code, 0, "", format, args...)
	d.File = file
	p.diags.Add(d)
}
