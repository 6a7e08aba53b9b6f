package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"halos.dev/halo/artifacts"
	"halos.dev/halo/artifacts/sign"
)

// InstallOptions say what to install.
type InstallOptions struct {
	// Release is the verified release, Dir the directory it was read from.
	Release *artifacts.Verified
	Dir     string
	Ring    string
	Units   []string
	// Replace allows a file in the way that halo did not install to be replaced.
	Replace bool
	// DryRun plans and checks but writes nothing.
	DryRun bool
	// Trust is what the release was verified with. The device keeps it, so that doctor and agent can verify the next one.
	Trust *sign.Trust
}

// Change is what an installation does to one destination.
type Change struct {
	// Action is add, replace, repair (owner, mode or content had drifted), keep or remove.
	Action  string `json:"action"`
	Harness string `json:"harness,omitempty"`
	Dest    string `json:"dest"`
	Mode    string `json:"mode,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Installation is the answer of Install.
type Installation struct {
	Record  *Record
	Changes []Change
	// Unowned reports that owners were not set, because only root can.
	Unowned bool
}

// Install lays the files of one target on the device. It goes only forward, refuses to replace what it did not install, writes each file whole and removes what
// the release before had and this one has not. Until everything is on disk beside its place, nothing of the device changes.
func (d Device) Install(ctx context.Context, o InstallOptions) (*Installation, error) {
	target, err := Select(o.Release.Manifest, o.Ring, o.Units, d.OS)
	if err != nil {
		return nil, err
	}
	files, contents, err := d.contents(o.Release, target)
	if err != nil {
		return nil, err
	}
	t, err := d.open(!o.DryRun)
	if errors.Is(err, fs.ErrNotExist) && o.DryRun {
		return d.nothingThere(o, target, files)
	}
	if err != nil {
		return nil, err
	}
	defer t.close()
	if !o.DryRun {
		unlock, err := t.lock(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
	}
	old, err := t.record()
	if err != nil {
		return nil, err
	}
	next, err := d.next(o, target, files)
	if err != nil {
		return nil, err
	}
	if err := old.state().Accepts(*next.state(), o.Release.Manifest.Previous); err != nil {
		return nil, err
	}
	changes, err := t.plan(old, next, o.Replace)
	if err != nil {
		return nil, err
	}
	done := &Installation{Record: next, Changes: changes, Unowned: hasModes && !canOwn()}
	if o.DryRun {
		return done, nil
	}
	return done, t.apply(ctx, next, contents, changes, o.Trust)
}

// nothingThere is the dry run on a root that does not exist.
func (d Device) nothingThere(o InstallOptions, target *artifacts.Target, files []Installed) (*Installation, error) {
	next, err := d.next(o, target, files)
	if err != nil {
		return nil, err
	}
	i := &Installation{Record: next, Unowned: hasModes && !canOwn()}
	for _, f := range files {
		i.Changes = append(i.Changes, Change{"add", f.Harness, f.Dest, f.Mode, f.SHA256})
	}
	return i, nil
}

// administrators are the owners that files of a release may have, on any system.
var administrators = []string{"", rootOwner, "root:wheel", "SYSTEM", "Administrators"}

// contents reads the files of a target from the release, in the order of their destinations, and holds each to the directories of its harness.
func (d Device) contents(v *artifacts.Verified, target *artifacts.Target) ([]Installed, map[string][]byte, error) {
	files := make([]Installed, 0, len(target.Files))
	contents := make(map[string][]byte, len(target.Files))
	for _, f := range target.Files {
		if d.managedDir(f.Harness, f.Dest) == "" {
			return nil, nil, refuse(CodeDest, f.Dest, "in no managed directory of %s on %s", f.Harness, d.OS)
		}
		if want := "targets/" + target.ID + "/" + target.OS + "/" + f.Harness + "/" + artifacts.RootPath(f.Dest); f.Path != want {
			return nil, nil, refuse(CodeDest, f.Dest, "the release has it at %s, not at %s", f.Path, want)
		}
		if !slices.Contains(administrators, f.Owner) {
			return nil, nil, refuse(CodeDest, f.Dest, "owner %q is not the administrator", f.Owner)
		}
		data, err := v.ReadFile(f.Path)
		if err != nil {
			return nil, nil, err
		}
		in := Installed{Dest: f.Dest, Harness: f.Harness, Owner: f.Owner, Mode: f.Mode, SHA256: digest(data), Size: int64(len(data))}
		if !canOwn() || d.OS == "windows" {
			// On Windows a file gets the access list of its directory.
			in.Owner = ""
		}
		if mode := in.mode(); mode&0o022 != 0 || mode&0o111 != 0 || mode&0o444 != 0o444 {
			return nil, nil, refuse(CodeDest, f.Dest, "mode %s; a managed file is readable by all, writable by its owner alone and not a program", f.Mode)
		}
		if _, twice := contents[in.Dest]; twice {
			return nil, nil, refuse(CodeDest, f.Dest, "two files of the target go there")
		}
		contents[in.Dest] = data
		files = append(files, in)
	}
	slices.SortFunc(files, func(a, b Installed) int { return strings.Compare(a.Dest, b.Dest) })
	return files, contents, nil
}

func (d Device) next(o InstallOptions, target *artifacts.Target, files []Installed) (*Record, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	m := o.Release.Manifest
	e := m.Egress[target.ID]
	var trust int64
	if o.Trust != nil {
		trust = o.Trust.Version
	}
	return &Record{
		SchemaVersion: 1, Org: m.Org, Sequence: m.Sequence, Digest: o.Release.Digest, Version: m.Version, Expires: m.Expires, Target: target.ID, Ring: target.Ring,
		Units: slices.Clone(target.Units), OS: target.OS, Release: dir, Trust: trust, Default: e.Default, Allowed: len(e.Allowed), Denied: len(e.Denied), Files: files,
	}, nil
}

// plan compares the device with what is wanted, and finds out before anything is written what must not be replaced.
func (t *tree) plan(old, next *Record, replace bool) ([]Change, error) {
	ours := map[string]bool{}
	if old != nil {
		for _, f := range old.Files {
			ours[f.Dest] = true
		}
		for _, dest := range old.Stale {
			ours[dest] = true
		}
	}
	var changes []Change
	for _, f := range next.Files {
		c := Change{"keep", f.Harness, f.Dest, f.Mode, f.SHA256}
		drift, err := t.drift(f)
		if err != nil {
			return nil, err
		}
		switch {
		case drift == nil:
		case drift.Kind == Missing:
			c.Action = "add"
		case drift.Kind == Unsafe:
			return nil, refuse(CodeUnsafe, f.Dest, "%s", drift.Message)
		case drift.Directory:
			return nil, refuse(CodeForeign, f.Dest, "a directory where a managed file goes; remove it")
		case ours[f.Dest] && slices.Contains(old.Files, f):
			c.Action = "repair"
		case ours[f.Dest]:
			c.Action = "replace"
		case drift.Kind == WrongMode || drift.Kind == WrongOwner:
			// The same bytes, perhaps from a package of the same release.
			c.Action = "repair"
		case !replace:
			return nil, refuse(CodeForeign, f.Dest, "not installed by halo; --replace-existing replaces it")
		default:
			c.Action = "replace"
		}
		changes = append(changes, c)
		delete(ours, f.Dest)
	}
	for dest := range ours {
		next.Stale = append(next.Stale, dest)
	}
	slices.Sort(next.Stale)
	for _, dest := range next.Stale {
		changes = append(changes, Change{Action: "remove", Dest: dest})
	}
	return changes, nil
}

// apply carries out a plan in an order in which a crash at any point leaves whole files, and a record of what is wanted.
func (t *tree) apply(ctx context.Context, next *Record, contents map[string][]byte, changes []Change, trust *sign.Trust) (err error) {
	for _, f := range next.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.cache(f.SHA256, contents[f.Dest]); err != nil {
			return err
		}
	}
	var staged []string
	defer func() {
		if err != nil {
			for _, dest := range staged {
				t.unstage(dest)
			}
		}
	}()
	byDest := map[string]Installed{}
	for _, f := range next.Files {
		byDest[f.Dest] = f
	}
	for _, c := range changes {
		if c.Action == "keep" || c.Action == "remove" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		f := byDest[c.Dest]
		dir, name, err := t.file(c.Dest, true)
		if err != nil {
			return shown(err, c.Dest)
		}
		err = stage(dir, name, contents[c.Dest], f.Owner, f.mode())
		dir.Close()
		if err != nil {
			return shown(err, c.Dest)
		}
		staged = append(staged, c.Dest)
	}
	if err := t.keep(trust); err != nil {
		return err
	}
	if err := t.save(next); err != nil {
		return err
	}
	// From here on the new release is the wanted one; an interrupted run is finished by the next, or by the agent.
	for _, dest := range staged {
		dir, name, err := t.file(dest, true)
		if err != nil {
			return shown(err, dest)
		}
		err = commit(dir, name)
		dir.Close()
		if err != nil {
			return shown(err, dest)
		}
	}
	return t.finish(next)
}

// finish removes what the release before had, and then forgets it.
func (t *tree) finish(r *Record) error {
	if len(r.Stale) > 0 {
		for _, dest := range r.Stale {
			if err := t.remove(dest); err != nil {
				return err
			}
		}
		r.Stale = nil
		if err := t.save(r); err != nil {
			return err
		}
	}
	t.trim(r)
	return nil
}

func (t *tree) unstage(dest string) {
	if dir, name, err := t.file(dest, false); err == nil {
		// A leftover is overwritten by the next run.
		_ = dir.Remove(tempName(name))
		dir.Close()
	}
}

// cache keeps the bytes of a managed file under their digest.
func (t *tree) cache(sum string, data []byte) error {
	if have, _, err := t.read(t.device.cached(sum), fileLimit); err == nil && digest(have) == sum {
		return nil
	}
	if err := t.put(t.device.cached(sum), data, rootOwner, 0o644); err != nil {
		return fmt.Errorf("write install state: %w", err)
	}
	return nil
}

// trim removes cached bytes that no managed file has. What cannot be removed costs only room.
func (t *tree) trim(r *Record) {
	dir, err := t.dir(t.device.rel(t.device.inState("files")), false)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if !slices.ContainsFunc(r.Files, func(f Installed) bool { return f.SHA256 == e.Name() }) {
			_ = dir.Remove(e.Name())
		}
	}
}

// Uninstall removes every file that halo installed, and the state. It returns the destinations; none when nothing is installed.
func (d Device) Uninstall(ctx context.Context, dryRun bool) ([]string, error) {
	t, err := d.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer t.close()
	r, err := t.record()
	if err != nil || r == nil {
		return nil, err
	}
	dests := slices.Clone(r.Stale)
	for _, f := range r.Files {
		dests = append(dests, f.Dest)
	}
	slices.Sort(dests)
	if dryRun {
		return dests, nil
	}
	unlock, err := t.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// The agent must not put back what is being removed.
	r.Files, r.Stale = nil, dests
	if err := t.save(r); err != nil {
		return nil, err
	}
	for _, dest := range dests {
		if err := t.remove(dest); err != nil {
			return nil, err
		}
	}
	state := t.device.rel(t.device.StateDir())
	above, err := t.dir(path.Dir(state), false)
	if err != nil {
		return nil, shown(err, t.device.StateDir())
	}
	defer above.Close()
	// Windows removes no file that is open.
	unlock()
	return dests, shown(above.RemoveAll(path.Base(state)), t.device.StateDir())
}

// lockTries is how often a lock is tried, lockPause how long to wait between tries: another run takes a few milliseconds.
const (
	lockTries = 100
	lockPause = 50 * time.Millisecond
)

// lock makes this process the only one that writes to the device.
func (t *tree) lock(ctx context.Context) (unlock func(), err error) {
	rel := t.device.rel(t.device.StateDir())
	dir, err := t.dir(rel, true)
	if err != nil {
		return nil, shown(err, t.device.StateDir())
	}
	defer dir.Close()
	if info, err := dir.Lstat("lock"); err == nil && !info.Mode().IsRegular() {
		return nil, refuse(CodeUnsafe, t.device.inState("lock"), "%s, not a regular file", artifacts.Describe(info.Mode()))
	}
	f, err := dir.OpenFile("lock", os.O_RDWR|os.O_CREATE|openFlags, 0o600)
	if err != nil {
		return nil, shown(err, t.device.inState("lock"))
	}
	for range lockTries {
		if lock(f) {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
	f.Close()
	return nil, fmt.Errorf("%s: another halo is at work on this device", t.device.inState("lock"))
}
