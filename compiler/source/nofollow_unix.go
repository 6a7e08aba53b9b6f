//go:build unix

package source

import (
	"io/fs"
	"os"
	"syscall"
)

// open opens a file or a directory that is no link, for reading. os.OpenFile would try to have the poller watch it, which no file of a repo can be: five system
// calls more for each.
func open(name string) (*os.File, error) {
	for {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case syscall.EINTR:
		default:
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}
