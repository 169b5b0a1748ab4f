//go:build linux

package sendqueue

import (
	"syscall"
	"unsafe"
)

// length is SIOCOUTQ of tcp(7), which has the number of TIOCOUTQ.
func length(fd uintptr) (int, bool) {
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	return int(n), errno == 0
}
