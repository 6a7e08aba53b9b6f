//go:build unix

package device

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags do not wait for a writer of a pipe.
const openFlags = syscall.O_NONBLOCK

// ownerOf returns the numeric owner and group of a file.
func ownerOf(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// canOwn reports whether this process may give files to others.
func canOwn() bool { return os.Geteuid() == 0 }

// hasModes reports whether files have permission bits.
const hasModes = true

// lock waits for nothing: it takes the lock on an open file, which its process holds until it is closed or dies.
func lock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// syncDir makes renames in a directory durable.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
