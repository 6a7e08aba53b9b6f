package artifacts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dirFS is a directory as an fs.FS that never follows a link in its last path element and never blocks on a pipe.
type dirFS string

// DirFS returns the files below dir. Unlike those of os.DirFS, Open refuses a symbolic link; it is what Verify, Inspect and Sign
// are made for. dir itself may be a link.
func DirFS(dir string) fs.FS { return dirFS(dir) }

func (d dirFS) join(name string) string {
	if name == "." {
		return string(d)
	}
	return string(d) + string(filepath.Separator) + filepath.FromSlash(name)
}

// Open opens name for reading.
func (d dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	flags := openFlags
	if name == "." {
		flags = 0
	}
	f, err := os.OpenFile(d.join(name), os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, d.relative(err, name)
	}
	return f, nil
}

// ReadDir lists a directory, sorted by name.
func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	entries, err := os.ReadDir(d.join(name))
	if err != nil {
		return nil, d.relative(err, name)
	}
	return entries, nil
}

// Close has nothing to close.
func (d dirFS) Close() error { return nil }

// relative names the file in err as in the release; the root keeps its own name.
func (d dirFS) relative(err error, name string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && name != "." {
		return &fs.PathError{Op: pe.Op, Path: name, Err: pe.Err}
	}
	return err
}

// readCapped reads a regular file of at most limit bytes.
func readCapped(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &badFileError{name, "not a regular file"}
	}
	if info.Size() > limit {
		return nil, &badFileError{name, fmt.Sprintf("larger than %d bytes", limit)}
	}
	// One byte more than expected shows a file that grows.
	data := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, data)
	switch {
	case err == nil:
		return nil, &badFileError{name, "grew while it was read"}
	case err != io.ErrUnexpectedEOF && err != io.EOF:
		return nil, err
	}
	return data[:n:n], nil
}

// fsDir is a directory of any fs.FS.
type fsDir struct {
	fsys fs.FS
	path string
}

func (d fsDir) join(name string) string {
	if d.path == "." {
		return name
	}
	return d.path + "/" + name
}

func (d fsDir) list(entries []entry, _ []byte) ([]entry, error) {
	found, err := fs.ReadDir(d.fsys, d.path)
	for _, e := range found {
		entries = append(entries, entry{e.Name(), e.Type()})
	}
	return entries, err
}

func (d fsDir) enter(name string) (directory, error) { return fsDir{d.fsys, d.join(name)}, nil }

func (d fsDir) open(name string) (file, error) {
	f, err := d.fsys.Open(d.join(name))
	if err != nil {
		return nil, err
	}
	return fsFile{f}, nil
}

func (d fsDir) close() {}

type fsFile struct{ fs.File }

func (f fsFile) stat() (fs.FileMode, int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	return info.Mode(), info.Size(), nil
}

// badFileError says that a file was read and is not what it must be, as opposed to one that could not be read.
type badFileError struct{ name, reason string }

func (e *badFileError) Error() string { return e.name + ": " + e.reason }

// Describe says what a directory entry is, for messages.
func Describe(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file (" + strings.TrimSpace(mode.String()) + ")"
}
