// Package watch repeats a check when the files below a directory change.
package watch

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a burst of changes may last before the next check, and retry how long a directory that cannot be watched, because it is gone, say, is left alone.
const (
	settle = 50 * time.Millisecond
	retry  = time.Second
)

// Run calls check, and again after each change below dir, until ctx is done. Directories are watched, not files, so that an editor that puts a new file in the place
// of the old one is seen; directories that come are watched too. While dir cannot be watched the check is repeated every second.
func Run(ctx context.Context, dir string, check func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	// What is there before the first look is watched before it: a change during the look must not be lost.
	watched := add(w, dir)
	for {
		check()
		if ctx.Err() != nil {
			return nil
		}
		timer := time.NewTimer(retry)
		if watched {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-w.Events:
			drain(ctx, w)
		case <-w.Errors:
			// Changes were lost; look at everything.
		}
		timer.Stop()
		watched = add(w, dir)
	}
}

// drain waits for a burst of changes to end, and no longer than settle: what changes without end must be looked at too.
func drain(ctx context.Context, w *fsnotify.Watcher) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Events:
		case <-timer.C:
			return
		}
	}
}

// add watches dir and every directory below it but git's own. To watch what is watched is no change. It reports whether dir itself is watched.
func add(w *fsnotify.Watcher, dir string) bool {
	ok := false
	// What cannot be listed is not watched; the check says why it cannot be read.
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.IsDir():
			return nil
		case d.Name() == ".git" && p != dir:
			return fs.SkipDir
		}
		if w.Add(p) == nil && p == dir {
			ok = true
		}
		return nil
	})
	return ok
}
