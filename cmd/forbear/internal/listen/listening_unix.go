//go:build unix

package listen

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listening reports whether a descriptor is a socket that listens.
func listening(fd uintptr) bool {
	v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	return err == nil && v != 0
}

// duplicate returns a copy of a socket to pass on. The copy of net's own File is put
// into blocking mode when a process is started with it, and its original with it: an
// Accept that then waits in the kernel cannot be ended by Close.
func duplicate(l syscall.Conn, name string) (*os.File, error) {
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	copied := -1
	if e := raw.Control(func(fd uintptr) { copied, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); e != nil {
		return nil, e
	}
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(copied), name), nil
}
