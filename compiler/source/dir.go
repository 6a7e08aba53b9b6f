package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir returns the file system of a directory, which may itself be reached through a link. Inside it no link is followed: opening one is an error. It costs one
// system call to open a file, where os.Root takes one for each directory above it.
func Dir(name string) (fs.FS, error) {
	abs, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a directory")}
	}
	return dirFS(abs), nil
}

type dirFS string

func (d dirFS) full(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	local, err := filepath.Localize(name)
	if err != nil {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return filepath.Join(string(d), local), nil
}

// Open opens a file. The last element of the path must not be a link; the walk enters no directory that is one.
func (d dirFS) Open(name string) (fs.File, error) {
	full, err := d.full("open", name)
	if err != nil {
		return nil, err
	}
	return open(full)
}

// Lstat describes a file without following a link.
func (d dirFS) Lstat(name string) (fs.FileInfo, error) {
	full, err := d.full("lstat", name)
	if err != nil {
		return nil, err
	}
	return os.Lstat(full)
}

// Stat is Lstat: in a policy repo a link stands for nothing else.
func (d dirFS) Stat(name string) (fs.FileInfo, error) { return d.Lstat(name) }

// ReadLink is not supported: no link is followed.
func (d dirFS) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: errors.ErrUnsupported}
}

// ReadDir lists a directory in order of names. A link to a directory is none.
func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	full, err := d.full("readdir", name)
	if err != nil {
		return nil, err
	}
	f, err := open(full)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
