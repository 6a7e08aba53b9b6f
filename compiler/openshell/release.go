package openshell

import (
	"bytes"

	"halos.dev/halo/compiler/diag"
)

// Evidence says how what this package knows of OpenShell is known.
const Evidence = "read in NVIDIA/OpenShell 2f7fb6559 (2026-08-21)"

// Built is the policy.yaml of one agent of one target.
type Built struct {
	Policy *Policy
	// Data is the file: Print of Policy. It is empty when a finding is an error.
	Data []byte
	// Findings are those of composing and of both layers of Check with the strict warnings raised to errors, in order. Each points into the document it is about.
	// Findings about a built-in source point to what asked for it (Input.Agent, Input.Provider, else Input.At), and Origin names the source.
	Findings []Finding
	// Gaps say where the file differs from the egress policy. It is never looser.
	Gaps []Gap
}

// Build composes the policy.yaml of one agent, checks it, prints it and reads it back. It is the entry point for releases and for halo openshell build; what it
// returns without an error is what a release may carry:
//
//   - sources in the order base, inference, agent, workspace, fragments, then the rule for the hosts that the egress policy allows;
//   - a host of a built-in source that the egress policy denies is left out with a gap, one of the repo is an error unless Input.Egress permits it, and nothing
//     permits a host on the denied list;
//   - Looser compares two of its policies, such as that of a unit with that of its ring.
//
// The inputs are not changed, so that parsed files serve any number of targets. The same input gives the same bytes.
func Build(in Input) *Built {
	c := Compose(in)
	b := &Built{Policy: c.Policy, Gaps: c.Gaps, Findings: ForBuild(append(c.Findings, Check(c.Policy)...))}
	if !HasErrors(b.Findings) {
		b.Data = Print(b.Policy)
		back, fs := Parse(0, b.Data)
		if HasErrors(fs) || !bytes.Equal(Print(back), b.Data) {
			d := diag.New(codeReadBack, in.At.Pos, in.At.Path, "the written policy.yaml does not read back as what was composed")
			b.Findings, b.Data = append(b.Findings, Finding{Diagnostic: d, Kinds: []Kind{KindStrict}, Layer: LayerHalo}), nil
		}
	}
	for i := range b.Findings {
		in.place(&b.Findings[i])
	}
	for i := range b.Gaps {
		in.place(&b.Gaps[i].Finding)
	}
	sortFindings(b.Findings)
	return b
}

// place gives a finding about a built-in source the place of what asked for it.
func (in *Input) place(f *Finding) {
	if f.Pos.IsValid() || f.File != "" {
		return
	}
	at := in.At
	switch {
	case f.Origin == "":
	case in.Provider.Text != "" && f.Origin == originProvider(in.Provider.Text):
		at = in.Provider
	case in.Agent.Text != "" && f.Origin == originAgent(in.Agent.Text):
		at = in.Agent
	}
	if f.Pos = at.Pos; at.Path != "" {
		f.Path = at.Path
	}
}

func originAgent(id string) string    { return "the built-in agent " + id }
func originProvider(id string) string { return "the built-in inference provider " + id }
