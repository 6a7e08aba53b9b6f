package device

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Kind is what is wrong with a managed file.
type Kind string

// The kinds of drift, in the order in which they are looked for.
const (
	Missing    Kind = "missing"
	NotRegular Kind = "not-regular"
	Changed    Kind = "changed"
	WrongOwner Kind = "owner"
	WrongMode  Kind = "mode"
	// Unsafe says that a directory on the way is a link, or that others may change it.
	Unsafe Kind = "unsafe"
)

// Drift is one managed file that is not as it was installed.
type Drift struct {
	Kind    Kind   `json:"kind"`
	Harness string `json:"harness"`
	Dest    string `json:"dest"`
	// Message is what was found and what is wanted. It never has content of the file.
	Message string `json:"message"`
	// Directory reports that a directory stands in the place of the file.
	Directory bool `json:"-"`
}

// drift compares one managed file with what was installed; nil when it is in place.
func (t *tree) drift(f Installed) (*Drift, error) {
	found := func(k Kind, format string, args ...any) (*Drift, error) {
		return &Drift{Kind: k, Harness: f.Harness, Dest: f.Dest, Message: fmt.Sprintf(format, args...)}, nil
	}
	rel := t.device.rel(f.Dest)
	dir, err := t.dir(path.Dir(rel), false)
	if r, ok := errors.AsType[*Refusal](err); ok {
		return found(Unsafe, "%s: %s", r.Path, r.Reason)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return found(Missing, "missing")
	}
	if err != nil {
		return nil, shown(err, f.Dest)
	}
	defer dir.Close()
	data, info, err := read(dir, path.Base(rel), f.Size)
	bad, isBad := errors.AsType[*badFile](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found(Missing, "missing")
	case isBad && info.Mode().IsRegular():
		return found(Changed, "content changed (%s)", bad.reason)
	case isBad:
		d, _ := found(NotRegular, "%s", bad.reason)
		d.Directory = info.IsDir()
		return d, nil
	case err != nil:
		return nil, shown(err, f.Dest)
	}
	if sum := digest(data); sum != f.SHA256 {
		return found(Changed, "content changed (sha256 %s, installed was %s)", sum, f.SHA256)
	}
	if uid, gid, ok := ownerOf(info); ok && f.Owner != "" && (uid != 0 || gid != 0) {
		return found(WrongOwner, "belongs to %d:%d, not to %s", uid, gid, f.Owner)
	}
	if mode := info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky); hasModes && mode != f.mode() {
		return found(WrongMode, "mode %04o, not %s", unixMode(mode), f.Mode)
	}
	return t.directory(f, dir)
}

// directory checks the directory of a managed file: a harness that cannot read it runs without policy, and who may write to it can replace what is in it.
func (t *tree) directory(f Installed, dir interface {
	Stat(string) (fs.FileInfo, error)
}) (*Drift, error) {
	info, err := dir.Stat(".")
	if err != nil {
		return nil, shown(err, f.Dest)
	}
	uid, _, ok := ownerOf(info)
	switch {
	case !ok || !hasModes:
		return nil, nil
	case f.Owner != "" && uid != 0:
		return &Drift{Kind: WrongOwner, Harness: f.Harness, Dest: f.Dest, Message: fmt.Sprintf("its directory belongs to user %d, not to root", uid)}, nil
	case info.Mode().Perm()&0o022 != 0 || info.Mode().Perm()&0o055 != 0o055:
		return &Drift{Kind: WrongMode, Harness: f.Harness, Dest: f.Dest, Message: fmt.Sprintf("its directory has mode %04o, not 0755", info.Mode().Perm())}, nil
	}
	return nil, nil
}

// unixMode writes the bits of a mode as chmod does.
func unixMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			n |= bit
		}
	}
	return n
}

// drifts checks every managed file of a record. Unreadable is what could not be looked at, by destination.
func (t *tree) drifts(r *Record) (found []Drift, unreadable map[string]error) {
	unreadable = map[string]error{}
	for _, f := range r.Files {
		drift, err := t.drift(f)
		if err != nil {
			unreadable[f.Dest] = err
		}
		if drift != nil {
			found = append(found, *drift)
		}
	}
	for _, dest := range r.Stale {
		dir, name, err := t.file(dest, false)
		if err != nil {
			continue
		}
		if _, err := dir.Lstat(name); err == nil {
			found = append(found, Drift{Kind: Changed, Dest: dest, Message: "a file of the release before, still to be removed"})
		}
		dir.Close()
	}
	return found, unreadable
}
