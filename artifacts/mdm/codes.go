package mdm

import "halos.dev/halo/compiler/diag"

// The findings about exports.
var (
	CodeByScript = &diag.Code{
		ID: "HALO2450", Severity: diag.Info, Since: "0.1.0",
		Title: "file goes by script",
		Text: "The harness reads this file only as a file: it has no preference domain or registry key for it. A script of the export writes it, checks it and removes " +
			"it. Nothing is lost; the device management system shows it as a script result, not as a profile.",
	}
	CodeKeptAsFile = &diag.Code{
		ID: "HALO2451", Severity: diag.Warning, Since: "0.1.0",
		Title: "document stays a file",
		Text: "The harness reads a preference domain or a registry key, but this document would lose something there: the order of its rules, a null, its size, or a key " +
			"that the harness does not take from there, or its pinned version is older than the support. The document is written as a file by script instead, whole, " +
			"and no profile or policy is made for the harness, because a profile would shadow the file.",
	}
	CodeStronger = &diag.Code{
		ID: "HALO2452", Severity: diag.Warning, Since: "0.1.0",
		Title: "profile is stronger than the file",
		Text: "Settings that the file sets as a start value become fixed for users when a profile carries them: the harness ranks the profile above everything. It is " +
			"tighter than what the coverage of the release says. To keep the start value a start value, deliver with --for files.",
	}
	CodeNoFile = &diag.Code{
		ID: "HALO2453", Severity: diag.Warning, Since: "0.1.0",
		Title: "harness gets nothing",
		Text: "The policy enables this harness, but the release has no file for it on this system, so device management has nothing to deliver and the harness runs " +
			"unmanaged. COVERAGE.md of the release lists what is not held and where it can be set instead.",
	}
	CodeSandbox = &diag.Code{
		ID: "HALO2454", Severity: diag.Warning, Since: "0.1.0",
		Title: "sandbox files are not delivered",
		Text: "A release can carry policy.yaml files and packs for sandbox hosts. They are not settings of a harness on a managed device, so no export has them; take them " +
			"from the release.",
	}
	CodeContradiction = &diag.Code{
		ID: "HALO2455", Severity: diag.Error, Since: "0.1.0",
		Title: "release contradicts itself",
		Text: "The manifest has two files for one place on the device, an owner other than the administrator of the system, or a target whose name is not its ring and " +
			"units. Scripts and packages could not do what it says, so nothing is exported. halo does not build such releases.",
	}
	CodeNotExport = &diag.Code{
		ID: "HALO2456", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "output is not an export",
		Text: "--out names something that halo did not write: a file, a link, or a directory with files that are not of an export or were changed since. It is left alone. " +
			"Choose a new or empty directory.",
		Before: "halo mdm export … --out .", After: "halo mdm export … --out out/jamf",
	}
	CodeNothing = &diag.Code{
		ID: "HALO2457", Severity: diag.Warning, Since: "0.1.0",
		Title: "target has nothing to deliver",
		Text: "A target has no file for a system: none of its harnesses holds anything of the policy there. Where all targets are exported it is left out; asked for by " +
			"name there is no export.",
	}
)

// Codes returns the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{CodeByScript, CodeKeptAsFile, CodeStronger, CodeNoFile, CodeSandbox, CodeContradiction, CodeNotExport, CodeNothing}
}
