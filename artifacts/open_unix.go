//go:build unix

package artifacts

import (
	"io/fs"
	"syscall"
)

// openFlags refuse a symbolic link and do not wait for a writer of a pipe.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// createFile writes a file that is not there yet, and sets its mode by hand when setMode. os.OpenFile would try to have the poller watch it: five system calls more for each of
// thousands of files.
func createFile(path string, data []byte, setMode bool) error {
	fd, err := again(func() (int, error) {
		return syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for n := 0; len(data) > 0 && err == nil; data = data[n:] {
		if n, err = again(func() (int, error) { return syscall.Write(fd, data) }); err != nil {
			n = 0
			err = &fs.PathError{Op: "write", Path: path, Err: err}
		}
	}
	if err == nil && setMode {
		if err = syscall.Fchmod(fd, 0o644); err != nil {
			err = &fs.PathError{Op: "chmod", Path: path, Err: err}
		}
	}
	// A full disk may show only here (NFS).
	if closeErr := syscall.Close(fd); err == nil && closeErr != nil && closeErr != syscall.EINTR {
		err = &fs.PathError{Op: "close", Path: path, Err: closeErr}
	}
	return err
}

// again repeats a system call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}
