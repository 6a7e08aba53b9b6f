//go:build linux || darwin

package artifacts

import (
	"os/signal"
	"syscall"
)

// limitFileSize makes every write beyond n bytes of a file fail in this process; 0 only says whether that works here.
func limitFileSize(n uint64) error {
	if n == 0 {
		return nil
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}

func setUmask(mask int) { syscall.Umask(mask) }
