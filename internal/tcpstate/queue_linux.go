//go:build linux

package tcpstate

import (
	"syscall"
	"unsafe"
)

// queued is SIOCOUTQ of tcp(7), which has the number of TIOCOUTQ.
func queued(fd uintptr) (int, bool) {
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&n)))
	return int(n), errno == 0
}
