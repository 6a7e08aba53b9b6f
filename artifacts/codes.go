package artifacts

import "halos.dev/halo/compiler/diag"

// The findings about releases.
var (
	CodeNoTime = &diag.Code{
		ID: "HALO1901", Severity: diag.Warning, Since: "0.1.0",
		Title: "no source time",
		Text: "The time of a release comes from its source: --as-of, else SOURCE_DATE_EPOCH, else the commit time of HEAD when nothing that was read differs from " +
			"it. None is there, so the release says 1970-01-01. Commit the policy before building, or name the time.",
		Before: "halo build --out out   # with uncommitted changes", After: "git commit -a && halo build --out out",
	}
	CodeNoExpiry = &diag.Code{
		ID: "HALO1902", Severity: diag.Warning, Since: "0.1.0",
		Title:  "signed release never expires",
		Text:   "Without lifetime in halos.yaml a device that is cut off keeps accepting this release forever. A lifetime makes a withheld update visible.",
		Before: "org: acme", After: "org: acme\nlifetime: 90d",
	}
	CodeNotRelease = &diag.Code{
		ID: "HALO1903", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "output is not a release",
		Text: "--out names something that halo did not write: a file, a link, a directory that is not a release, or a release with other files in it. It is left " +
			"alone. Choose a new or empty directory.",
		Before: "halo build --out .", After: "halo build --out out/release",
	}
	CodeUnsigned = &diag.Code{
		ID: "HALO1904", Severity: diag.Error, Since: "0.1.0",
		Title:  "release is not signed",
		Text:   "The release has no manifest.json.sigstore.json. There is no flag to skip the signature.",
		Before: "halo build --out out && halo release verify --key release.pub out", After: "halo build --key release.key --out out && halo release verify --key release.pub out",
	}
	CodeSignature = &diag.Code{
		ID: "HALO1905", Severity: diag.Error, Since: "0.1.0",
		Title: "signature does not verify",
		Text: "A signature file is damaged, is over other bytes, or was made by a key that was not given. Either the manifest was changed after signing or this is not " +
			"a release of the organization whose key was given.",
	}
	CodeManifest = &diag.Code{
		ID: "HALO1906", Severity: diag.Error, Since: "0.1.0",
		Title: "manifest is not valid",
		Text: "manifest.json is missing, has another schema version, is not in canonical form (RFC 8785), or lists unsafe, repeated or unsorted paths. A release " +
			"is never edited by hand: build it again.",
	}
	CodeExpired = &diag.Code{
		ID: "HALO1907", Severity: diag.Error, Since: "0.1.0",
		Title: "release has expired",
		Text:  "The release was valid until the time in its manifest. Build and sign a new one.",
	}
	CodeRollback = &diag.Code{
		ID: "HALO1908", Severity: diag.Error, Since: "0.1.0",
		Title: "release goes backwards",
		Text: "The state file says that a newer release, or another one with the same sequence, was accepted before, or that this verifier belongs to another " +
			"organization. To go back to an older policy, build it again with a higher sequence.",
		Before: "halo build --sequence 41", After: "halo build --sequence 43",
	}
	CodeFiles = &diag.Code{
		ID: "HALO1909", Severity: diag.Error, Since: "0.1.0",
		Title: "files differ from the manifest",
		Text: "A file is missing, changed, not listed, or a link where a file is wanted. The signature covers the manifest and the manifest covers every file, so the " +
			"release was changed after it was made, or copied in part. Links and extra files are refused too.",
	}
	CodeArchive = &diag.Code{
		ID: "HALO1930", Severity: diag.Error, Since: "0.1.0",
		Title: "not the archive of a release",
		Text: "The file is damaged, cut off, or was not made by halo release pack. A release has exactly one archive, so that every byte of it counts: a plain tar of regular files " +
			"in ustar form, manifest.json first and the others sorted, with mode 0644, owner 0 and time 0 in every header. Links, directories, devices, sparse files, other headers, " +
			"compression, unsafe or repeated paths, and anything after the end are refused.",
		Before: "tar cf release.tar -C release .", After: "halo release pack release --out release.tar",
	}
)

// Codes returns the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{
		CodeNoTime, CodeNoExpiry, CodeNotRelease, CodeUnsigned, CodeSignature, CodeManifest, CodeExpired, CodeRollback, CodeFiles, CodeArchive,
	}
}
