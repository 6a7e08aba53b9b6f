package device

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/device/probe"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
	"halos.dev/halo/compiler/policy"
)

// Status is the outcome of one check.
type Status string

// The outcomes. Fail and warn make the answer no; info is worth knowing and changes nothing.
const (
	OK   Status = "ok"
	Info Status = "info"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is one line of the report.
type Check struct {
	Status Status `json:"status"`
	// Name is the part that was checked: release, or files, sources or posture of a harness (posture/codex).
	Name    string `json:"name"`
	Harness string `json:"harness,omitempty"`
	Code    string `json:"code,omitempty"`
	// Path is the file or directory, as the device names it; Text the finding, which never has content of a user's file.
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
}

// Level says how far it is known that a harness is held.
type Level string

// The levels, each includes the ones before: the files are in place; no other source that can be seen outranks them; the program was run and held.
const (
	NotPresent Level = "none"
	Present    Level = "present"
	Selected   Level = "selected"
	Proven     Level = "proven"
)

// Posture is what is known of one harness.
type Posture struct {
	Harness string `json:"harness"`
	// Version is the installed version, "" when the program was not found.
	Version string `json:"version,omitempty"`
	Level   Level  `json:"level"`
	// Sandbox and Egress say what the managed files ask for and how far the harness holds it.
	Sandbox string `json:"sandbox"`
	Egress  string `json:"egress"`
	// Weaker are the concepts that users can undo even so.
	Weaker []string `json:"overridable,omitempty"`
	// Probe is what running it showed, nil without a probe.
	Probe *Probe `json:"probe,omitempty"`
}

// Report is the answer of Doctor.
type Report struct {
	// OK reports that nothing drifted and nothing weakens the policy.
	OK        bool      `json:"ok"`
	Org       string    `json:"org,omitempty"`
	Version   string    `json:"version,omitempty"`
	Sequence  int64     `json:"sequence"`
	Digest    string    `json:"digest,omitempty"`
	Target    string    `json:"target,omitempty"`
	OS        string    `json:"os"`
	Harnesses []Posture `json:"harnesses"`
	Checks    []Check   `json:"checks"`
	// Drift has one text for everything that makes the answer no: "file:DEST: problem; fix: …", "posture:HARNESS: problem; fix: …".
	Drift []string `json:"drift"`
}

// DoctorOptions say what to examine.
type DoctorOptions struct {
	// Release is a verified release to compare with, or nil; Ring and Units name its target when nothing is installed.
	Release *artifacts.Verified
	Ring    string
	Units   []string
	// Homes are the home directories to look into; nil means every one that the device has.
	Homes []Home
	// Environ is the environment of the process, NAME=value.
	Environ []string
	// Now judges expiry.
	Now time.Time
	// Probe runs a harness and says what it held; nil runs none. Token makes what one probe leaves in a room unlike any other: letters and digits.
	Probe func(probe.Plan) probe.Finding
	Token string
}

// doctor collects a report.
type doctor struct {
	Report
	o        DoctorOptions
	t        *tree
	expected *Record
	managed  map[string]*managed
	// drifted are harnesses whose files are not in place, shadowed those with a stronger source.
	drifted, shadowed map[string]bool
}

// Doctor examines a device: the managed files, what could outrank them, and user settings that weaken them. It changes nothing, and runs nothing
// without a Probe. An error means that there is no answer.
func (d Device) Doctor(o DoctorOptions) (*Report, error) {
	t, err := d.open(false)
	if err != nil {
		return nil, err
	}
	defer t.close()
	x := &doctor{o: o, t: t, managed: map[string]*managed{}, drifted: map[string]bool{}, shadowed: map[string]bool{}}
	x.OS = d.OS
	if err := x.expect(); err != nil {
		return nil, err
	}
	if x.o.Homes == nil {
		x.o.Homes = x.homes()
	}
	x.files()
	versions, programs := x.versions()
	x.load(versions)
	x.sources()
	x.posture(versions)
	if x.o.Probe != nil {
		x.prove(programs)
	}
	x.users()
	x.environment()
	x.conclude()
	return &x.Report, nil
}

func (x *doctor) add(s Status, name, id string, code *diag.Code, path, text, fix string) {
	c := Check{Status: s, Name: name, Harness: id, Path: path, Text: text, Fix: fix}
	if code != nil {
		c.Code = code.ID
	}
	if id != "" {
		c.Name += "/" + id
	}
	x.Checks = append(x.Checks, c)
	if s != Warn && s != Fail {
		return
	}
	drift := c.Name + ": " + text
	switch {
	case name == "posture":
		drift = "posture:" + id + ": " + text
	case name == "files" && path != "":
		drift = "file:" + text
	}
	if fix != "" {
		drift += "; fix: " + fix
	}
	x.Drift = append(x.Drift, drift)
}

// expect finds out what should be on the device.
func (x *doctor) expect() error {
	installed, err := x.t.record()
	if err != nil {
		return err
	}
	x.expected = installed
	if r := x.o.Release; r != nil {
		ring, units := x.o.Ring, x.o.Units
		if ring == "" && installed != nil {
			ring, units = installed.Ring, installed.Units
		}
		if ring != "" && (installed == nil || installed.Digest == r.Digest) {
			target, err := Select(r.Manifest, ring, units, x.OS)
			if err != nil {
				return err
			}
			files, _, err := x.t.device.contents(r, target)
			if err != nil {
				return err
			}
			if x.expected, err = x.t.device.next(InstallOptions{Release: r}, target, files); err != nil {
				return err
			}
			if installed != nil && installed.Target == x.expected.Target {
				// Who installed it decides whether owners could be set.
				x.expected.Files = owners(x.expected.Files, installed.Files)
				x.expected.Stale = installed.Stale
			}
		}
	}
	e := x.expected
	if e == nil {
		x.add(Fail, "release", "", CodeNotInstalled, "", "nothing is installed below "+x.t.device.Root, "run halo install, or name the target with --release and --ring")
		return nil
	}
	x.Org, x.Version, x.Sequence, x.Digest, x.Target = e.Org, e.Version, e.Sequence, e.Digest, e.Target
	text := fmt.Sprintf("%s version %s, sequence %d, target %s", e.Org, e.Version, e.Sequence, e.Target)
	switch {
	case installed == nil:
		x.add(Info, "release", "", CodeNotInstalled, "", text+"; not installed by halo", "")
	case x.o.Release != nil && x.o.Release.Digest != installed.Digest:
		m := x.o.Release.Manifest
		fix := "install it: halo install"
		if m.Sequence <= installed.Sequence {
			fix = "compare with the release that the device should have; it goes only forward"
		}
		x.add(Warn, "release", "", CodeExpired, "", fmt.Sprintf("%s is installed; the release given is version %s, sequence %d", text, m.Version, m.Sequence), fix)
	case !e.Expires.IsZero() && !x.o.Now.Before(e.Expires):
		x.add(Warn, "release", "", CodeExpired, "", text+", expired at "+e.Expires.Format(time.RFC3339), "install a current release")
	default:
		x.add(OK, "release", "", nil, "", text, "")
	}
	return nil
}

// owners takes over whether the owner of a file was set.
func owners(files, installed []Installed) []Installed {
	for i, f := range files {
		for _, in := range installed {
			if in.Dest == f.Dest {
				files[i].Owner = in.Owner
			}
		}
	}
	return files
}

// harnesses lists the harnesses that have managed files, sorted.
func (x *doctor) harnesses() []string {
	var out []string
	if x.expected != nil {
		for _, f := range x.expected.Files {
			out = append(out, f.Harness)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const repair = "install the release again, or run halo agent"

func (x *doctor) files() {
	if x.expected == nil {
		return
	}
	found, unreadable := x.t.drifts(x.expected)
	for _, id := range x.harnesses() {
		n := 0
		for _, f := range x.expected.Files {
			if f.Harness != id {
				continue
			}
			n++
			if err := unreadable[f.Dest]; err != nil {
				x.drifted[id] = true
				x.add(Warn, "files", id, CodeUnchecked, f.Dest, fmt.Sprintf("could not be checked: %v", err), "run halo doctor as root")
			}
		}
		for _, dr := range found {
			if dr.Harness == id {
				x.drifted[id] = true
				x.add(Fail, "files", id, CodeDrift, dr.Dest, dr.Dest+": "+dr.Message, repair)
			}
		}
		if !x.drifted[id] {
			text := "present: 1 file"
			if n != 1 {
				text = fmt.Sprintf("present: %d files", n)
			}
			x.add(OK, "files", id, nil, "", text+" with owner, mode and digest of the release", "")
		}
	}
	for _, dr := range found {
		if dr.Harness == "" {
			x.add(Fail, "files", "", CodeDrift, dr.Dest, dr.Dest+": "+dr.Message, repair)
		}
	}
}

// load parses what the managed files should say.
func (x *doctor) load(versions map[string]string) {
	for _, id := range x.harnesses() {
		m := &managed{docs: map[string]map[string]any{}}
		m.version, m.known = harness.ParseVersion(versions[id])
		x.managed[id] = m
	}
	if x.expected == nil {
		return
	}
	for _, f := range x.expected.Files {
		data, err := x.content(f)
		if err != nil {
			continue // its absence was reported
		}
		name := path.Base(strings.ReplaceAll(f.Dest, `\`, "/"))
		if doc, err := parse(name, data); err == nil {
			x.managed[f.Harness].docs[name] = doc
		}
	}
}

// content returns the bytes of a managed file as they should be.
func (x *doctor) content(f Installed) ([]byte, error) {
	if r := x.o.Release; r != nil && r.Digest == x.expected.Digest {
		return r.ReadFile("targets/" + x.expected.Target + "/" + x.OS + "/" + f.Harness + "/" + artifacts.RootPath(f.Dest))
	}
	data, _, err := x.t.read(x.t.device.cached(f.SHA256), fileLimit)
	if err != nil || digest(data) != f.SHA256 {
		data, _, err = x.t.read(f.Dest, fileLimit)
	}
	return data, err
}

// posture says for every harness what the managed files ask for and how far the installed version holds it.
func (x *doctor) posture(versions map[string]string) {
	ids := x.harnesses()
	for id := range versions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	x.Harnesses = []Posture{}
	for _, id := range slices.Compact(ids) {
		h := x.t.device.harness(id)
		p := Posture{Harness: id, Version: versions[id], Level: NotPresent, Sandbox: "not managed", Egress: "not managed"}
		m := x.managed[id]
		if m == nil {
			x.unmanaged(h, p.Version)
			x.Harnesses = append(x.Harnesses, p)
			continue
		}
		if !x.drifted[id] {
			p.Level = Present
			if !x.shadowed[id] {
				p.Level = Selected
			}
		}
		v := h.Known
		if m.known {
			v = m.version
		}
		rows := [...]harness.Capability{h.Capability(harness.Sandbox, x.OS, v), h.Capability(harness.Egress, x.OS, v)}
		p.Sandbox, p.Egress = sandboxText(id, m, rows[0]), x.egressText(rows[1])
		text := "sandbox: " + p.Sandbox + "; egress: " + p.Egress
		for _, row := range rows {
			if row.Grade == harness.Overridable || row.Grade == harness.Default {
				p.Weaker = append(p.Weaker, string(row.Concept))
			}
		}
		if len(p.Weaker) > 0 {
			text += "; users can undo: " + strings.Join(p.Weaker, ", ")
		}
		if p.Version != "" {
			text += "; installed " + p.Version
			if m.known && h.Known.Less(m.version) {
				text += ", newer than " + h.Known.String() + ", which was checked"
			}
		}
		x.add(OK, "posture", id, nil, "", text, "")
		if m.known {
			x.aged(h, m.version)
		}
		x.Harnesses = append(x.Harnesses, p)
	}
}

// unmanaged reports a harness that is installed and has no managed file.
func (x *doctor) unmanaged(h *harness.Harness, version string) {
	if len(h.Dirs) == 0 {
		x.add(Info, "posture", h.ID, nil, "", "installed "+version+"; no file of an administrator holds it, set its policy in the vendor's dashboard", "")
		return
	}
	if x.expected != nil {
		x.add(Warn, "posture", h.ID, CodeUnmanaged, "", "installed "+version+" and not managed: the target has no file for it", "enable it in the profile, or remove the program")
	}
}

// aged compares what the installed version holds with what the newest known one does.
func (x *doctor) aged(h *harness.Harness, v harness.Version) {
	if v.Less(h.Oldest) {
		x.add(Warn, "posture", h.ID, CodeVersion, "", fmt.Sprintf("installed %s is older than %s, the oldest that reads the managed files as they are", v, h.Oldest), "update to "+h.Oldest.String()+" or newer")
		return
	}
	for _, c := range []harness.Concept{harness.Sandbox, harness.Egress} {
		now, best := h.Capability(c, x.OS, v), h.Capability(c, x.OS, h.Known)
		if v.Less(h.Known) && now.Grade < best.Grade {
			x.add(Warn, "posture", h.ID, CodeVersion, "", fmt.Sprintf("installed %s holds %s less (%s) than the policy relies on (%s): %s", v, c, now.Grade, best.Grade, now.Limit),
				"update to "+since(h, c, x.OS, best.Grade).String()+" or newer")
		}
	}
}

// since is the first version that holds a concept as far as grade.
func since(h *harness.Harness, c harness.Concept, os string, grade harness.Grade) harness.Version {
	first := h.Known
	for _, row := range h.Capabilities {
		for _, bound := range []string{row.Since, row.Until} {
			if v, ok := harness.ParseVersion(bound); ok && row.Concept == c && v.Less(first) && h.Capability(c, os, v).Grade >= grade {
				first = v
			}
		}
	}
	return first
}

// sandboxText says which sandbox the managed files ask for.
func sandboxText(id string, m *managed, row harness.Capability) string {
	on := ""
	switch id {
	case policy.ClaudeCode, policy.CopilotCLI:
		if m.at(managedSettings, "sandbox", "enabled") == true {
			on = "on"
		}
	case policy.GeminiCLI:
		if m.at(geminiFile, "security", "toolSandboxing") == true {
			on = "on"
		}
	case policy.Codex:
		if list, ok := m.at(codexFile, "allowed_sandbox_modes").([]any); ok && !slices.Contains(list, any("danger-full-access")) {
			var modes []string
			for _, v := range list {
				if s, ok := v.(string); ok {
					modes = append(modes, s)
				}
			}
			on = "modes [" + strings.Join(modes, ", ") + "]"
		} else if profile, ok := m.at(codexFile, "default_permissions").(string); ok {
			on = "profile " + profile
		}
	}
	switch {
	case on != "":
		return on + " (managed)"
	case row.Grade == harness.None:
		return "none (" + id + " has no managed one)"
	}
	return "off"
}

func (x *doctor) egressText(row harness.Capability) string {
	e := x.expected
	if row.Grade == harness.None {
		return "not held by any file of it"
	}
	return fmt.Sprintf("default %s, %d allowed, %d denied (managed)", e.Default, e.Allowed, e.Denied)
}

// restricted reports whether the managed files of a harness have a sandbox or rules for hosts, so that a user setting can weaken something. For Cursor CLI, which
// has no managed files, user settings are all there is.
func (x *doctor) restricted(id string) bool {
	m := x.managed[id]
	switch {
	case id == policy.CursorCLI:
		return true
	case m == nil:
		return false
	case x.expected.Default == "deny" || x.expected.Denied > 0:
		return true
	}
	s := sandboxText(id, m, harness.Capability{Grade: harness.Enforced})
	return s != "off" && !strings.HasPrefix(s, "none")
}

// homes returns every home directory of the device.
func (x *doctor) homes() []Home {
	out := []Home{}
	add := func(rel string) {
		dir, err := x.t.dir(rel, false)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			x.add(Warn, "homes", "", CodeUnchecked, "/"+printable(rel), "/"+printable(rel)+": could not be checked: "+userError(err).Error(), "make it a directory")
			return
		}
		dir.Close()
		out = append(out, Home{Dir: filepath.Join(x.t.device.Root, filepath.FromSlash(rel)), Name: "/" + printable(rel)})
	}
	parents := map[string][]string{"linux": {"home"}, "darwin": {"Users"}, "windows": {"Users", "C/Users"}}[x.OS]
	if x.OS != "windows" {
		add(map[string]string{"linux": "root", "darwin": "private/var/root"}[x.OS])
	}
	for _, parent := range parents {
		dir, err := x.t.dir(parent, false)
		if err != nil {
			continue
		}
		entries, _ := fs.ReadDir(dir.FS(), ".")
		dir.Close()
		for _, e := range entries {
			if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
				add(parent + "/" + e.Name())
			}
		}
	}
	return out
}

// users looks for settings of users that weaken the policy.
func (x *doctor) users() {
	for _, h := range x.o.Homes {
		x.home(h, "")
	}
	for _, v := range variables {
		if dir := x.getenv(v.name); v.moves != "" && filepath.IsAbs(dir) && x.restricted(v.harness) {
			x.home(Home{Dir: dir, Name: "$" + v.name}, v.moves)
		}
	}
}

// home looks into one home directory, or, with moved, into what takes the place of that directory in it.
func (x *doctor) home(h Home, moved string) {
	u, err := openUser(h.Dir, h.Name)
	if err != nil {
		if moved == "" || !errors.Is(err, fs.ErrNotExist) {
			x.add(Warn, "homes", "", CodeUnchecked, h.Name, h.Name+": could not be checked: "+userError(err).Error(), "run halo doctor as root, or name another directory")
		}
		return
	}
	defer u.close()
	type parsed struct {
		doc map[string]any
		err error
	}
	seen := map[string]parsed{}
	said := map[string]bool{}
	for _, r := range rules {
		if !x.restricted(r.harness) {
			continue
		}
		for _, pattern := range r.files {
			if moved != "" {
				var ok bool
				if pattern, ok = strings.CutPrefix(pattern, moved+"/"); !ok {
					continue
				}
			}
			names, err := u.match(pattern)
			if err != nil {
				x.unchecked(u, r.harness, path.Dir(pattern), err, said)
				continue
			}
			for _, name := range names {
				p, ok := seen[name]
				if !ok {
					var data []byte
					if r.keys == nil {
						_, p.err = u.read(name)
						if _, no := errors.AsType[*unchecked](p.err); no && p.err.Error() == "a directory, not a regular file" {
							p.err = nil // a plugin is a directory
						}
					} else if data, p.err = u.read(name); p.err == nil {
						p.doc, p.err = parse(name, data)
					}
					seen[name] = p
				}
				if p.err != nil {
					x.unchecked(u, r.harness, name, p.err, said)
					continue
				}
				x.judge(u, r, name, p.doc)
			}
		}
	}
	if moved == "" {
		x.startup(u)
	}
}

func (x *doctor) unchecked(u *userDir, id, name string, err error, said map[string]bool) {
	if errors.Is(err, fs.ErrNotExist) || said[id+name] {
		return
	}
	said[id+name] = true
	x.add(Warn, "posture", id, CodeUnchecked, u.shown(name), u.shown(name)+" could not be checked: "+err.Error(), "make it a regular text file of at most 1 MiB that parses")
}

// judge applies one rule to one file.
func (x *doctor) judge(u *userDir, r rule, name string, doc map[string]any) {
	m := x.managed[r.harness]
	if m == nil {
		m = &managed{}
	}
	text := u.shown(name) + " " + r.effect
	if r.keys != nil {
		shown, weak := "", false
		for _, v := range values(doc, r.keys...) {
			if s, bad := r.bad(v, m); bad {
				shown, weak = s, true
			}
		}
		if !weak {
			return
		}
		text = u.shown(name) + " sets " + strings.TrimSpace(strings.Join(r.keys, ".")+spaced(shown)) + ": " + r.effect
		if r.alarm {
			// The form that other tools look for: file, key and value, nothing behind them.
			text = u.shown(name) + " sets " + strings.Join(r.keys, ".") + spaced(shown)
		}
		if len(r.keys) == 0 {
			text = u.shown(name) + " " + r.effect + " " + shown
		}
	}
	if r.held != nil {
		if how := r.held(m); how != "" {
			x.add(Info, "posture", r.harness, nil, u.shown(name), text+"; held: "+how, "")
			return
		}
	}
	x.add(Warn, "posture", r.harness, CodeWeak, u.shown(name), text, r.fix)
}

func spaced(s string) string {
	if s == "" || s[0] == '.' {
		return s
	}
	return " " + s
}

func (x *doctor) getenv(name string) string {
	for _, kv := range slices.Backward(x.o.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// environment looks at the variables of this process and at the files that set them for everybody.
func (x *doctor) environment() {
	env := map[string]string{}
	for _, kv := range x.o.Environ {
		if name, v, ok := strings.Cut(kv, "="); ok && v != "" {
			env[name] = v
		}
	}
	x.assignments("the environment", env)
	var set []string
	for _, name := range credentials {
		if env[name] != "" {
			set = append(set, name)
		}
	}
	if len(set) > 0 {
		x.add(Info, "credentials", "", nil, "", "set in the environment, where commands of an agent read them unless masked: "+strings.Join(set, ", "), "")
	}
	device := &userDir{x.t, ""}
	for _, pattern := range system {
		x.startupFile(device, pattern)
	}
}

func (x *doctor) startup(u *userDir) {
	for _, pattern := range startup {
		x.startupFile(u, pattern)
	}
}

func (x *doctor) startupFile(u *userDir, pattern string) {
	names, err := u.match(pattern)
	if err != nil {
		return // a directory of optional files
	}
	for _, name := range names {
		data, err := u.read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			x.add(Info, "environment", "", CodeUnchecked, u.shown(name), u.shown(name)+" could not be checked: "+err.Error(), "")
		default:
			x.assignments(u.shown(name), assigned(data))
		}
	}
}

// assignments reports the variables of one source that work against a managed harness.
func (x *doctor) assignments(where string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		for _, v := range variables {
			if !v.fits(name, env[name]) || !x.restricted(v.harness) {
				continue
			}
			shown := name
			if v.only != "" {
				shown += "=" + v.only
			}
			text := where + " sets " + shown + ": " + v.effect
			if v.held != nil && x.managed[v.harness] != nil {
				if how := v.held(x.managed[v.harness]); how != "" {
					x.add(Info, "posture", v.harness, nil, "", text+"; held: "+how, "")
					continue
				}
			}
			x.add(Warn, "posture", v.harness, CodeEnv, "", text, "unset "+name+" in "+where)
		}
	}
}

// order is the order of the parts in the report.
var order = []string{"release", "files", "sources", "posture", "proven", "homes", "environment", "credentials"}

func (x *doctor) conclude() {
	part := func(c Check) int {
		name, _, _ := strings.Cut(c.Name, "/")
		return slices.Index(order, name)
	}
	slices.SortStableFunc(x.Checks, func(a, b Check) int {
		if c := part(a) - part(b); c != 0 {
			return c
		}
		return strings.Compare(a.Harness, b.Harness)
	})
	if x.Drift == nil {
		x.Drift = []string{}
	}
	x.OK = len(x.Drift) == 0
}

// Text writes the report for people: status, name and finding in columns, and what to do about it below.
func (r *Report) Text(w io.Writer) error {
	for _, c := range r.Checks {
		if _, err := fmt.Fprintf(w, "%-5s%-25s%s\n", c.Status, c.Name, c.Text); err != nil {
			return err
		}
		if c.Fix != "" {
			if _, err := fmt.Fprintf(w, "%30sfix: %s\n", "", c.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}
