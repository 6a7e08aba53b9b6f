package device

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const openFlags = 0

// ownerOf knows no numeric owners on Windows.
func ownerOf(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

// canOwn reports whether this process may give files to others.
func canOwn() bool { return false }

// hasModes reports whether files have permission bits.
const hasModes = false

// lock waits for nothing: it takes the lock on an open file, which its process holds until it is closed or dies.
func lock(f *os.File) bool {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{}) == nil
}

// syncDir has no counterpart on Windows.
func syncDir(*os.Root) error { return nil }
