// Package mdm turns one target of a verified release into what a device management system takes: configuration profiles, scripts, packages, a role.
//
// Every file of the target goes over exactly one channel. A settings document goes into a configuration profile (macOS) or the registry (Windows) where the
// harness reads it there and nothing of it would be lost; everything else is a file that a script, a package or a role puts in its place. What a channel cannot
// carry is named in the findings, in install.json and in README.md. The result depends on the release and the options alone.
package mdm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
)

// Format is one way to deliver.
type Format struct {
	// Name is the word of --for.
	Name string
	// OSes are the systems it serves, in the order of a release.
	OSes []string
	// native has the harness documents that the format carries in another form than a file.
	native []native
	// carrier is the channel of everything else.
	carrier Channel
	write   func(*export) error
}

// Channel is how a file of the release reaches its harness.
type Channel string

// The channels.
const (
	// Profile is a forced preference domain in a macOS configuration profile.
	Profile Channel = "profile"
	// Registry is the harness's policy key in HKEY_LOCAL_MACHINE, set by an ADMX policy.
	Registry Channel = "registry"
	// Script is a file that a script writes.
	Script Channel = "script"
	// Package is a file of a .deb or .rpm.
	Package Channel = "package"
	// Role is a file that an Ansible role copies.
	Role Channel = "role"
	// Copy is a plain file; the administrator's own tool puts it in place.
	Copy Channel = "files"
)

// Formats returns the formats, sorted by name.
func Formats() []Format {
	posix := []string{"darwin", "linux"}
	return []Format{
		{"ansible", posix, nil, Role, writeAnsible},
		{"deb", posix[1:], nil, Package, writeDeb},
		{"files", []string{"darwin", "linux", "windows"}, nil, Copy, writeFiles},
		{"intune", []string{"windows"}, registry, Script, writeIntune},
		{"jamf", posix[:1], domains, Script, writeJamf},
		{"kandji", posix[:1], domains, Script, writeKandji},
		{"rpm", posix[1:], nil, Package, writeRPM},
	}
}

// Finding is something about an export that its reader must know.
type Finding struct {
	Code    *diag.Code
	Harness string
	Message string
}

// Export is one target in the form of one system.
type Export struct {
	Target artifacts.Target
	// Files are the files to hand over, by path with "/".
	Files map[string][]byte
	// Items are the files of the target, each with its channel, in the order of the manifest.
	Items    []Item
	Findings []Finding
}

// Item is one file of the target and how it is delivered.
type Item struct {
	Harness string
	Dest    string
	// Mode is the permission bits as in 0644, Owner the user and group.
	Mode, Owner string
	SHA256      string
	Channel     Channel
	// Domain is the preference domain or the registry key of a document that is not a file on the device.
	Domain string
	// Source is the file of the export that carries it.
	Source string

	data []byte
	// values are the keys and values under Domain.
	values []value
	// reason says why a document that the format could carry in another form is a file.
	reason string
}

// export is an Export in the making.
type export struct {
	*Export
	format   *Format
	manifest *artifacts.Manifest
	digest   string
	// slug names the target in file names, package names and identifiers.
	slug string
}

// Make exports one target of a verified release. The error is an *artifacts.VerifyError when the release changed since it was verified or contradicts itself, and
// an *EmptyError when there is nothing to deliver.
func Make(v *artifacts.Verified, format Format, t artifacts.Target) (*Export, error) {
	e := &export{&Export{Target: t, Files: map[string][]byte{}}, &format, v.Manifest, v.Digest, slug(t.ID)}
	versions, err := pins(v, t.Ring)
	if err != nil {
		return nil, err
	}
	if err := consistent(&t); err != nil {
		return nil, &artifacts.VerifyError{Code: CodeContradiction, Problems: []artifacts.Problem{{Path: artifacts.ManifestName, Message: err.Error()}}}
	}
	for _, f := range t.Files {
		data, err := v.ReadFile(f.Path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		it := Item{Harness: f.Harness, Dest: f.Dest, Mode: f.Mode, Owner: f.Owner, SHA256: hex.EncodeToString(sum[:]), Channel: format.carrier, data: data}
		e.choose(&it, versions[f.Harness])
		e.Items = append(e.Items, it)
	}
	if len(e.Items) == 0 {
		return nil, &EmptyError{t.ID, t.OS}
	}
	e.silent()
	if err := format.write(e); err != nil {
		return nil, err
	}
	e.install()
	e.readme()
	return e.Export, nil
}

// EmptyError says that a target has no file at all, so that there is nothing to export.
type EmptyError struct{ Target, OS string }

func (e *EmptyError) Error() string {
	return fmt.Sprintf("target %s has no file for %s: its harnesses hold nothing of the policy there", e.Target, e.OS)
}

// choose finds the channel of an item.
func (e *export) choose(it *Item, version harness.Version) {
	for _, n := range e.format.native {
		if n.harness != it.Harness || n.dest != it.Dest {
			continue
		}
		values, err := n.convert(it.data, version)
		if err != nil {
			it.reason = err.Error()
			e.find(CodeKeptAsFile, it.Harness, "%s is delivered as a file, not under %s: %v", it.Dest, n.domain, err)
			return
		}
		it.Channel, it.Domain, it.values = n.channel, n.domain, values
		if n.note != "" {
			e.find(CodeStronger, it.Harness, "%s: %s", it.Dest, n.note)
		}
		return
	}
	if e.format.native != nil {
		e.find(CodeByScript, it.Harness, "%s has no other form in this system than the file, so a script writes it", it.Dest)
	}
}

func (e *export) find(code *diag.Code, id, format string, args ...any) {
	e.Findings = append(e.Findings, Finding{code, id, fmt.Sprintf(format, args...)})
}

// silent names what the release knows of and no channel carries: harnesses without a file, and sandboxes.
func (e *export) silent() {
	has := map[string]bool{}
	for _, it := range e.Items {
		has[it.Harness] = true
	}
	var none []string
	for _, w := range e.manifest.Warnings {
		// The warnings of a ring are not repeated for its units.
		if (w.Target == e.Target.ID || w.Target == e.Target.Ring) && w.OS == e.Target.OS && w.Harness != "" && !has[w.Harness] && !slices.Contains(none, w.Harness) {
			none = append(none, w.Harness)
		}
	}
	slices.Sort(none)
	for _, id := range none {
		e.find(CodeNoFile, id, "the release has no file for %s on %s, so nothing is delivered; COVERAGE.md of the release says why", id, e.Target.OS)
	}
	for _, s := range e.manifest.Sandboxes {
		if s.Target == e.Target.ID {
			e.find(CodeSandbox, "", "the files of sandbox %s are not delivered: they belong to the host of the sandbox; take them from the release", s.Name)
		}
	}
	e.Findings = slices.Compact(e.Findings)
}

// of returns the items of a channel.
func (e *export) of(c Channel) []*Item {
	var out []*Item
	for i := range e.Items {
		if e.Items[i].Channel == c {
			out = append(out, &e.Items[i])
		}
	}
	return out
}

// pins reads the pinned version of each harness in a ring from the coverage table of the release. A harness that is not in it has the zero version, which is older
// than any.
func pins(v *artifacts.Verified, ring string) (map[string]harness.Version, error) {
	const name = "coverage.json"
	out := map[string]harness.Version{}
	if _, ok := v.Manifest.File(name); !ok {
		return out, nil
	}
	data, err := v.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Rings []struct {
			Ring      string `json:"ring"`
			Harnesses []struct {
				Harness string `json:"harness"`
				Version string `json:"version"`
			} `json:"harnesses"`
		} `json:"rings"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, r := range doc.Rings {
		for _, h := range r.Harnesses {
			if version, ok := harness.ParseVersion(h.Version); ok && r.Ring == ring {
				out[h.Harness] = version
			}
		}
	}
	return out, nil
}

// consistent checks what scripts and packages rely on beyond what a manifest promises (absolute places that are safe paths): plain names, one file for each place, and
// an owner that is the administrator of the system.
func consistent(t *artifacts.Target) error {
	names := []string{t.Ring}
	if id := strings.Join(append(names, t.Units...), "+"); id != t.ID {
		return fmt.Errorf("target %q is of ring %q and units %q", t.ID, t.Ring, t.Units)
	}
	for _, n := range append(names, t.Units...) {
		if !plainName(n) {
			return fmt.Errorf("target %q: %q is not a name", t.ID, n)
		}
	}
	seen := map[string]bool{}
	for _, f := range t.Files {
		// Windows and macOS do not tell upper from lower case; two files for one place would take turns.
		if key := strings.ToLower(f.Dest); seen[key] {
			return fmt.Errorf("target %q: two files for %s", t.ID, f.Dest)
		} else {
			seen[key] = true
		}
		if want := owners[t.OS]; f.Owner != want {
			return fmt.Errorf("target %q: %s belongs to %q; only %s can be set", t.ID, f.Dest, f.Owner, want)
		}
	}
	return nil
}

// owners are the owners of managed files, which on POSIX systems is user 0 and group 0 under the names of the system.
var owners = map[string]string{"darwin": "root:wheel", "linux": "root:root", "windows": "SYSTEM"}

// plainName reports whether s is a name as policies have it: a-z, 0-9, dot, underscore and hyphen.
func plainName(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" && !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, ".")
}

// maxSlug keeps file names within the 255 bytes of common file systems with room for versions and suffixes.
const maxSlug = 120

// slug returns a name of a-z, 0-9, dot, plus and hyphen that begins with a letter or digit, as package names want it. It is s itself where that is such a name;
// otherwise a piece of the digest of s keeps different names different.
func slug(s string) string {
	b := []byte(s)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', i > 0 && (c == '.' || c == '+' || c == '-'):
		default:
			b[i] = '-'
		}
	}
	out := strings.TrimLeft(string(b[:min(len(b), maxSlug)]), "-")
	if out == s {
		return out
	}
	sum := sha256.Sum256([]byte(s))
	return strings.Trim(out, "-") + "-" + hex.EncodeToString(sum[:4])
}

// sharedDirs are the directories of the systems that are not a harness's own: no owner or mode is set there and none is removed.
var sharedDirs = []string{"/", "/etc", "/Library", "/Library/Application Support", "/opt", "/usr", "/var", `C:\`, `C:\Program Files`, `C:\ProgramData`}

// ownDirs returns the directories of files that only a harness uses, parents first.
func ownDirs(items []*Item) []string {
	var out []string
	for _, it := range items {
		sep := "/"
		if it.Dest[0] != '/' {
			sep = `\`
		}
		for dir := parent(it.Dest, sep); !slices.Contains(sharedDirs, dir) && !slices.Contains(out, dir); dir = parent(dir, sep) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// parent is the directory of an absolute path.
func parent(path, sep string) string {
	i := strings.LastIndex(path, sep)
	switch {
	case i == 0:
		return sep
	case i == 2 && path[1] == ':':
		return path[:3]
	}
	return path[:i]
}

// release describes the release in one line of printable ASCII, for comments and descriptions.
func (e *export) release() string {
	return fmt.Sprintf("%s, release %s, sequence %d, %s", printable(e.manifest.Org), printable(e.manifest.Version), e.manifest.Sequence, e.digest)
}

// printable replaces what is not printable ASCII, so that a text cannot leave the comment it stands in.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// packageVersion orders as the sequence does, which is what makes a release newer; the version of the release follows for people.
func (e *export) packageVersion() string {
	version := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r == '.', r == '+':
			return r
		case r == '-':
			return '~' // a pre-release sorts before its release
		}
		return '.'
	}, e.manifest.Version)
	return fmt.Sprintf("%d+%s", e.manifest.Sequence, cmp.Or(version, "0"))
}

// issued is the only time in an export.
func (e *export) issued() time.Time { return e.manifest.Issued.UTC() }

// SumsName lists the files of an export with their digests.
const SumsName = artifacts.SumsName

// Sums returns SHA256SUMS for the files of an export.
func Sums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[p]), p)
	}
	return b.Bytes()
}

// Ours says why a directory that is not empty must not be replaced by an export, or "" when it is an export in which nothing was changed or added.
func Ours(fsys fs.FS) (reason string, err error) {
	const limit = 64 << 20
	read := func(path string) ([]byte, string) {
		f, err := fsys.Open(path)
		if err != nil {
			return nil, fmt.Sprintf("%s cannot be read", path)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
			return nil, fmt.Sprintf("%s is not a file of an export", path)
		}
		var b bytes.Buffer
		if _, err := b.ReadFrom(f); err != nil {
			return nil, fmt.Sprintf("%s cannot be read", path)
		}
		return b.Bytes(), ""
	}
	sums, bad := read(SumsName)
	if bad != "" {
		return "not empty and not an export of halo (no " + SumsName + ")", nil
	}
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		if sum, path, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  "); ok {
			want[path] = sum
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(p string) bool { return p == installName || strings.HasSuffix(p, "/"+installName) }) {
		return "not empty and not an export of halo (" + SumsName + " lists no " + installName + ")", nil
	}
	err = fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == SumsName {
			return err
		}
		if want[path] == "" {
			reason = path + " is not of this export, and nothing that halo did not write is removed; move it away or choose another directory"
			return fs.SkipAll
		}
		data, bad := read(path)
		if sum := sha256.Sum256(data); bad != "" || hex.EncodeToString(sum[:]) != want[path] {
			reason = path + " was changed, and nothing that halo did not write is removed; move it away or choose another directory"
			return fs.SkipAll
		}
		return nil
	})
	return reason, err
}
