//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package idempotency

import (
	"os"
	"syscall"
)

// lockFile makes f this process's for as long as it is open, or returns errLocked.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errLocked
	}
	return err
}
