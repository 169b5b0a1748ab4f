//go:build unix

package check

import (
	"syscall"
	"time"
)

// spent is the time that the process has had of processors: what others have of them
// does not count.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
