//go:build unix

package direct

import (
	"net"
	"syscall"
)

// canTell says that alive knows.
const canTell = true

// alive reports whether an idle connection can be used: its server has neither closed it
// nor sent anything, which would be the response to no request. It asks the system
// without waiting.
func alive(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		open = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && open
}
