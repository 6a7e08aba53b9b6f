package device

import "halos.dev/halo/compiler/diag"

// The findings about devices.
var (
	CodeDest = &diag.Code{
		ID: "HALO2401", Severity: diag.Error, Since: "0.1.0",
		Title: "destination is not a managed directory",
		Text: "A file of the release would go outside the directories that its harness reads managed settings from, or its destination and its path in the release differ. " +
			"Nothing was written. Such a release was not made by halo build.",
	}
	CodeUnsafe = &diag.Code{
		ID: "HALO2402", Severity: diag.Error, Since: "0.1.0",
		Title: "path on the device is not safe",
		Text: "On the way to a destination there is a link, a file where a directory is wanted, or a directory that others than its owner may write to. Whoever can change " +
			"a directory can change what is in it, so nothing is written through it.",
		Before: "chmod 777 /etc", After: "chmod 755 /etc",
	}
	CodeForeign = &diag.Code{
		ID: "HALO2403", Severity: diag.Error, Since: "0.1.0",
		Title: "foreign file in the way",
		Text: "Something that halo did not install stands where a file of the release goes, for example a profile of another management tool. Remove it, or replace it with " +
			"--replace-existing.",
		Before: "halo install --release r --key k.pub --ring ga", After: "halo install --release r --key k.pub --ring ga --replace-existing",
	}
	CodeNoTarget = &diag.Code{
		ID: "HALO2404", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "release has no such target",
		Text: "The release has targets for each ring, each ring with each single unit, and the sets of units that halos.yaml declares. Other sets are not rendered: add the " +
			"set to combinations and build again.",
		Before: "org: acme", After: "org: acme\ncombinations: [[contractors, payments]]",
	}
	CodeState = &diag.Code{
		ID: "HALO2405", Severity: diag.Error, NoAnswer: true, Since: "0.1.0",
		Title: "install state is damaged",
		Text: "The record of what is installed cannot be read or is not one. It is never taken for an empty one, because that would allow an older release. Repair or remove " +
			"the state directory by hand and install again.",
	}
	CodeDrift = &diag.Code{
		ID: "HALO2410", Severity: diag.Error, Since: "0.1.0",
		Title: "managed file is not as installed",
		Text:  "A managed file is missing, has other content, another owner or mode, or is not a regular file. Install the release again, or let halo agent restore it.",
	}
	CodeShadow = &diag.Code{
		ID: "HALO2411", Severity: diag.Error, Since: "0.1.0",
		Title: "another source outranks the managed file",
		Text: "The harness reads another administrator's source that wins over the installed file or is merged with it: a preference of device management, a drop-in, a " +
			"second settings file. Deliver through one channel only and remove the other.",
	}
	CodeWeak = &diag.Code{
		ID: "HALO2412", Severity: diag.Warning, Since: "0.1.0",
		Title: "user setting weakens the policy",
		Text: "A file of a user has a setting that works against the managed one. It is reported and never rewritten. Some settings are held anyway; the line says from which " +
			"version of the harness on.",
	}
	CodeEnv = &diag.Code{
		ID: "HALO2413", Severity: diag.Warning, Since: "0.1.0",
		Title: "environment variable weakens the policy",
		Text:  "A variable that moves or overrides settings of a harness is set in the environment of halo, or in a file that sets it for a user or for all. Remove it there.",
	}
	CodeUnchecked = &diag.Code{
		ID: "HALO2414", Severity: diag.Warning, Since: "0.1.0",
		Title: "user configuration could not be checked",
		Text: "Where a file of a user is expected there is a link, a pipe, a device, a file larger than 1 MiB, one that is not text, or one that does not parse. halo runs as root " +
			"and follows nothing that a user controls, so what the harness makes of it is not known.",
	}
	CodeVersion = &diag.Code{
		ID: "HALO2415", Severity: diag.Warning, Since: "0.1.0",
		Title: "installed harness is too old for the policy",
		Text:  "The installed version of the harness does not know a setting of the managed file that the policy relies on. Update the harness.",
	}
	CodeNotInstalled = &diag.Code{
		ID: "HALO2416", Severity: diag.Error, Since: "0.1.0",
		Title: "nothing is installed",
		Text:  "There is no record of an installation on this device, so no managed file is known to be in place. Run halo install, or name the target with --release and --ring.",
	}
	CodeUnmanaged = &diag.Code{
		ID: "HALO2418", Severity: diag.Warning, Since: "0.1.0",
		Title:  "installed harness is not managed",
		Text:   "A program that halo can render for is installed, and the target of the device has no file for it, so it runs without policy. Enable it in the profile or remove it.",
		Before: "harnesses:\n  codex: {version: 0.171.0}", After: "harnesses:\n  codex: {version: 0.171.0}\n  gemini-cli: {version: 0.61.0}",
	}
	CodeExpired = &diag.Code{
		ID: "HALO2417", Severity: diag.Warning, Since: "0.1.0",
		Title: "installed release is out of date",
		Text:  "The installed release has expired, or the release given with --release is another one. The installed files stay in force; install a current release.",
	}
	CodeLeak = &diag.Code{
		ID: "HALO2419", Severity: diag.Warning, Since: "0.1.0",
		Title: "a probe got what the policy denies",
		Text: "halo doctor --probe ran the program, and a tool call read a canary below a protected path, or a command reached a denied host. Where that is a known limit of the " +
			"harness, the line says so; the coverage of the release names it too.",
	}
	CodeUnproven = &diag.Code{
		ID: "HALO2420", Severity: diag.Warning, Since: "0.1.0",
		Title: "a probe found nothing out",
		Text: "halo doctor --probe could not run the program, or not to its end, or not even a file that nothing protects could be read. That the canary was not read either " +
			"proves nothing then.",
	}
)

// Codes returns the codes of this package.
func Codes() []*diag.Code {
	return []*diag.Code{
		CodeDest, CodeUnsafe, CodeForeign, CodeNoTarget, CodeState, CodeDrift, CodeShadow, CodeWeak, CodeEnv, CodeUnchecked, CodeVersion, CodeNotInstalled, CodeExpired, CodeUnmanaged,
		CodeLeak, CodeUnproven,
	}
}
