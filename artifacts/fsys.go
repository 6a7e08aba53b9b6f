package artifacts

import (
	"context"
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

// badFileError says that a file was read and is not what it must be, as opposed to one that could not be read.
type badFileError struct{ name, reason string }

func (e *badFileError) Error() string { return e.name + ": " + e.reason }

// tree is what stands in a release directory, compared with a manifest.
type tree struct {
	signatures []string  // names of the unlisted files that are allowed, sorted
	seen       []bool    // by index in Manifest.Files: a regular file is there
	extra      []Problem // files, directories and other things that are not wanted, or wanted as something else
}

// walk lists fsys. Directories that no listed file needs are reported and not entered. The error is one of reading.
func walk(ctx context.Context, fsys fs.FS, m *Manifest) (*tree, error) {
	t := &tree{seen: make([]bool, len(m.Files))}
	index := make(map[string]int, len(m.Files))
	dirs := make(map[string]struct{})
	last := ""
	for i, f := range m.Files {
		index[f.Path] = i
		for j := sharedDirs(last, f.Path); j < len(f.Path); j++ {
			if f.Path[j] == '/' {
				dirs[f.Path[:j]] = struct{}{}
			}
		}
		last = f.Path
	}
	var enter func(dir string) error
	enter = func(dir string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := fs.ReadDir(fsys, dir)
		if err != nil {
			return err
		}
		prefix := ""
		if dir != "." {
			prefix = dir + "/"
		}
		for _, e := range entries {
			path := prefix + e.Name()
			i, listed := index[path]
			_, isDir := dirs[path]
			signature := dir == "." && (path == ManifestName || isSignatureName(path))
			switch mode := e.Type(); {
			case mode.IsDir() && isDir:
				if err := enter(path); err != nil {
					return err
				}
			case mode.IsRegular() && listed:
				t.seen[i] = true
			case mode.IsRegular() && signature:
				if path != ManifestName {
					t.signatures = append(t.signatures, path)
				}
			case listed || isDir || signature:
				if listed {
					t.seen[i] = true
				}
				t.extra = append(t.extra, Problem{path, describe(mode) + " where the release has a " + wanted(isDir)})
			default:
				t.extra = append(t.extra, Problem{path, describe(mode) + " that is not in the manifest"})
			}
		}
		return nil
	}
	return t, enter(".")
}

func wanted(dir bool) string {
	if dir {
		return "directory"
	}
	return "file"
}

func describe(mode fs.FileMode) string {
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
