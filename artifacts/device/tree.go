package device

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"halos.dev/halo/artifacts"
)

// tree is an open device.
type tree struct {
	device Device
	root   *os.Root
	// uid is the owner of the root directory, who may own directories below it too: an image may belong to whoever builds it.
	uid int
}

func (t *tree) close() { t.root.Close() }

// dir opens the directory rel below the root, one element at a time and through no link; create makes what is missing. The caller closes it.
func (t *tree) dir(rel string, create bool) (*os.Root, error) {
	at, err := t.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	if rel == "." {
		return at, nil
	}
	name := ""
	for rest := t.system(rel); rest != ""; {
		var element string
		element, rest, _ = strings.Cut(rest, "/")
		name = path.Join(name, element)
		next, err := t.enter(at, element, name, create)
		at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// system follows the two links that macOS itself has in its root: /etc and /var are links to directories of /private.
func (t *tree) system(rel string) string {
	first, _, _ := strings.Cut(rel, "/")
	if t.device.OS != "darwin" || first != "etc" && first != "var" {
		return rel
	}
	if to, err := t.root.Readlink(first); err == nil && strings.TrimPrefix(to, "/") == "private/"+first {
		return "private/" + rel
	}
	return rel
}

// enter opens the directory element of at; name is its path below the root.
func (t *tree) enter(at *os.Root, element, name string, create bool) (*os.Root, error) {
	info, err := at.Lstat(element)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := at.Mkdir(element, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		// A strict umask must not make managed settings unreadable: a harness that cannot read them runs without.
		if err := at.Chmod(element, 0o755); err != nil && hasModes {
			return nil, err
		}
		info, err = at.Lstat(element)
	}
	if err != nil {
		return nil, err
	}
	shown := "/" + name
	if t.device.OS == "windows" {
		shown = name
	}
	if !info.IsDir() {
		return nil, refuse(CodeUnsafe, shown, "%s, not a directory; nothing is read or written through it", artifacts.Describe(info.Mode()))
	}
	if create {
		if err := t.secure(at, info, element, name, shown); err != nil {
			return nil, err
		}
	}
	next, err := at.OpenRoot(element)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		next.Close()
		return nil, refuse(CodeUnsafe, shown, "changed while it was opened")
	}
	return next, nil
}

// secure makes a managed directory root's and readable, and refuses to go through any other directory that a third party may write to.
func (t *tree) secure(at *os.Root, info fs.FileInfo, element, name, shown string) error {
	uid, _, ok := ownerOf(info)
	if !hasModes || !ok {
		return nil
	}
	if t.device.managed(strings.TrimPrefix(name, "private/")) {
		var errs []error
		if canOwn() && uid != 0 {
			errs = append(errs, at.Lchown(element, 0, 0))
		}
		if info.Mode().Perm() != 0o755 {
			errs = append(errs, at.Chmod(element, 0o755))
		}
		return errors.Join(errs...)
	}
	if uid != 0 && uid != t.uid {
		return refuse(CodeUnsafe, shown, "belongs to user %d; root must own every directory above managed files", uid)
	}
	// Others may write to a sticky directory, but not replace what is in it.
	if perm := info.Mode().Perm(); perm&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return refuse(CodeUnsafe, shown, "mode %04o lets others write to it; take that away (chmod go-w)", perm)
	}
	return nil
}

// file splits a destination into its open directory and its name there.
func (t *tree) file(dest string, create bool) (*os.Root, string, error) {
	rel := t.device.rel(dest)
	dir, err := t.dir(path.Dir(rel), create)
	return dir, path.Base(rel), err
}

// tempName is where a file is written before it takes the place of name. Only one process writes at a time, so that a leftover is overwritten by the next run.
// No harness reads a name that begins with a dot.
func tempName(name string) string { return "." + name + ".halo-new" }

// stage writes a file to disk beside its place.
func stage(dir *os.Root, name string, data []byte, owner string, mode fs.FileMode) (err error) {
	temp := tempName(name)
	if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if hasModes && err == nil {
		if owner != "" && canOwn() {
			err = f.Chown(0, 0)
		}
		if err == nil {
			err = f.Chmod(mode)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	// A full disk may show only here (NFS).
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		dir.Remove(temp)
	}
	return err
}

// commit puts a staged file in its place.
func commit(dir *os.Root, name string) error {
	if err := dir.Rename(tempName(name), name); err != nil {
		return err
	}
	return syncDir(dir)
}

// put writes a file whole: after a crash at any instant there is the old one or the new one.
func (t *tree) put(dest string, data []byte, owner string, mode fs.FileMode) error {
	dir, name, err := t.file(dest, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := stage(dir, name, data, owner, mode); err != nil {
		return shown(err, dest)
	}
	return shown(commit(dir, name), dest)
}

// shown names the destination in an error about a part of its path.
func shown(err error, dest string) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %s: %w", dest, pe.Op, pe.Err)
	case errors.As(err, &le):
		return fmt.Errorf("%s: %s: %w", dest, le.Op, le.Err)
	}
	return err
}

// remove takes a file away, and every managed directory that is empty then.
func (t *tree) remove(dest string) error {
	rel := t.device.rel(dest)
	dir, err := t.dir(path.Dir(rel), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name := path.Base(rel)
	info, err := dir.Lstat(name)
	if err == nil && info.IsDir() {
		err = refuse(CodeUnsafe, dest, "a directory, which halo did not install")
	} else if err == nil {
		err = dir.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		if err = dir.Remove(tempName(name)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = syncDir(dir)
	}
	dir.Close()
	if err != nil {
		return shown(err, dest)
	}
	for up := path.Dir(rel); t.device.managed(up); up = path.Dir(up) {
		parent, err := t.dir(path.Dir(up), false)
		if err != nil {
			return nil
		}
		// A directory that is not empty stays.
		err = parent.Remove(path.Base(up))
		parent.Close()
		if err != nil {
			return nil
		}
	}
	return nil
}

// badFile says that what stands somewhere is not a file that can be read safely.
type badFile struct{ reason string }

func (b *badFile) Error() string { return b.reason }

// read reads a regular file of at most limit bytes from an open directory: it follows no link and waits for nothing. The error is a *badFile when something else
// than such a file is there.
func read(dir *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, before, &badFile{artifacts.Describe(before.Mode()) + ", not a regular file"}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, before, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, before, err
	}
	if !info.Mode().IsRegular() || !os.SameFile(before, info) {
		return nil, before, &badFile{"changed while it was opened"}
	}
	if info.Size() > limit {
		return nil, info, &badFile{fmt.Sprintf("larger than %d bytes", limit)}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > limit {
		return nil, info, &badFile{fmt.Sprintf("larger than %d bytes", limit)}
	}
	return data, info, nil
}

// read reads a file of the device.
func (t *tree) read(dest string, limit int64) ([]byte, fs.FileInfo, error) {
	dir, name, err := t.file(dest, false)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	return read(dir, name, limit)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
