//go:build unix

package listen

import "syscall"

// listening reports whether a descriptor is a socket that listens.
func listening(fd uintptr) bool {
	v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	return err == nil && v != 0
}
