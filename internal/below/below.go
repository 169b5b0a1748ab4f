// Package below has the transport that an edge sends through where a program names
// none.
package below

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Transport returns what an http.Client without a transport would send through,
// with connect as the time to make a connection. That is a copy of
// [http.DefaultTransport]. A program that has put something of its own in its place,
// for tracing or for tests, gets that itself: how long a connection may take to be
// made is then for it to say.
func Transport(connect time.Duration) http.RoundTripper {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	base = base.Clone()
	dial := base.DialContext // the program's own, perhaps
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connect)
		defer cancel()
		return dial(ctx, network, address)
	}
	base.HTTP2 = Pinged(base.HTTP2)
	return base
}

// Pinged returns the settings of HTTP/2 with pings, where there are none yet. They end what
// no time bounds, such as a stream of events, on a connection that is dead. Servers of gRPC
// close one that is pinged more often than once in five minutes (gRFC A8); attempts that
// time out are pinged for by net/http at once. A connection whose other side reads nothing,
// and only floods it, goes as well; after minutes, since the write of an upload goes on only
// when much of the system's buffer is empty again.
func Pinged(c *http.HTTP2Config) *http.HTTP2Config {
	var pinged http.HTTP2Config
	if c != nil {
		pinged = *c
	}
	if pinged.SendPingTimeout == 0 {
		pinged.SendPingTimeout, pinged.PingTimeout = 6*time.Minute, 15*time.Second
	}
	if pinged.WriteByteTimeout == 0 {
		pinged.WriteByteTimeout = 5 * time.Minute
	}
	return &pinged
}
