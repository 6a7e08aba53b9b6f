//go:build unix

package sign

import "syscall"

// openNonblock keeps open from waiting for a writer when a path names a pipe.
const openNonblock = syscall.O_NONBLOCK
