package pack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"halos.dev/halo/compiler/diag"
)

// Finder finds packs on a device, or in any tree that looks like one.
type Finder struct {
	// FS is the root of the file system: /etc/x is asked for as etc/x (on Windows FS is a drive). It should implement fs.ReadLinkFS, as os.DirFS does;
	// otherwise links cannot be told from files.
	FS fs.FS
	// Dir is openshell.pack_dir, absolute or starting with ~/; "" turns names of custom packs off.
	Dir string
	// Home is the home directory of the device, "" when it is not known.
	Home string
	// Owner, when not nil, makes Find refuse packs that somebody else could change. See OwnerCheck.
	Owner *OwnerCheck
}

// OwnerCheck is DefenseClaw's check of who owns a pack file and its directory. It belongs to a device, not to a checkout.
type OwnerCheck struct {
	// User is the id of the user whose sandboxes use the pack.
	User int
	// UID returns the owner of a file; ok is false where the system has no such thing, and nothing is checked.
	UID func(fs.FileInfo) (uid int, ok bool)
}

// File is a pack with the bytes it was read from.
type File struct {
	*Pack
	Data []byte
	// Warnings are what is doubtful about a pack that loads. Their file index is 0.
	Warnings []diag.Diagnostic
}

// Find is Read without the bytes.
func (f Finder) Find(ref string) (*Pack, error) {
	file, err := f.Read(ref)
	if err != nil {
		return nil, err
	}
	return file.Pack, nil
}

// Read loads what a reference names: "" is the open pack, the built-in names always the built-in packs, another name <pack_dir>/<name>/pack.yaml, anything
// else an absolute path or one that starts with ~/. The error is an *Error.
func (f Finder) Read(ref string) (*File, error) {
	ref = strings.TrimSpace(ref)
	switch {
	case ref == "":
		return builtin("open")
	case IsBuiltin(ref):
		return builtin(ref)
	case ValidName(ref):
		if f.Dir == "" {
			return nil, &Error{Path: ref, Class: "not_found", Reason: "pack not found: openshell.pack_dir is empty, so only the built-in packs have names"}
		}
		dir, err := f.absolute(f.Dir)
		if err != nil {
			return nil, err
		}
		return f.directory(dir+"/"+ref, ref)
	}
	name, err := f.absolute(ref)
	if err != nil {
		return nil, err
	}
	info, err := f.lstat(name, ref)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return f.directory(name, "")
	}
	return f.file(name, info, "")
}

// ValidReference reports whether s can name a pack at all: empty, a name, an absolute path or one that starts with ~/.
func ValidReference(s string) bool {
	s = strings.TrimSpace(s)
	return s == "" || ValidName(s) || absoluteFolder(s) || strings.HasPrefix(s, "~/")
}

// absolute cleans a path and puts the home directory in; what is left has no ~ and no .. segments.
func (f Finder) absolute(ref string) (string, error) {
	name := ref
	if rest, ok := strings.CutPrefix(ref, "~/"); ok {
		if f.Home == "" {
			return "", &Error{Path: ref, Class: "not_found", Reason: "the home directory is not known"}
		}
		name = f.Home + "/" + rest
	}
	if !absoluteFolder(name) {
		return "", &Error{Path: ref, Class: "relative_path", Reason: `must be a pack name, an absolute path or a path that starts with "~/"`}
	}
	return path.Clean(driveSlashes(name)), nil
}

// inFS turns an absolute path into a name in FS.
func inFS(name string) string {
	if hasDrive(name) {
		name = name[2:]
	}
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return "."
	}
	return name
}

// lstat refuses links; shown names the pack in the error when nothing is there.
func (f Finder) lstat(name, shown string) (fs.FileInfo, error) {
	info, err := fs.Lstat(f.FS, inFS(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Path: shown, Class: "not_found", Reason: "pack not found: there is no " + name}
	case err != nil:
		return nil, unreadable(name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &Error{Path: name, Class: "symlink", Reason: "must not be a symbolic link"}
	}
	return info, nil
}

func unreadable(name string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &Error{Path: name, Class: "unreadable", Reason: "cannot be read: " + err.Error()}
}

// directory loads the pack of a directory; name is the name that led there, "" when a path did.
func (f Finder) directory(dir, name string) (*File, error) {
	shown := dir
	if name != "" {
		shown = name
	}
	info, err := f.lstat(dir, shown)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &Error{Path: dir, Class: "not_regular", Reason: "must be a directory that holds a pack.yaml"}
	}
	file := dir + "/" + FileName
	if info, err = f.lstat(file, shown); err != nil {
		return nil, err
	}
	return f.file(file, info, name)
}

func (f Finder) file(name string, info fs.FileInfo, mustName string) (*File, error) {
	// A FIFO would block the reader, so the type is asked before the file is opened, and again of what was opened.
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: name, Class: "not_regular", Reason: "must be a regular file"}
	}
	file, err := f.FS.Open(inFS(name))
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: name, Class: "not_regular", Reason: "must be a regular file"}
	}
	if f.Owner != nil {
		dir, err := fs.Stat(f.FS, path.Dir(inFS(name)))
		if err != nil {
			return nil, unreadable(path.Dir(name), err)
		}
		if err := f.Owner.check(name, info, dir); err != nil {
			return nil, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	p, problems := read(name, data, mustName)
	if err := firstError(name, problems); err != nil {
		return nil, err
	}
	return &File{p, data, diagnostics(problems, 0)}, nil
}

// Owned is what the owner check looks at.
type Owned struct {
	UID  int
	Mode fs.FileMode
}

func (c *OwnerCheck) check(name string, file, dir fs.FileInfo) error {
	fileUID, ok := c.UID(file)
	dirUID, okDir := c.UID(dir)
	if !ok || !okDir {
		return nil
	}
	return CheckOwner(name, c.User, Owned{fileUID, file.Mode()}, Owned{dirUID, dir.Mode()})
}

// CheckOwner applies DefenseClaw's rule to a pack file and the directory that holds it: both belong to the user or root, neither can be written by others or
// a group; a sticky directory that others may write to is accepted only for a file of root. The error is an *Error.
func CheckOwner(name string, user int, file, dir Owned) error {
	const group, world = 0o020, 0o002
	fail := func(class, what string) error { return &Error{Path: name, Class: class, Reason: what} }
	foreign := func(uid int) bool { return uid != user && uid != 0 }
	switch {
	case foreign(file.UID):
		return fail("foreign_owner", fmt.Sprintf("is owned by user %d, not by user %d or root", file.UID, user))
	case file.Mode&world != 0:
		return fail("world_writable", "can be written by everybody")
	case file.Mode&group != 0:
		return fail("group_writable", "can be written by its group")
	case foreign(dir.UID):
		return fail("foreign_owner", fmt.Sprintf("its directory is owned by user %d, not by user %d or root", dir.UID, user))
	case dir.Mode&(group|world) == 0 || dir.Mode&fs.ModeSticky != 0 && file.UID == 0:
		return nil
	case dir.Mode&world != 0:
		return fail("world_writable", "its directory can be written by everybody")
	}
	return fail("group_writable", "its directory can be written by its group")
}

// Entry is one pack of a listing: a pack, or why it does not load.
type Entry struct {
	Name string
	File *File
	Err  error
}

// maxEntries bounds a listing, as DefenseClaw's does.
const maxEntries = 256

// List returns the built-in packs and then those of Dir by name. Names that start with a dot, plain files and directories without a pack.yaml are left
// out; links, bad names and packs that do not load are entries with an error.
func (f Finder) List() ([]Entry, error) {
	var out []Entry
	for _, name := range profiles {
		p, err := builtin(name)
		out = append(out, Entry{name, p, err})
	}
	if f.Dir == "" {
		return out, nil
	}
	dir, err := f.absolute(f.Dir)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.FS, inFS(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, unreadable(dir, err)
	}
	if len(entries) > maxEntries {
		return nil, &Error{Path: dir, Class: "too_many", Reason: fmt.Sprintf("holds %d entries (at most %d)", len(entries), maxEntries)}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name := e.Name()
		link := e.Type()&fs.ModeSymlink != 0
		if strings.HasPrefix(name, ".") || !e.IsDir() && !link {
			continue
		}
		full := dir + "/" + name
		var p *File
		switch {
		case link:
			err = &Error{Path: full, Class: "symlink", Reason: "must not be a symbolic link"}
		case !ValidName(name):
			err = &Error{Path: full, Class: "invalid_name", Reason: fmt.Sprintf("%q must be lowercase letters, digits and dashes (at most 63)", name)}
		case IsBuiltin(name):
			err = &Error{Path: full, Class: "reserved_name", Reason: fmt.Sprintf("%q is a built-in pack name; custom packs need their own name", name)}
		default:
			p, err = f.directory(full, name)
			if missing, ok := errors.AsType[*Error](err); ok && missing.Class == "not_found" {
				continue
			}
		}
		out = append(out, Entry{name, p, err})
	}
	return out, nil
}
