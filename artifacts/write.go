package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"halos.dev/halo/compiler/diag"
)

// OutError says why a directory cannot be replaced by a release. It is exit status 2.
type OutError struct {
	// Code is the diagnostic code of the finding.
	Code *diag.Code
	// Path is the directory as given.
	Path string
	// Reason is what was found.
	Reason string
}

func (e *OutError) Error() string { return e.Path + ": " + e.Reason }

// Names of the siblings of an output directory NAME while it is written: .NAME.halo-new-RANDOM and .NAME.halo-old-RANDOM.
const (
	newMark = ".halo-new-"
	oldMark = ".halo-old-"
)

// Write writes the release to the directory out. Everything is written to a sibling directory first and then takes the place of
// out by rename, so that a run that is killed or fails leaves the old release (on systems without an atomic exchange of names, such
// as Windows, possibly only under its temporary name, from where the next run puts it back). Leftovers of dead runs are removed.
//
// An existing out must be an empty directory or a release that holds nothing else: nothing that halo did not write is ever removed.
// Otherwise the error is an *OutError. Modes are 0755 and 0644 whatever the umask. Payload is not forced to disk: after a power
// cut a release that is not whole does not verify, and is built again.
func (r *Release) Write(ctx context.Context, out string) error {
	return writeDir(ctx, out, r.all(), place{"release", CodeNotRelease, ownRelease})
}

// WriteDir writes files, which are named by safe relative paths with "/", to the directory out as Write does: whole or not at all, modes 0755 and 0644. what
// names the thing in messages. An existing directory is replaced when it is empty or when ours, which is asked about its files, returns ""; any other answer is the
// reason of an *OutError with the given code.
func WriteDir(ctx context.Context, out, what string, code *diag.Code, files map[string][]byte, ours func(fs.FS) (reason string, err error)) error {
	list := make([]content, 0, len(files))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := checkPath(path); err != nil {
			return fmt.Errorf("write %s: %q: %w", what, path, err)
		}
		list = append(list, content{path: path, data: files[path]})
	}
	return writeDir(ctx, out, list, place{what, code, func(_ context.Context, fsys fs.FS) (string, error) { return ours(fsys) }})
}

// place says what may stand at the output directory.
type place struct {
	what string
	code *diag.Code
	// ours returns why a directory that is not empty must stay, or "".
	ours func(context.Context, fs.FS) (reason string, err error)
}

func writeDir(ctx context.Context, out string, files []content, p place) error {
	failed := func(err error) error { return fmt.Errorf("write %s: %w", p.what, err) }
	abs, err := filepath.Abs(out)
	if err != nil {
		return failed(err)
	}
	parent, name := filepath.Split(abs)
	if name == "" {
		return &OutError{p.code, out, "a file system root cannot be " + article(p.what)}
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return failed(err)
	}
	if err := recoverLeftovers(parent, name, abs); err != nil {
		return failed(err)
	}
	was, err := p.replaceable(ctx, abs, out)
	if err != nil {
		return err
	}
	tmp, unlock, err := makeTemp(parent, "."+name+newMark)
	if err != nil {
		return failed(err)
	}
	defer unlock()
	if err := writeTree(ctx, tmp, files); err != nil {
		os.RemoveAll(tmp)
		return failed(err)
	}
	// Another directory may stand there by now: look again before it is replaced.
	if is, err := os.Lstat(abs); was != nil && (err != nil || !os.SameFile(was, is)) {
		if was, err = p.replaceable(ctx, abs, out); err != nil {
			os.RemoveAll(tmp)
			return err
		}
	}
	if err := swap(tmp, abs, parent, name, was != nil); err != nil {
		os.RemoveAll(tmp)
		return failed(err)
	}
	return nil
}

// article puts a or an before a noun.
func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}

// swap puts tmp in the place of out and removes what was there.
func swap(tmp, out, parent, name string, exists bool) error {
	if !exists {
		return os.Rename(tmp, out)
	}
	if err := exchange(tmp, out); err == nil {
		return os.RemoveAll(tmp)
	} else if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// Two renames: between them out is missing, and recoverLeftovers of the next run puts the old one back.
	old, err := os.MkdirTemp(parent, "."+name+oldMark)
	if err != nil {
		return err
	}
	if err := os.Remove(old); err != nil {
		return err
	}
	if err := os.Rename(out, old); err != nil {
		return err
	}
	if err := os.Rename(tmp, out); err != nil {
		return errors.Join(err, os.Rename(old, out))
	}
	return os.RemoveAll(old)
}

// recoverLeftovers tidies up after runs that were killed: an old release is put back when out is missing, and temporary
// directories whose writer is dead are removed.
func recoverLeftovers(parent, name, out string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		switch {
		case !e.IsDir():
		case strings.HasPrefix(e.Name(), "."+name+oldMark):
			if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
				if err := os.Rename(path, out); err != nil {
					return err
				}
			} else if err := os.RemoveAll(path); err != nil {
				return err
			}
		case strings.HasPrefix(e.Name(), "."+name+newMark):
			unlock, mine := lockDir(path)
			if !mine {
				continue
			}
			err := os.RemoveAll(path)
			unlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// makeTemp makes a directory that other runs see as in use until unlock is called.
func makeTemp(parent, prefix string) (dir string, unlock func(), err error) {
	for range 10 {
		if dir, err = os.MkdirTemp(parent, prefix); err != nil {
			return "", nil, err
		}
		// Another run may take a new directory for a leftover before it is locked; then there is a next try.
		if unlock, ok := lockDir(dir); ok {
			if _, err = os.Lstat(dir); err == nil {
				return dir, unlock, nil
			}
			unlock()
		}
	}
	return "", nil, fmt.Errorf("cannot hold a temporary directory in %s", parent)
}

// replaceable returns what stands at abs, nil when nothing does, or says why it must not be replaced.
func (p place) replaceable(ctx context.Context, abs, shown string) (fs.FileInfo, error) {
	refuse := func(format string, args ...any) (fs.FileInfo, error) {
		return nil, &OutError{p.code, shown, fmt.Sprintf(format, args...)}
	}
	info, err := os.Lstat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("write %s: %w", p.what, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return refuse("a symbolic link, not %s; give the directory itself", article(p.what))
	case !info.IsDir():
		return refuse("a file, not %s", article(p.what))
	}
	fsys := DirFS(abs)
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", p.what, err)
	}
	if len(entries) == 0 {
		return info, nil
	}
	reason, err := p.ours(ctx, fsys)
	switch {
	case reason != "":
		return refuse("%s", reason)
	case err != nil:
		return nil, fmt.Errorf("write %s: %w", p.what, err)
	}
	return info, nil
}

// ownRelease says why a directory that is not empty is not a release that holds nothing else.
func ownRelease(ctx context.Context, fsys fs.FS) (reason string, err error) {
	data, err := readCapped(fsys, ManifestName, MaxManifestSize)
	if err != nil {
		return fmt.Sprintf("not empty and not a halo release (no %s)", ManifestName), nil
	}
	m, err := ParseManifest(data)
	if err != nil {
		return fmt.Sprintf("not empty and not a halo release (%s: %v)", ManifestName, err), nil
	}
	problems, unread := walk(ctx, fsys, m, false)
	for _, p := range problems {
		if p.Message != missing {
			return fmt.Sprintf("%s: %s, and nothing that halo did not write is removed; move it away or choose another directory", p.Path, p.Message), nil
		}
	}
	return "", unread
}

// writeTree writes files, sorted but for the last few, below the empty directory dir.
func writeTree(ctx context.Context, dir string, files []content) error {
	// Whether the umask (or a default access list) changes modes shows on one directory and one file; only then each is set by hand.
	probe := filepath.Join(dir, "probe")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(probe, 0o755), createFile(probe+".file", nil, false)); err != nil {
		return err
	}
	setDirs, setFiles := modeDiffers(probe, 0o755), modeDiffers(probe+".file", 0o644)
	if err := errors.Join(os.Remove(probe), os.Remove(probe+".file")); err != nil {
		return err
	}
	last := ""
	for _, f := range files {
		for j := sharedDirs(last, f.path); j < len(f.path); j++ {
			if f.path[j] != '/' {
				continue
			}
			path := dir + "/" + f.path[:j]
			if err := os.Mkdir(path, 0o755); err != nil {
				return err
			}
			if setDirs {
				if err := os.Chmod(path, 0o755); err != nil {
					return err
				}
			}
		}
		last = f.path
	}
	errs := make([]error, len(files))
	var failed atomic.Bool
	each(len(files), 32, func(_, i int) {
		if failed.Load() {
			return
		}
		if errs[i] = ctx.Err(); errs[i] == nil {
			data := files[i].data
			if read := files[i].read; read != nil {
				data, errs[i] = read()
			}
			if errs[i] == nil {
				errs[i] = createFile(dir+"/"+files[i].path, data, setFiles)
			}
		}
		if errs[i] != nil {
			failed.Store(true)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// modeDiffers reports whether path has another mode than want, on systems that have modes.
func modeDiffers(path string, want fs.FileMode) bool {
	info, err := os.Lstat(path)
	return runtime.GOOS != "windows" && (err != nil || info.Mode()&^fs.ModeDir != want)
}
