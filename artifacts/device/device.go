// Package device keeps one target of a release on a machine: it installs the files, says whether they are still in place and whether anything undoes them, and
// puts them back.
//
// Everything happens below a root directory, through os.Root and one path element at a time, so that no link on the way is followed. The package decides
// nothing about policies: which directories may be written to and how far a harness holds a concept come from the tables of the harnesses.
package device

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/compiler/diag"
	"halos.dev/halo/compiler/harness"
)

// Refusal says that a device or a release was read and must not be changed as asked: the answer is no, exit status 1, unless the code says that there is no answer.
type Refusal struct {
	// Code is the diagnostic code.
	Code *diag.Code
	// Path is the destination or directory, as the device names it, or "".
	Path string
	// Reason is what was found and what is wanted.
	Reason string
}

func (r *Refusal) Error() string {
	s := r.Reason + " [" + r.Code.ID + "]"
	if r.Path != "" {
		s = r.Path + ": " + s
	}
	return s
}

func refuse(code *diag.Code, path, format string, args ...any) error {
	return &Refusal{code, path, fmt.Sprintf(format, args...)}
}

// Device is a machine, or the image of one in a directory.
type Device struct {
	// Root is the directory that stands for the root of the file system. DefaultRoot is this machine.
	Root string
	// OS is the operating system of the device: darwin, linux or windows.
	OS string
	// Harnesses are the tables of all harnesses.
	Harnesses []*harness.Harness
}

// DefaultRoot is the root of this machine.
func DefaultRoot() string {
	if runtime.GOOS == "windows" {
		return `C:\`
	}
	return "/"
}

// Live reports whether the device is this machine and not an image.
func (d Device) Live() bool { return filepath.Clean(d.Root) == DefaultRoot() && d.OS == runtime.GOOS }

// StateDir is the directory of the install state, as the device names it.
func (d Device) StateDir() string {
	if d.OS == "windows" {
		return `C:\ProgramData\halo`
	}
	return "/var/lib/halo"
}

// rel returns the path below Root of an absolute path of the device.
func (d Device) rel(dest string) string {
	rel := strings.TrimPrefix(artifacts.RootPath(dest), "root/")
	if runtime.GOOS == "windows" && filepath.Clean(d.Root) == filepath.VolumeName(d.Root)+`\` {
		// The root of a real volume stands for its drive letter.
		return rel[strings.IndexByte(rel, '/')+1:]
	}
	return rel
}

// harness returns the table of a harness, or nil.
func (d Device) harness(id string) *harness.Harness {
	i := slices.IndexFunc(d.Harnesses, func(h *harness.Harness) bool { return h.ID == id })
	if i < 0 {
		return nil
	}
	return d.Harnesses[i]
}

// managedDir returns the managed directory of a harness that dest lies in, or "".
func (d Device) managedDir(id, dest string) string {
	h := d.harness(id)
	if h == nil {
		return ""
	}
	for _, dir := range h.Dirs[d.OS] {
		if rest, ok := strings.CutPrefix(dest, dir+d.separator()); ok && cleanBelow(rest, d.separator()) {
			return dir
		}
	}
	return ""
}

func (d Device) separator() string {
	if d.OS == "windows" {
		return `\`
	}
	return "/"
}

// cleanBelow reports whether rest, a path below a directory, cannot lead out of it on any system.
func cleanBelow(rest, separator string) bool {
	for name := range strings.SplitSeq(rest, separator) {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\:`) {
			return false
		}
	}
	return true
}

// managed reports whether the directory rel, a path below Root, is a managed directory or below one.
func (d Device) managed(rel string) bool {
	for _, h := range d.Harnesses {
		for _, dir := range h.Dirs[d.OS] {
			r := d.rel(dir)
			if rel == r || strings.HasPrefix(rel, r+"/") {
				return true
			}
		}
	}
	state := d.rel(d.StateDir())
	return rel == state || strings.HasPrefix(rel, state+"/")
}

// open opens Root; create makes it when it does not exist.
func (d Device) open(create bool) (*tree, error) {
	if create {
		if err := os.MkdirAll(d.Root, 0o755); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(d.Root)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	uid, _, _ := ownerOf(info)
	return &tree{device: d, root: root, uid: uid}, nil
}

// Select finds what a device of a ring, some units and an operating system gets. A set of units that the release does not have is a *Refusal that names the
// entry which halos.yaml lacks.
func Select(m *artifacts.Manifest, ring string, units []string, system string) (*artifacts.Target, error) {
	units = slices.Compact(slices.Sorted(slices.Values(units)))
	id := strings.Join(append([]string{ring}, units...), "+")
	var rings, systems []string
	for i := range m.Targets {
		t := &m.Targets[i]
		if t.ID == id && t.OS == system {
			return t, nil
		}
		if t.ID == id {
			systems = append(systems, t.OS)
		}
		if !slices.Contains(rings, t.Ring) {
			rings = append(rings, t.Ring)
		}
	}
	switch {
	case len(systems) > 0:
		return nil, refuse(CodeNoTarget, "", "the release has %s for %s, not for %s", id, strings.Join(systems, ", "), system)
	case !slices.Contains(rings, ring):
		return nil, refuse(CodeNoTarget, "", "the release has no ring %q; its rings are %s", ring, strings.Join(rings, ", "))
	case len(units) == 1:
		return nil, refuse(CodeNoTarget, "", "the release has no target %s: there is no unit %s, or its rings do not name %s", id, units[0], ring)
	}
	return nil, refuse(CodeNoTarget, "", "the release has no target %s; add the set to combinations in halos.yaml: [%s]", id, strings.Join(units, ", "))
}
