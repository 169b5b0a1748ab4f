// Package tcpstate asks the system what it knows of a connection and the program does
// not: how many of the written bytes have not been acknowledged by the other end, and when
// something last came from there. A write returns when the kernel has taken the bytes,
// megabytes ahead of a slow line, and a connection that a firewall has forgotten looks
// like one whose server is slow.
package tcpstate

import (
	"net"
	"syscall"
	"time"
)

// Queued returns the number of bytes in the send queue of c; ok is false where the
// system does not say. A TLS connection is asked for the one below.
func Queued(c net.Conn) (n int, ok bool) {
	told := control(c, func(fd uintptr) { n, ok = queued(fd) })
	return n, told && ok
}

// Quiet returns how long ago data last came, to some milliseconds; acknowledgments are
// none. A connection on which none has come counts from its making.
func Quiet(c net.Conn) (d time.Duration, ok bool) {
	told := control(c, func(fd uintptr) { d, ok = quiet(fd) })
	return d, told && ok
}

func control(c net.Conn, ask func(fd uintptr)) bool {
	if secured, is := c.(interface{ NetConn() net.Conn }); is {
		c = secured.NetConn()
	}
	below, is := c.(syscall.Conn)
	if !is {
		return false
	}
	raw, err := below.SyscallConn()
	return err == nil && raw.Control(ask) == nil
}
