// Package harness holds the types that every harness room shares: what a renderer gets, what it answers, and what the capability tables say. It has
// no logic of any one harness.
package harness

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"halos.dev/halo/compiler/effective"
	"halos.dev/halo/compiler/harness/draft"
)

// Grade says how far a harness holds a concept.
type Grade uint8

// The grades, weakest first. Default is a start value that the user may change, Overridable holds until a user, a repository, a flag or a variable
// undoes it, Enforced holds against all of them.
const (
	None Grade = iota
	Default
	Overridable
	Enforced
)

// String returns the word used in documents and output.
func (g Grade) String() string {
	return [...]string{"none", "default", "overridable", "enforced"}[min(g, Enforced)]
}

// ParseGrade returns the grade of a word.
func ParseGrade(s string) (Grade, bool) {
	for g := None; g <= Enforced; g++ {
		if g.String() == s {
			return g, true
		}
	}
	return None, false
}

// Concept is a part of the policy model that a harness may hold, by the words of policy.Concepts.
type Concept string

// The concepts, as `require` and the coverage tables name them.
const (
	Sandbox        Concept = "sandbox"
	WritableRoots  Concept = "writable-roots"
	ProtectedPaths Concept = "protected-paths"
	Egress         Concept = "egress"
	Fetch          Concept = "fetch"
	Permissions    Concept = "permissions"
	BypassLock     Concept = "bypass-lock"
	MCP            Concept = "mcp"
	Hooks          Concept = "hooks"
	Models         Concept = "models"
	Telemetry      Concept = "telemetry"
	Instructions   Concept = "instructions"
	Env            Concept = "env"
	Overrides      Concept = "overrides"
	VersionPin     Concept = "version-pin"
)

// Capability is one row of a harness's table: how far it holds a concept on some operating systems and versions, and how that is known.
type Capability struct {
	Concept Concept
	// OS lists the systems the row is about; empty means all three.
	OS []string
	// Since is the first version the row holds for, Until the first it no longer holds for; empty means no bound.
	Since, Until string
	Grade        Grade
	// How says in a few words what holds the concept: the keys that are rendered. It is shown by `halo egress test` and in the coverage tables.
	How string
	// Limit says what the row does not hold, in one sentence; empty when there is no limit.
	Limit string
	// Bypass lists the variables, flags and files that undo it.
	Bypass []string
	// Verified reports that the grade was seen on the real program; Evidence names the version and date, or the source that was read.
	Verified bool
	Evidence string
}

// Gap is something a target cannot hold as the policy says it.
type Gap struct {
	Concept Concept
	// Field is the key path in the policy (egress.deniedDomains), Entry the one entry it is about, or "".
	Field, Entry string
	Harness, OS  string
	Grade        Grade
	// Reason is one sentence: what is not held and what happens instead.
	Reason string
	// Remedy says what to do about it, or "".
	Remedy string
	Bypass []string
}

// Key is what makes a gap the same gap on several systems.
func (g Gap) Key() string {
	return strings.Join([]string{g.Harness, string(g.Concept), g.Field, g.Entry, g.Reason}, "\x00")
}

// File is one file a device gets. Dest is an absolute path in the device's own form (C:\Program Files\… on Windows).
type File struct {
	Dest  string
	Owner string
	// Mode is the permission bits; on Windows it is advisory.
	Mode    uint32
	Content []byte
}

// Target is what a renderer renders for.
type Target struct {
	Policy *effective.Policy
	OS     string
	// Version is the pinned version of the harness.
	Version Version
	// Org is the organization; GatewayURL is empty without a Gateway document, Models maps the gateway's aliases to the model names sent to it.
	Org        string
	GatewayURL string
	Models     map[string]string
}

// Finding is something the strict reader of a rendered file refuses: a key the harness would ignore, a list without its lock, an entry that never matches.
type Finding struct {
	Dest    string
	Pointer string
	Message string
}

// Harness is one room: the renderer, the strict reader of what it renders, and the capability table.
type Harness struct {
	ID string
	// Known is the newest version the tables were checked against; Oldest the oldest that can be rendered for.
	Known, Oldest Version
	// Render answers with the files of a target and everything the target cannot hold. It is a pure function.
	Render func(Target) ([]File, []Gap)
	// Check reads rendered files strictly and compares them with what the policy asks for.
	Check        func(Target, []File) []Finding
	Capabilities []Capability
	// Dirs are the managed directories per operating system: the only places that files may be written to.
	Dirs map[string][]string
	// Overrides are the keys that a profile's overrides may set; a dotted entry allows its subtree.
	Overrides []string
	// Import fills a draft from the files in it. It is nil for a harness whose files cannot be imported. An error says that the program itself refuses a file.
	Import func(*draft.Draft) error
}

// Capability returns the row that applies to a concept, or a row of grade none.
func (h *Harness) Capability(c Concept, os string, v Version) Capability {
	for _, row := range h.Capabilities {
		if row.Concept == c && (len(row.OS) == 0 || slices.Contains(row.OS, os)) && row.covers(v) {
			return row
		}
	}
	return Capability{Concept: c, Grade: None, How: "", Limit: "no setting of this harness holds it"}
}

func (c *Capability) covers(v Version) bool {
	if c.Since != "" && v.Less(MustVersion(c.Since)) {
		return false
	}
	return c.Until == "" || v.Less(MustVersion(c.Until))
}

// Version is an exact semantic version. A pre-release is older than its release.
type Version struct {
	Major, Minor, Patch int
	Pre                 string
}

// ParseVersion reads MAJOR.MINOR.PATCH with an optional pre-release.
func ParseVersion(s string) (Version, bool) {
	core, pre, _ := strings.Cut(s, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return Version{}, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return Version{}, false
		}
		n[i] = v
	}
	return Version{n[0], n[1], n[2], pre}, true
}

// MustVersion reads a version that is a constant of the program; a malformed one is the zero version, which a test of the tables refuses.
func MustVersion(s string) Version {
	v, _ := ParseVersion(s)
	return v
}

// Compare orders versions.
func (v Version) Compare(w Version) int {
	c := cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
	if c != 0 || v.Pre == w.Pre {
		return c
	}
	switch {
	case v.Pre == "":
		return 1
	case w.Pre == "":
		return -1
	}
	return cmp.Compare(v.Pre, w.Pre)
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{Major: major, Minor: minor, Patch: patch}) >= 0
}

// String returns the version as it is written.
func (v Version) String() string {
	s := strconv.Itoa(v.Major) + "." + strconv.Itoa(v.Minor) + "." + strconv.Itoa(v.Patch)
	if v.Pre != "" {
		s += "-" + v.Pre
	}
	return s
}

// Owner is who owns the managed files of an operating system.
func Owner(os string) string {
	switch os {
	case "darwin":
		return "root:wheel"
	case "windows":
		return "SYSTEM"
	}
	return "root:root"
}
