//go:build linux

package grpcretry

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), in milliseconds.
const tcpUserTimeout = 18

// boundUnacknowledged is what gRPC does for clients that ping, on connections that it
// knows to be TCP's own.
func boundUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unacknowledged.Milliseconds()))
	})
	if cerr != nil {
		return cerr
	}
	return err
}
