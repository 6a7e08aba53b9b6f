package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Edit is a file to make or to change.
type Edit struct {
	// Path is relative, with "/".
	Path string
	// Was is what the file must hold now, nil when there must be none.
	Was  []byte
	Data []byte
}

// WriteEdits makes and changes files below dir, in order. Everything is written beside its place first; then each file takes its place whole, by rename. A run that is
// killed leaves some of the edits done, the first ones, and no file half written; a run that fails takes back what it did. A file that is there and should not be, or
// that is not what it was, stops the run before anything is done. New files get the mode of the process, changed ones keep theirs. A link is not followed.
func WriteEdits(ctx context.Context, dir string, edits []Edit) (err error) {
	failed := func(name string, err error) error {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return fmt.Errorf("write %s: %w", name, err)
	}
	full := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	var undo []func() error
	defer func() {
		if err == nil {
			return
		}
		for i := len(undo) - 1; i >= 0; i-- {
			if failure := undo[i](); failure != nil {
				err = errors.Join(err, failure)
			}
		}
	}()
	var temps []string
	defer func() {
		for _, t := range temps {
			os.Remove(t)
		}
	}()
	for _, e := range edits {
		if err := checkPath(e.Path); err != nil {
			return fmt.Errorf("write %q: %w", e.Path, err)
		}
		made, err := makeDirs(dir, path.Dir(e.Path))
		for _, d := range made {
			undo = append(undo, func() error { return os.Remove(d) })
		}
		if err != nil {
			return failed(e.Path, err)
		}
		mode := fs.FileMode(0o666)
		switch info, err := os.Lstat(full(e.Path)); {
		case errors.Is(err, fs.ErrNotExist) && e.Was == nil:
		case err != nil:
			return failed(e.Path, err)
		case e.Was == nil:
			return failed(e.Path, fs.ErrExist)
		case !info.Mode().IsRegular():
			return failed(e.Path, errors.New("not a regular file"))
		default:
			mode = info.Mode().Perm()
		}
		temp, err := writeBeside(full(e.Path), e.Data, mode, e.Was != nil)
		if temp != "" {
			temps = append(temps, temp)
		}
		if err != nil {
			return failed(e.Path, err)
		}
	}
	for _, e := range edits {
		if e.Was == nil {
			continue
		}
		if is, err := os.ReadFile(full(e.Path)); err != nil {
			return failed(e.Path, err)
		} else if !bytes.Equal(is, e.Was) {
			return failed(e.Path, errors.New("the file changed meanwhile; run halo again"))
		}
	}
	for i, e := range edits {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := full(e.Path)
		if e.Was == nil {
			// A file that another program made meanwhile is not replaced.
			if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
				return failed(e.Path, fs.ErrExist)
			}
		}
		if err := os.Rename(temps[i], at); err != nil {
			return failed(e.Path, err)
		}
		undo = append(undo, func() error {
			if e.Was == nil {
				return os.Remove(at)
			}
			info, err := os.Lstat(at)
			if err != nil {
				return err
			}
			old, err := writeBeside(at, e.Was, info.Mode().Perm(), true)
			if err != nil {
				return errors.Join(err, os.Remove(old))
			}
			return os.Rename(old, at)
		})
	}
	return nil
}

// makeDirs makes the directories of a path below dir that are missing, and returns those it made.
func makeDirs(dir, name string) (made []string, err error) {
	if name == "." {
		return nil, nil
	}
	at := dir
	for part := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, part)
		switch info, err := os.Lstat(at); {
		case errors.Is(err, fs.ErrNotExist):
			if err := os.Mkdir(at, 0o777); err != nil {
				return made, err
			}
			made = append(made, at)
		case err != nil:
			return made, err
		case !info.IsDir():
			return made, fmt.Errorf("%s is not a directory", at)
		}
	}
	return made, nil
}

// writeBeside writes data to a new file beside a path, on the disk, and returns its name. Its name begins with a dot, so that it is never read as policy.
func writeBeside(at string, data []byte, mode fs.FileMode, exactly bool) (temp string, err error) {
	for i := range 100 {
		temp = filepath.Join(filepath.Dir(at), fmt.Sprintf(".%s%s%d", filepath.Base(at), newMark, i))
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if exactly {
			err = f.Chmod(mode)
		}
		if err == nil {
			_, err = f.Write(data)
		}
		if err == nil {
			err = f.Sync()
		}
		return temp, errors.Join(err, f.Close())
	}
	return "", errors.New("too many files of runs that were killed lie beside it: remove those whose names hold " + newMark)
}
