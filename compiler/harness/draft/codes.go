package draft

import "halos.dev/halo/compiler/diag"

// What an import says about keys of its input.
var (
	CodeNoCounterpart = &diag.Code{ID: "HALO2501", Severity: diag.Warning, Since: "0.1.0",
		Title: "setting that is not carried over",
		Text: "The imported profile does not have this setting: halo has no field for it, its value has no form in a profile, or halo would not write it for this harness. " +
			"The line says which. halo import --strict makes it the answer no.",
		Before: `"forceLoginMethod": "console"`, After: "the setting stays with whatever manages logins"}
	CodeNotInForce = &diag.Code{ID: "HALO2502", Severity: diag.Warning, Since: "0.1.0",
		Title: "setting that looks in force and is not",
		Text: "The program does not do what this setting seems to say: an allow list without its lock is widened by any user, a path in another form never matches, an entry is " +
			"ignored. The imported profile has what the setting says, so the built files hold more than the old ones did.",
		Before: `"allowedDomains": ["github.com"]`, After: `"allowedDomains": ["github.com"], "allowManagedDomainsOnly": true`}
	CodeSecret = &diag.Code{ID: "HALO2503", Severity: diag.Warning, Since: "0.1.0",
		Title: "setting that may hold a secret",
		Text: "A value looks like a credential, or its name says that it is one. A policy repo is read by many and a release by every device, so it is dropped and never printed. " +
			"Refer to a variable, and let whatever manages secrets set it.",
		Before: `headers: {Authorization: "Bearer …"}`, After: `headers: {Authorization: "Bearer ${DOCS_TOKEN}"}`}
	CodeAdded = &diag.Code{ID: "HALO2504", Severity: diag.Warning, Since: "0.1.0",
		Title: "value that import added",
		Text: "The imported profile has a value that no input file has, because halo builds no ring without it or because leaving it out would be looser than the input. It only " +
			"ever tightens.", After: "permissions: {disableBypass: true}"}
)

// Codes lists the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{CodeNoCounterpart, CodeNotInForce, CodeSecret, CodeAdded}
}
