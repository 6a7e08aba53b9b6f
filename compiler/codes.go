package compiler

import (
	"slices"

	"halos.dev/halo/compiler/check"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/openshell"
	"halos.dev/halo/compiler/pack"
	"halos.dev/halo/compiler/policy"
	"halos.dev/halo/compiler/source"
)

var (
	codeNotHeld = &diag.Code{ID: "HALO1701", Severity: diag.Warning, Title: "gap: not held", Since: "0.1.0",
		Text: "The policy sets something that this harness cannot hold at the pinned version on these systems. Nothing in its managed files stands for it. `halo harnesses` shows what each harness holds; `require:` turns such a gap into an error."}
	codeOverridable = &diag.Code{ID: "HALO1702", Severity: diag.Warning, Title: "gap: overridable", Since: "0.1.0",
		Text: "The harness holds this until a user, a repository, a flag or a variable undoes it. `halo harnesses` lists what undoes it, and `halo doctor` looks for it."}
	codeDefaultOnly = &diag.Code{ID: "HALO1703", Severity: diag.Warning, Title: "gap: a default only", Since: "0.1.0",
		Text: "The harness starts with this value, and the user may change it."}
	codePartial = &diag.Code{ID: "HALO1704", Severity: diag.Warning, Title: "gap: held with a limit", Since: "0.1.0",
		Text: "The harness enforces the concept, but not in every case the policy names. The message says which part is not covered."}
	codeOldVersion = &diag.Code{ID: "HALO1705", Severity: diag.Warning, Title: "pin older than the tables", Since: "0.1.0",
		Text:   "Nothing is known about what this version of the harness does with managed settings. Pin a newer one.",
		Before: "harnesses: {claude-code: {version: 0.2.1}}", After: "harnesses: {claude-code: {version: 2.1.332}}"}
	codeNewVersion = &diag.Code{ID: "HALO1706", Severity: diag.Warning, Title: "pin newer than the tables", Since: "0.1.0",
		Text: "This version of the harness came out after the tables of this halo were checked. It is rendered for as the newest known version; watch its release notes, and update halo."}
	codeRequired = &diag.Code{ID: "HALO1707", Title: "requirement not met", Since: "0.1.0",
		Text:   "The policy requires a concept to reach a grade on a harness, and at the pinned version it does not. Pin a version that holds it, take the harness out of the profile, or lower the requirement on purpose.",
		Before: "require:\n  - {concept: egress, harness: opencode, grade: enforced}", After: "require:\n  - {concept: egress, harness: codex, os: [linux], grade: enforced}"}
	codeRecheck = &diag.Code{ID: "HALO1801", Title: "rendered file does not hold", Since: "0.1.0",
		Text: "After rendering, every file is read again with a strict reader of its format and compared with the policy. This file would be ignored in part, or says something else than the policy. That is a defect of halo: please report it."}
	codeNoSuchPack = &diag.Code{ID: "HALO2103", Title: "pack that does not exist", Since: "0.1.0",
		Text:   "pack names a pack that is built into DefenseClaw (open, balanced, strict) or one of the repo, at packs/NAME/pack.yaml.",
		Before: "pack: team-wep", After: "pack: team-web"}
	codeUnnamed = &diag.Code{ID: "HALO2104", Severity: diag.Warning, Title: "Sandbox document that nothing names", Since: "0.1.0",
		Text: "A Sandbox document is released for the targets whose profile or unit names it with sandbox.policy. One that nothing names is checked and not released."}
	codeUnreferenced = &diag.Code{ID: "HALO2105", Severity: diag.Warning, Title: "file below packs/ or openshell/ that nothing names", Since: "0.1.0",
		Text: "Packs and OpenShell files are released when a Sandbox document names them. This file looks like policy and is not in force."}
	codeNoFile = &diag.Code{ID: "HALO2106", Title: "file that a Sandbox document names is missing", Since: "0.1.0",
		Text: "The document names a file that is not in the repo or could not be read."}
	codeDevicePack = &diag.Code{ID: "HALO2107", Severity: diag.Warning, Title: "pack outside the repo", Since: "0.1.0",
		Text: "The openshell block names a pack that lies on the device only. Its content is not known here: settings are not resolved, and units cannot be compared with their rings."}
	codeNoAgents = &diag.Code{ID: "HALO2108", Title: "Sandbox policy without one place for each agent", Since: "0.1.0",
		Text: "policy.agents lists the agents that get a policy.yaml, each once: claude, opencode.", Before: "policy: {}", After: "policy: {agents: [claude]}"}
	codeLooserPolicy = &diag.Code{ID: "HALO2109", Title: "unit's OpenShell policy loosens its ring's", Since: "0.1.0",
		Text: "A unit may name another Sandbox document when its policy.yaml allows no request that the ring's does not. What cannot be compared counts as looser. The message shows a request that passes under the unit's policy only."}
	codeUnranked = &diag.Code{ID: "HALO2110", Title: "units with sandboxes that cannot be ranked", Since: "0.1.0",
		Text: "When units apply together, the strictest of the sandboxes they name holds. Of these two neither is at least as strict as the other in every setting."}
	codeBlock = &diag.Code{ID: "HALO2111", Title: "sandbox that cannot be resolved", Since: "0.1.0",
		Text: "The pack, the openshell keys and the administrator's limits do not come to a policy. DefenseClaw would start no sandbox."}
	codeClamped = &diag.Code{ID: "HALO2112", Severity: diag.Warning, Title: "setting that the document's own admin block replaces", Since: "0.1.0",
		Text: "The administrator's limits override a value that the same document or its pack sets, and DefenseClaw reports it to every user."}
	codeRenderedSecret = &diag.Code{ID: "HALO1802", Title: "secret in a rendered file", Since: "0.1.0",
		Text: "A rendered file holds what looks like a literal credential. Refer to a variable in the policy instead."}
)

func gapCode(g harness.Grade) *diag.Code {
	return [...]*diag.Code{harness.None: codeNotHeld, harness.Default: codeDefaultOnly, harness.Overridable: codeOverridable, harness.Enforced: codePartial}[min(g, harness.Enforced)]
}

// GapCode returns the code that warnings about a gap of this grade carry.
func GapCode(g harness.Gap) *diag.Code { return gapCode(g.Grade) }

// Codes lists the codes of the compiler and of every package below it, in order of their ids.
func Codes() []*diag.Code {
	out := slices.Concat(source.Codes(), policy.Codes(), check.Codes(), []*diag.Code{codeNotHeld, codeOverridable, codeDefaultOnly, codePartial, codeOldVersion, codeNewVersion,
		codeRequired, codeRecheck, codeRenderedSecret,
		codeNoSuchPack, codeUnnamed, codeUnreferenced, codeNoFile, codeDevicePack, codeNoAgents, codeLooserPolicy, codeUnranked, codeBlock, codeClamped},
		pack.Codes(), openshell.Codes())
	slices.SortFunc(out, func(a, b *diag.Code) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
