//go:build unix

package artifacts

import "syscall"

// openFlags refuse a symbolic link and do not wait for a writer of a pipe.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
