//go:build unix

package handover

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isListening reports whether a descriptor is a socket that listens.
func isListening(fd uintptr) bool {
	v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	return err == nil && v != 0
}

// duplicate returns a copy of a socket to pass on. os/exec puts the copy that net's own
// File makes into blocking mode, and the original with it: Close cannot end an Accept that
// then waits in the kernel.
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

// closeToOthers makes the file of a unix socket inaccessible to other users from its first
// moment, on Linux: there the file gets the mode of the socket. Elsewhere its mode follows
// the umask until listenUnix sets it.
func closeToOthers(_, _ string, c syscall.RawConn) (err error) {
	if runtime.GOOS != "linux" {
		return nil
	}
	if e := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); e != nil {
		return e
	}
	return err
}

// closeOnExec keeps a descriptor from other processes that this one starts.
func closeOnExec(f *os.File) { syscall.CloseOnExec(int(f.Fd())) }
