package artifacts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// SchemaVersion is the version of the manifest that this package writes and the only one it reads.
const SchemaVersion = 1

// MaxManifestSize is the largest manifest that is read or written, in bytes.
const MaxManifestSize = 64 << 20

// The names in a release that are not targets or packs.
const (
	ManifestName   = "manifest.json"
	BundleName     = "manifest.json.sigstore.json"
	DetachedName   = "manifest.json.sig"
	SumsName       = "SHA256SUMS"
	provenanceName = "provenance.sigstore.json"
)

// Manifest is manifest.json: the one thing that is signed, and the only file that carries time, commit and tool. Times are UTC in
// whole seconds, digests in text are "sha256:" and 64 hex digits unless the field is called sha256, lists keep the order given
// except where an order is named. Optional fields are left out when empty.
type Manifest struct {
	SchemaVersion int64  `json:"schemaVersion"`
	Org           string `json:"org"`
	Version       string `json:"version"`
	// Sequence grows with every release; a verifier that keeps state refuses a lower one. 0 is a release outside any order.
	Sequence int64 `json:"sequence"`
	// Previous is the digest of the release before; optional.
	Previous string `json:"previous,omitempty"`
	// Issued and AsOf come from the source (see SourceTime), never from the clock.
	Issued time.Time `json:"issued"`
	// Expires is the first instant at which the release is no longer valid; zero means never.
	Expires time.Time `json:"expires,omitzero"`
	// AsOf is the instant at which exceptions were judged.
	AsOf   time.Time `json:"asOf"`
	Tool   Tool      `json:"tool"`
	Source Source    `json:"source"`
	// Files are all files of the release but the manifest and its signatures, sorted by path in byte order.
	Files []File `json:"files"`
	// Targets are sorted by ID, then OS.
	Targets    []Target            `json:"targets"`
	Sandboxes  []Sandbox           `json:"sandboxes"`
	Packs      []Pack              `json:"packs"`
	Presets    map[string][]string `json:"presets"`
	Egress     map[string]Egress   `json:"egress"`
	Warnings   []Warning           `json:"warnings"`
	Exceptions []Exception         `json:"exceptions"`
}

// Tool is the program that made the release.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Source is the policy that the release was made from. Commit is absent without git; Dirty says that a file read as policy differs
// from it; Digest covers what was read.
type Source struct {
	Commit string `json:"commit,omitempty"`
	Dirty  bool   `json:"dirty"`
	Digest string `json:"digest"`
}

// File is one file of the release: its path in the release, its SHA-256 in hex and its size in bytes.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Target is what one kind of device gets: a ring, the units that apply (both are the ID) and an operating system.
type Target struct {
	ID      string       `json:"id"`
	Ring    string       `json:"ring"`
	Units   []string     `json:"units"`
	Profile string       `json:"profile"`
	OS      string       `json:"os"`
	Files   []TargetFile `json:"files"`
}

// TargetFile says where a file of the release goes on a device. Path names the file in Manifest.Files.
type TargetFile struct {
	Path    string `json:"path"`
	Harness string `json:"harness"`
	Dest    string `json:"dest"`
	Owner   string `json:"owner,omitempty"`
	Mode    string `json:"mode"`
}

// Sandbox is a rendered Sandbox document for a target.
type Sandbox struct {
	Name       string `json:"name"`
	Target     string `json:"target"`
	Agent      string `json:"agent,omitempty"`
	Path       string `json:"path,omitempty"`
	Pack       string `json:"pack,omitempty"`
	PackDigest string `json:"packDigest,omitempty"`
}

// Pack is a sandbox pack that the release carries with its exact bytes.
type Pack struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Path   string `json:"path"`
}

// Egress is the resolved egress policy of a target.
type Egress struct {
	Default string   `json:"default"`
	Allowed []string `json:"allowed"`
	Denied  []string `json:"denied"`
}

// Warning is a named limit of the release: something that a target cannot hold, or a remark of the build.
type Warning struct {
	Code    string `json:"code"`
	Target  string `json:"target,omitempty"`
	Harness string `json:"harness,omitempty"`
	OS      string `json:"os,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Exception is a granted exception that the release uses. Expires is a date, YYYY-MM-DD.
type Exception struct {
	Name    string `json:"name"`
	Scope   string `json:"scope"`
	Field   string `json:"field"`
	Witness string `json:"witness,omitempty"`
	Owner   string `json:"owner"`
	Reason  string `json:"reason"`
	Ticket  string `json:"ticket,omitempty"`
	Expires string `json:"expires"`
}

// Encode returns the canonical bytes of m (RFC 8785, no final newline), or an error when m breaks a rule that ParseManifest
// enforces.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	// An entry has some 180 bytes, where the file goes on a device 230, and there are hosts and warnings: growing would copy and touch several times as much.
	c := &canon{out: make([]byte, 0, 4096+640*len(m.Files))}
	c.object(m.members)
	if c.err == nil && len(c.out) > MaxManifestSize {
		c.fail("larger than %d bytes", MaxManifestSize)
	}
	if c.err != nil {
		return nil, fmt.Errorf("manifest: %w", c.err)
	}
	return c.out, nil
}

// ParseManifest reads manifest.json strictly: canonical bytes, the fields of SchemaVersion and no others, sorted safe paths
// without duplicates.
func ParseManifest(data []byte) (*Manifest, error) {
	if len(data) > MaxManifestSize {
		return nil, fmt.Errorf("larger than %d bytes", MaxManifestSize)
	}
	m := new(Manifest)
	c := &canon{reading: true, lists: map[string]readList{}, in: unsafe.String(unsafe.SliceData(data), len(data))}
	c.object(m.members)
	if c.err == nil && c.pos != len(c.in) {
		c.fail("%w", errTrailing)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// Digest returns the release digest for the bytes of a manifest.
func Digest(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return digestPrefix + hex.EncodeToString(sum[:])
}

const digestPrefix = "sha256:"

// IsDigest reports whether s is a digest as releases write it: "sha256:" and 64 lower-case hex digits.
func IsDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, digestPrefix)
	return ok && isHex(hex, 2*sha256.Size)
}

func isHex(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b < 'a' || b > 'f') {
			return false
		}
	}
	return true
}

// File returns the entry of path, or false.
func (m *Manifest) File(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(m.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return File{}, false
	}
	return m.Files[i], true
}

// The members of each object, in the sorted order of their keys.

func (m *Manifest) members(c *canon) {
	c.time("asOf", &m.AsOf, false)
	dict(c, "egress", &m.Egress, func(c *canon, e *Egress) {
		c.object(func(c *canon) {
			c.strings("allowed", &e.Allowed)
			c.str("default", &e.Default)
			c.strings("denied", &e.Denied)
		})
	})
	list(c, "exceptions", &m.Exceptions, func(c *canon, e *Exception) {
		c.object(func(c *canon) {
			c.str("expires", &e.Expires)
			c.str("field", &e.Field)
			c.str("name", &e.Name)
			c.str("owner", &e.Owner)
			c.str("reason", &e.Reason)
			c.str("scope", &e.Scope)
			c.optStr("ticket", &e.Ticket)
			c.optStr("witness", &e.Witness)
		})
	})
	c.time("expires", &m.Expires, true)
	list(c, "files", &m.Files, func(c *canon, f *File) {
		c.object(func(c *canon) {
			c.str("path", &f.Path)
			c.str("sha256", &f.SHA256)
			c.integer("size", &f.Size)
		})
	})
	c.time("issued", &m.Issued, false)
	c.str("org", &m.Org)
	list(c, "packs", &m.Packs, func(c *canon, p *Pack) {
		c.object(func(c *canon) {
			c.str("digest", &p.Digest)
			c.str("name", &p.Name)
			c.str("path", &p.Path)
		})
	})
	dict(c, "presets", &m.Presets, func(c *canon, hosts *[]string) { array(c, hosts, (*canon).stringValue) })
	c.optStr("previous", &m.Previous)
	list(c, "sandboxes", &m.Sandboxes, func(c *canon, s *Sandbox) {
		c.object(func(c *canon) {
			c.optStr("agent", &s.Agent)
			c.str("name", &s.Name)
			c.optStr("pack", &s.Pack)
			c.optStr("packDigest", &s.PackDigest)
			c.optStr("path", &s.Path)
			c.str("target", &s.Target)
		})
	})
	c.integer("schemaVersion", &m.SchemaVersion)
	c.integer("sequence", &m.Sequence)
	if c.member("source", false, true) {
		c.object(func(c *canon) {
			c.optStr("commit", &m.Source.Commit)
			c.str("digest", &m.Source.Digest)
			c.boolean("dirty", &m.Source.Dirty)
		})
	}
	list(c, "targets", &m.Targets, func(c *canon, t *Target) {
		c.object(func(c *canon) {
			list(c, "files", &t.Files, func(c *canon, f *TargetFile) {
				c.object(func(c *canon) {
					c.str("dest", &f.Dest)
					c.str("harness", &f.Harness)
					c.str("mode", &f.Mode)
					c.optStr("owner", &f.Owner)
					c.str("path", &f.Path)
				})
			})
			c.str("id", &t.ID)
			c.str("os", &t.OS)
			c.str("profile", &t.Profile)
			c.str("ring", &t.Ring)
			c.strings("units", &t.Units)
		})
	})
	if c.member("tool", false, true) {
		c.object(func(c *canon) {
			c.str("name", &m.Tool.Name)
			c.str("version", &m.Tool.Version)
		})
	}
	c.str("version", &m.Version)
	list(c, "warnings", &m.Warnings, func(c *canon, w *Warning) {
		c.object(func(c *canon) {
			c.str("code", &w.Code)
			c.optStr("field", &w.Field)
			c.optStr("harness", &w.Harness)
			c.str("message", &w.Message)
			c.optStr("os", &w.OS)
			c.optStr("target", &w.Target)
		})
	})
}

// time reads or writes an instant in UTC with whole seconds.
func (c *canon) time(key string, v *time.Time, optional bool) {
	if !c.member(key, optional, !v.IsZero()) {
		return
	}
	if !c.reading {
		if v.Nanosecond() != 0 || v.Year() < 0 || v.Year() > 9999 {
			c.fail("%q is not a whole second of the years 0 to 9999", key)
			return
		}
		c.out = append(v.UTC().AppendFormat(append(c.out, '"'), time.RFC3339), '"')
		return
	}
	var s string
	c.stringValue(&s)
	if c.err != nil {
		return
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() || t.UTC().Format(time.RFC3339) != s {
		c.fail("%q is not an instant like 2026-01-02T03:04:05Z", key)
		return
	}
	*v = t.UTC()
}

// check holds the rules that the bytes alone do not show, in writing and in reading.
func (m *Manifest) check() error {
	if m.SchemaVersion != SchemaVersion {
		return fmt.Errorf("schemaVersion %d, not %d, the one that this halo knows", m.SchemaVersion, SchemaVersion)
	}
	if m.Issued.IsZero() || m.AsOf.IsZero() {
		return fmt.Errorf("issued and asOf must be set")
	}
	if m.Previous != "" && !IsDigest(m.Previous) {
		return fmt.Errorf("previous: %q is not a digest", m.Previous)
	}
	if err := m.checkFiles(); err != nil {
		return err
	}
	for i, t := range m.Targets {
		if i > 0 && compareTargets(m.Targets[i-1], t) >= 0 {
			return fmt.Errorf("targets: %q for %s is repeated or out of order", t.ID, t.OS)
		}
		for _, f := range t.Files {
			if err := m.listed("target "+t.ID, f.Path); err != nil {
				return err
			}
			if err := checkDest(t.OS, f); err != nil {
				return fmt.Errorf("target %s: %w", t.ID, err)
			}
			if !isMode(f.Mode) {
				return fmt.Errorf("target %s: mode %q of %s is not of the form 0644", t.ID, f.Mode, f.Path)
			}
		}
	}
	for _, s := range m.Sandboxes {
		if s.Path != "" {
			if err := m.listed("sandbox "+s.Name, s.Path); err != nil {
				return err
			}
		}
		if s.PackDigest != "" && !IsDigest(s.PackDigest) {
			return fmt.Errorf("sandbox %s: %q is not a digest", s.Name, s.PackDigest)
		}
	}
	for _, p := range m.Packs {
		if err := m.listed("pack "+p.Name, p.Path); err != nil {
			return err
		}
		if f, _ := m.File(p.Path); p.Digest != digestPrefix+f.SHA256 {
			return fmt.Errorf("pack %s: digest %s is not that of %s", p.Name, p.Digest, p.Path)
		}
	}
	return nil
}

func compareTargets(a, b Target) int {
	return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.OS, b.OS))
}

func (m *Manifest) listed(what, path string) error {
	if _, ok := m.File(path); !ok {
		return fmt.Errorf("%s: %q is not among files", what, path)
	}
	return nil
}

// isMode reports whether s is a file mode in four octal digits without set-id or sticky bits.
func isMode(s string) bool {
	if len(s) != 4 || s[0] != '0' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '7' {
			return false
		}
	}
	return true
}
