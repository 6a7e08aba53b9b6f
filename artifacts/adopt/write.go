package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Write writes files that must not exist, each whole or not at all, and none when one exists or cannot be written. Folders above them are made.
func Write(files map[string][]byte) (err error) {
	var made, temps []string
	defer func() {
		for _, t := range temps {
			os.Remove(t)
		}
		if err != nil {
			for _, m := range made {
				os.Remove(m)
			}
		}
	}()
	paths := slices.Sorted(maps.Keys(files))
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			return fmt.Errorf("%s exists and is not overwritten", p)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write %s: %w", p, err)
		}
	}
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
		f, err := os.CreateTemp(filepath.Dir(p), "."+filepath.Base(p)+".halo-")
		if err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
		temps = append(temps, f.Name())
		_, err = f.Write(files[p])
		if err := errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("write %s: %w", p, err)
		}
		// A link, unlike a rename, never takes the place of a file that came in between.
		if err := os.Link(f.Name(), p); err != nil {
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists and is not overwritten", p)
			}
			return fmt.Errorf("write %s: %w", p, err)
		}
		made = append(made, p)
	}
	return nil
}
