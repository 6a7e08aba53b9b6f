//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package artifacts

import (
	"os"
	"syscall"
)

// lockDir takes the lock on a directory, which its process holds until unlock or death, and reports whether it got it.
func lockDir(dir string) (unlock func(), ok bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, false
	}
	return func() { f.Close() }, true
}
