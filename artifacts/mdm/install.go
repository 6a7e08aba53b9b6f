package mdm

import (
	"fmt"
	"slices"
	"strings"

	"halos.dev/halo/artifacts"
)

const installName = "install.json"

// document is install.json: everything another tool needs to deliver, check and remove the same files.
type document struct {
	SchemaVersion int             `json:"schemaVersion"`
	Format        string          `json:"format"`
	Release       release         `json:"release"`
	Target        target          `json:"target"`
	Files         []fileEntry     `json:"files"`
	Directories   []directory     `json:"directories"`
	Findings      []FindingRecord `json:"findings"`
}

type release struct {
	Org      string `json:"org"`
	Version  string `json:"version"`
	Sequence int64  `json:"sequence"`
	Digest   string `json:"digest"`
}

type target struct {
	ID      string   `json:"id"`
	Ring    string   `json:"ring"`
	Units   []string `json:"units"`
	Profile string   `json:"profile"`
	OS      string   `json:"os"`
}

type fileEntry struct {
	Harness string `json:"harness"`
	// Path is the place of the file on a device; where Channel is profile or registry, that of the file whose document goes there instead.
	Path    string  `json:"path"`
	Channel Channel `json:"channel"`
	// Source is the file of the export that carries it.
	Source    string    `json:"source"`
	Owner     string    `json:"owner,omitempty"`
	Mode      string    `json:"mode,omitempty"`
	SHA256    string    `json:"sha256"`
	Size      int       `json:"size"`
	Detection detection `json:"detection"`
	Removal   removal   `json:"removal"`
}

// detection says how to see that a device has it: by the digest of a file, or by values under a domain or key.
type detection struct {
	Kind    string   `json:"kind"`
	Path    string   `json:"path,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Domain  string   `json:"domain,omitempty"`
	Keys    []string `json:"keys,omitempty"`
	Command string   `json:"command,omitempty"`
}

// removal says how to take it away.
type removal struct {
	Kind    string `json:"kind"`
	Command string `json:"command,omitempty"`
	Profile string `json:"profile,omitempty"`
	Key     string `json:"key,omitempty"`
}

type directory struct {
	Path  string `json:"path"`
	Owner string `json:"owner"`
	Mode  string `json:"mode"`
}

// FindingRecord is a Finding as JSON has it.
type FindingRecord struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Harness  string `json:"harness,omitempty"`
	Message  string `json:"message"`
}

// Records returns findings as JSON has them.
func Records(findings []Finding) []FindingRecord {
	out := []FindingRecord{}
	for _, f := range findings {
		out = append(out, FindingRecord{f.Code.ID, f.Code.Severity.String(), f.Harness, f.Message})
	}
	return out
}

// writeFiles lays the plain files out below root/, as the release does.
func writeFiles(e *export) error {
	for _, it := range e.of(Copy) {
		it.Source = artifacts.RootPath(it.Dest)
		e.Files[it.Source] = it.data
	}
	return nil
}

func (e *export) install() {
	units := e.Target.Units
	if units == nil {
		units = []string{}
	}
	doc := document{
		SchemaVersion: 1, Format: e.format.Name,
		Release: release{e.manifest.Org, e.manifest.Version, e.manifest.Sequence, e.digest},
		Target:  target{e.Target.ID, e.Target.Ring, units, e.Target.Profile, e.Target.OS},
		Files:   []fileEntry{}, Directories: []directory{}, Findings: Records(e.Findings),
	}
	var onDisk []*Item
	for i := range e.Items {
		it := &e.Items[i]
		f := fileEntry{Harness: it.Harness, Path: it.Dest, Channel: it.Channel, Source: it.Source, SHA256: it.SHA256, Size: len(it.data)}
		switch it.Channel {
		case Profile, Registry:
			var keys []string
			for _, v := range it.values {
				keys = append(keys, v.key)
			}
			f.Detection = detection{Kind: map[Channel]string{Profile: "preferences", Registry: "registry"}[it.Channel], Domain: it.Domain, Keys: keys}
			f.Removal = removal{Kind: string(it.Channel)}
			if it.Channel == Profile {
				f.Removal.Profile = e.identifier()
			} else {
				f.Removal.Key = `HKEY_LOCAL_MACHINE\` + it.Domain
			}
		default:
			onDisk = append(onDisk, it)
			f.Owner, f.Mode = it.Owner, it.Mode
			f.Detection = detection{Kind: "sha256", Path: it.Dest, SHA256: it.SHA256, Command: detectCommand(e.Target.OS, it)}
			f.Removal = removal{Kind: "delete", Command: removeCommand(e.Target.OS, it)}
		}
		doc.Files = append(doc.Files, f)
	}
	for _, d := range ownDirs(onDisk) {
		doc.Directories = append(doc.Directories, directory{d, owners[e.Target.OS], "0755"})
	}
	e.Files[installName] = indented(doc)
}

// detectCommand exits with 0 when the file is what it must be.
func detectCommand(os string, it *Item) string {
	switch os {
	case "windows":
		return fmt.Sprintf("if ((Get-FileHash -Algorithm SHA256 -LiteralPath %s).Hash -eq '%s') { exit 0 } else { exit 1 }", psQuote(it.Dest), it.SHA256)
	case "darwin":
		return fmt.Sprintf(`[ "$(shasum -a 256 <%s | cut -c 1-64)" = %s ]`, shQuote(it.Dest), it.SHA256)
	}
	return fmt.Sprintf(`[ "$(sha256sum <%s | cut -c 1-64)" = %s ]`, shQuote(it.Dest), it.SHA256)
}

func removeCommand(os string, it *Item) string {
	if os == "windows" {
		return "Remove-Item -Force -LiteralPath " + psQuote(it.Dest)
	}
	return "rm -f -- " + shQuote(it.Dest)
}

// readme is README.md: what goes where, how to hand it over, and how to remove it.
func (e *export) readme() {
	var b strings.Builder
	fmt.Fprintf(&b, "# halo policy %s for %s\n\n%s.\n\n", e.Target.ID, e.Target.OS, strings.ToUpper(e.format.Name[:1])+e.format.Name[1:]+" export of "+e.release())
	b.WriteString("Made by `halo mdm export` from a verified release. Do not edit these files: change the policy and export again.\n\n")
	b.WriteString("## What goes over which channel\n\n| harness | document | channel | carried by |\n| --- | --- | --- | --- |\n")
	for _, it := range e.Items {
		channel := string(it.Channel)
		if it.Domain != "" {
			channel += " `" + it.Domain + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | `%s` |\n", it.Harness, it.Dest, channel, it.Source)
	}
	b.WriteString("\nEach document has one channel. Use one export per device, and do not combine it with the export of another format, with `halo install` or with a\n" +
		"profile or file of the same harness that is made by hand: the stronger source would shadow the other, in whole or in part, without a word.\n\n")
	b.WriteString("## How to deliver\n\n" + e.steps() + "\n## How to remove\n\n" + e.undo())
	if len(e.Findings) > 0 {
		b.WriteString("\n## What to know\n\n")
		for _, f := range e.Findings {
			fmt.Fprintf(&b, "- %s %s: %s.\n", f.Code.ID, f.Code.Severity, f.Message)
		}
	}
	b.WriteString("\nWhat the harnesses themselves cannot hold is in COVERAGE.md of the release. `install.json` has every document with its digest, mode, owner, detection and\n" +
		"removal, for other tools. `SHA256SUMS` lists the files of the export: `sha256sum -c SHA256SUMS`.\n")
	e.Files["README.md"] = []byte(b.String())
}

// carrierOf returns the first file of the export that carries a channel, or "".
func (e *export) carrierOf(c Channel) string {
	if items := e.of(c); len(items) > 0 {
		return items[0].Source
	}
	return ""
}

func (e *export) steps() string {
	profile, script := e.carrierOf(Profile), e.carrierOf(Script)
	var b strings.Builder
	step := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch e.format.Name {
	case "jamf":
		if profile != "" {
			step("1. Upload `%s` as a configuration profile, level Computer, and scope it to the devices of this target. Or enter each file of `plists/` under", profile)
			step("   Application & Custom Settings with its name as the preference domain. One of the two, never both.")
		}
		step("2. Add `scripts/install.sh` to a policy that runs at recurring check-in on the same devices, also where no file goes by script: it removes files that would mix")
		step("   with the profile.")
		step("3. Add `scripts/audit.sh` as an extension attribute: it prints `<result>ok</result>` or what is wrong.")
	case "kandji":
		step("1. Copy `profiles/` and `scripts/` into an iructl repository and push it. For a later release copy the")
		step("   profile and the scripts again and keep the `info.yaml` that iructl has written back.")
		step("2. Assign the profile and the script to the same devices. The remediation runs when the audit exits with 1.")
	case "intune":
		if e.carrierOf(Registry) != "" {
			step("1. Registry: make a custom configuration profile with the rows of `registry/oma-uri.json`, in their order, and assign it to the devices of this target. Or import")
			step("   `registry/halo.admx` with `registry/en-US/halo.adml` and fill in the same values. One of the two. Not run on Windows by us; look at one device first.")
		}
		if script != "" {
			step("2. Files: make a remediation of `remediation/detect.ps1` and `remediation/remediate.ps1`: not with the credentials of the user, in 64-bit PowerShell. Without")
			step("   licences for remediations make a Win32 app of `win32/install.ps1` and `win32/uninstall.ps1` with `win32/detect.ps1` as its detection script. One of the two.")
		}
	case "deb":
		step("    apt install ./%s", e.carrierOf(Package))
		step("\nThe package replaces any file at its places, and conflicts with the package of any other target. Its version begins with the sequence of the release. dpkg")
		step("restores nothing by itself: `dpkg --verify %s` shows drift.", e.packageName())
	case "rpm":
		step("    dnf install ./%s", e.carrierOf(Package))
		step("\nThe package replaces any file at its places, and conflicts with the package of any other target. Its version begins with the sequence of the release. It is not")
		step("signed; `rpmsign --addsign` does that. rpm restores nothing by itself: `rpm --verify %s` shows drift.", e.packageName())
	case "ansible":
		step("Copy `roles/halo_policy` into your roles, or run it from here:\n\n    ansible-playbook -i INVENTORY site.yml\n")
		step("The role keeps a file that it did not write as a backup beside its place, and removes what an older release left.")
	case "files":
		step("Copy every file of `root/` to its place with the owner and mode that `install.json` says, as the administrator. Windows places have the drive as a folder.")
	}
	return b.String()
}

func (e *export) undo() string {
	var b strings.Builder
	step := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	switch e.format.Name {
	case "jamf", "kandji":
		if e.carrierOf(Profile) != "" {
			step("Unassign the profile `%s`; macOS takes the settings away with it.", e.identifier())
		}
		if e.format.Name == "jamf" {
			step("Stop the install policy first, then run `scripts/remove.sh` once on each device.")
		} else {
			step("Unassign the script first, then run `remove.sh` once on each device.")
		}
	case "intune":
		if e.carrierOf(Registry) != "" {
			step("Unassign the custom configuration profile; Windows takes the values away with it.")
		}
		if e.carrierOf(Script) != "" {
			step("Unassign the remediation first, then run `win32/uninstall.ps1` once on each device as a platform script; a Win32 app does it when it is unassigned as uninstall.")
		}
	case "deb":
		step("    apt purge %s", e.packageName())
	case "rpm":
		step("    dnf remove %s", e.packageName())
	case "ansible":
		step("    ansible-playbook -i INVENTORY site.yml -e halo_policy_remove=true\n")
		step("Directories stay.")
	case "files":
		step("Run the removal command of each file in `install.json`.")
	}
	if slices.Contains([]string{"jamf", "kandji", "intune"}, e.format.Name) {
		step("Files that were kept as `NAME.before-halo` stay where they are.")
	}
	return b.String()
}
