// Package sendqueue asks the system how much of what was written to a connection has
// not been acknowledged by its other end. A write returns when the kernel has taken
// the bytes, megabytes ahead of a slow line; only the queue says that they still move.
package sendqueue

import (
	"net"
	"syscall"
)

// Len returns the number of bytes in the send queue of c; ok is false where the
// system does not say. A TLS connection is asked for the one below.
func Len(c net.Conn) (n int, ok bool) {
	if secured, is := c.(interface{ NetConn() net.Conn }); is {
		c = secured.NetConn()
	}
	below, is := c.(syscall.Conn)
	if !is {
		return 0, false
	}
	raw, err := below.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) { n, ok = length(fd) })
	return n, ok && err == nil
}
