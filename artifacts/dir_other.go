//go:build !linux

package artifacts

import "io/fs"

// openRoot opens the directory that fsys is.
func openRoot(fsys fs.FS) (directory, error) { return fsDir{fsys, "."}, nil }
