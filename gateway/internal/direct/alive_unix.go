//go:build unix

package direct

import (
	"net"
	"syscall"
)

// canTell says that a line knows.
const canTell = true

// line asks the system about a connection. It is made once for each, so that asking
// costs no allocation.
type line struct {
	raw  syscall.RawConn // nil where the system does not know the connection
	open bool
	look func(fd uintptr) bool
}

func lineOf(c net.Conn) *line {
	l := &line{}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			l.raw = raw
		}
	}
	l.look = func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		l.open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
	return l
}

// silent reports whether the other end of the connection has neither closed it nor sent
// anything. It does not wait.
func (l *line) silent() bool {
	l.open = false
	return l.raw != nil && l.raw.Read(l.look) == nil && l.open
}
