//go:build !unix

package pack

import "io/fs"

// FileUID has no answer here: DefenseClaw does not check owners on this system.
func FileUID(fs.FileInfo) (uid int, ok bool) { return 0, false }
