//go:build unix

package pack

import (
	"io/fs"
	"syscall"
)

// FileUID returns the owner of a file of the operating system; ok is false for other files.
func FileUID(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
