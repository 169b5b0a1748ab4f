// Package direct sends requests over HTTP/1 where nothing else is spoken: in clear, and
// over TLS when HTTP/2 is off. net/http sends all other requests, and parses and writes
// all messages. There are two reasons for it:
//
//   - A request without a body is sent on the goroutine of its caller. net/http has two
//     goroutines for each connection, since a response may come while the request is
//     being sent. Without a body none can, and the four changes of goroutines were a
//     third of what a gateway spends on a request.
//   - A connection that is not sound is closed. net/http makes one idle before it has
//     looked at what the server sent after the response, and another request may get that
//     for its own (RFC 9112 section 9.3).
//
// The parts:
//
//   - direct.go: which requests, and over which connections
//   - conn.go: one connection, and one request on it
//   - alive_unix.go: whether an idle connection is sound
//   - upload.go: the body of a request
//   - body.go: the body of a response
//   - ending.go: connections that are closed
package direct

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Transport is a RoundTripper over connections of HTTP/1. It is safe for
// concurrent use. Its fields are set before its first use.
type Transport struct {
	// Next sends what is not sent here, and dials over TLS.
	Next *http.Transport
	// Dial makes the connections in clear. Nil means the DialContext of Next.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex
	idle     map[place][]*conn // the latest used is the last
	sweep    *time.Timer       // nil while none is idle
	closed   atomic.Bool       // no connection is kept any more
	sweeping atomic.Bool       // Next's are looked for once more, soon
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.takes(r) {
		return t.sendByNext(r)
	}
	ctx := r.Context()
	trace := httptrace.ContextClientTrace(ctx)
	if trace == nil {
		trace = &noTrace
	}
	at := placeOf(r.URL)
	for {
		c, err := t.get(ctx, trace, at)
		if err != nil {
			if hasBody(r) {
				_ = r.Body.Close()
			}
			return nil, err
		}
		resp, err := c.exchange(r, trace)
		unwritten, ok := err.(errUnwritten)
		if !ok {
			return resp, err
		}
		// None of it went out: it is as if that connection had never been taken.
		if r = rewound(r); r == nil {
			return nil, unwritten.error
		}
	}
}

var noTrace httptrace.ClientTrace

// takes reports whether a request is one of those that are sent here.
func (t *Transport) takes(r *http.Request) bool {
	switch {
	case !canTell || !t.reaches(r.URL) || hasBody(r) != (r.ContentLength != 0) || r.Close:
		return false
	case len(r.Header["Upgrade"]) > 0 || len(r.Header["Expect"]) > 0 || len(r.TransferEncoding) > 0:
		return false
	//lint:ignore SA1019 net/http obeys it, too
	case r.Cancel != nil, r.URL.Host == "", r.URL.User != nil, r.Host != "" && r.Host != r.URL.Host:
		return false
	}
	for i := range len(r.URL.Host) {
		if r.URL.Host[i] >= 0x80 {
			return false
		}
	}
	if t.Next.Proxy == nil {
		return true
	}
	proxy, err := t.Next.Proxy(r)
	return proxy == nil && err == nil
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// reaches reports whether connections to a URL are made here. Over TLS that is so where
// HTTP/2 is off: otherwise the handshake says which of the two is spoken, and
// connections of HTTP/2 are net/http's.
func (t *Transport) reaches(u *url.URL) bool {
	switch p := t.Next.Protocols; u.Scheme {
	case "http":
		return p == nil || p.HTTP1()
	case "https":
		return p != nil && p.HTTP1() && !p.HTTP2() && t.Next.DialTLSContext != nil
	}
	return false
}

// place is where a request goes.
type place struct {
	secure  bool
	address string
}

// placeOf returns the place of a URL, whose port may be missing or empty.
func placeOf(u *url.URL) place {
	p := place{secure: u.Scheme == "https", address: u.Host}
	if u.Port() == "" {
		port := "80"
		if p.secure {
			port = "443"
		}
		p.address = net.JoinHostPort(u.Hostname(), port)
	}
	return p
}

// get returns a connection: the one used last that is still open, or a new one.
func (t *Transport) get(ctx context.Context, trace *httptrace.ClientTrace, at place) (*conn, error) {
	if trace.GetConn != nil {
		trace.GetConn(at.address)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	info := httptrace.GotConnInfo{}
	c := t.take(at)
	if c != nil {
		info.Reused, info.WasIdle, info.IdleTime = true, true, time.Since(c.since)
	} else {
		dial := t.Next.DialContext
		switch {
		case at.secure:
			dial = t.Next.DialTLSContext
		case t.Dial != nil:
			dial = t.Dial
		}
		raw, err := dial(ctx, "tcp", at.address)
		if err != nil {
			return nil, err
		}
		c = newConn(t, at, raw)
	}
	if info.Conn = c.Conn; trace.GotConn != nil {
		trace.GotConn(info)
	}
	c.reused = info.Reused
	return c, nil
}

// take returns an idle connection that is open, or nil.
func (t *Transport) take(at place) *conn {
	for {
		t.mu.Lock()
		list := t.idle[at]
		if len(list) == 0 {
			t.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		list[len(list)-1] = nil
		t.idle[at] = list[:len(list)-1]
		t.mu.Unlock()
		if c.alive() {
			return c
		}
		_ = c.Close()
	}
}

// alive reports whether an idle connection can be used: its server has neither closed it
// nor sent anything, which would be the response to no request.
func (c *conn) alive() bool {
	s, ok := c.Conn.(*tls.Conn)
	if !ok {
		return c.line.silent()
	}
	// What TLS has read ahead is there at once. What comes from the system may be a
	// ticket for another session, which does not matter.
	const ticket = time.Millisecond
	at := time.Unix(1, 0)
	if !c.line.silent() {
		at = time.Now().Add(ticket)
	}
	_ = s.SetReadDeadline(at)
	_, err := s.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && s.SetReadDeadline(time.Time{}) == nil
}

// put makes a connection idle, or closes it where there are enough.
func (t *Transport) put(c *conn) {
	c.since = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() || len(t.idle[c.at]) >= t.Next.MaxIdleConnsPerHost {
		_ = c.Close()
		return
	}
	if t.idle == nil {
		t.idle = map[place][]*conn{}
	}
	t.idle[c.at] = append(t.idle[c.at], c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.Next.IdleConnTimeout, t.closeOld)
	}
}
