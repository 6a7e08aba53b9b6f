//go:build unix

package source

import "syscall"

const noFollow = syscall.O_NOFOLLOW
