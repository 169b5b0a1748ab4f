// Package loopback tells whether a host is this machine. What can be reached
// from here alone needs no token, and a secret may go there in clear: a wrong
// yes opens a door.
package loopback

import (
	"net"
	"strings"
)

// Host reports whether a host, with or without a port, is this machine by its
// spelling: "localhost" in any case (RFC 6761 section 6.3) or a loopback address
// (RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3), in brackets or not.
// Nothing is resolved: a name that a stranger controls may resolve to 127.0.0.1.
func Host(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		// A request's Host may be an address without a port.
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return false
		}
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
