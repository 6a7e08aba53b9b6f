//go:build unix

package artifacts

import "syscall"

func makePipe(path string) error { return syscall.Mkfifo(path, 0o644) }
