//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package artifacts

import (
	"os"
	"path/filepath"
)

// lockDir cannot lock a directory here. A directory that is still empty is one's own; any other may have a living writer and stays.
func lockDir(dir string) (unlock func(), ok bool) {
	entries, err := os.ReadDir(filepath.Clean(dir))
	return func() {}, err == nil && len(entries) == 0
}
