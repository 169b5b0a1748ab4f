package faulttable

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// connections are faults of connections that are new.
var connections = []fault{
	{name: "reset before the request, once", serve: ok, uncounted: true, base: func(c *caller) {
		c.site.onConnect = func(c net.Conn, n int) bool {
			if n == 1 {
				// Some of the request is read, so that it cannot be a failed dial.
				_, _ = c.Read(make([]byte, 4))
				_ = c.(*net.TCPConn).SetLinger(0)
			}
			return n > 1
		}
	}, why: "R-4"},
	{name: "reset after the request, once", serve: once(resets), why: "R-4"},
	{name: "reset after the request, once, PUT", method: http.MethodPut, body: payload, serve: once(resets), why: "R-4"},
	{name: "reset after the request, once, POST", body: payload, serve: once(resets), why: "R-6: it may have been done"},
	{name: "reset after the request, once, POST with a key", body: payload, key: true, serve: once(resets), why: "R-6"},
	{name: "closed without a response, once", serve: once(hangsUp), why: "R-4"},
	{name: "closed without a response, once, POST", body: payload, serve: once(hangsUp), why: "R-6: it may have been done"},
	{name: "closed without a response, for ever", serve: hangsUp, retried: true, why: "R-4"},
	{name: "refused once", serve: ok, base: refused(1), why: "R-4"},
	{
		name: "refused once, POST", body: payload, serve: ok, base: refused(1),
		why: "nothing was sent",
	},
	{name: "refused for ever", serve: ok, base: refused(100), why: "R-4"},
	{name: "no such unix socket", serve: ok, base: func(c *caller) {
		missing := filepath.Join(c.TempDir(), "socket")
		c.dial = func(ctx context.Context, _ int64, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", missing)
		}
	}, why: "R-4: a service that is not there yet; retried, in vain"},
	{name: "name not found", serve: ok, base: nameless, why: "R-4: tried twice in all"},
	{name: "half a status line, once", serve: once(sendsAndCloses("HTTP/1.1 2")), why: "R-4"},
	{name: "malformed status line, once", serve: once(sendsAndCloses("HTTQ 200\r\n\r\n")), why: "R-4: broken before the headers"},
	{name: "malformed header, once", serve: once(sendsAndCloses("HTTP/1.1 200 OK\r\nno colon\r\n\r\n")), why: "R-4: as above"},
	{name: "cut inside the headers, once", serve: once(sendsAndCloses("HTTP/1.1 200 OK\r\nContent-Le")), why: "R-4"},
	{
		name: "headers over the limit, once", serve: once(sends("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\nContent-Length: 4\r\n\r\nfine")),
		base: func(c *caller) { c.base.MaxResponseHeaderBytes = 4 << 10 }, why: "R-4: broken before the headers",
	},
	{name: "body cut, declared length", serve: sendsAndCloses("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), why: "R-4: inside the body, failures are the caller's"},
	{name: "body cut, in chunks", serve: sendsAndCloses("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunkOf("half")), why: "R-4: as above"},
	{name: "body reset", serve: func(c *conn, req *http.Request, _ int) bool {
		_ = c.take(req) && c.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		<-c.s.arrived // a reset could overtake the headers
		return c.reset()
	}, use: bodyOnceArrived, why: "R-4: as above"},
	{name: "body longer than declared, two requests", serve: sends("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine and more"), use: func(c *caller) response {
		if r := c.once(); r.err != nil || r.body != fine {
			return r
		}
		for c.site.open(1) { // or the rest might be read as a response to the second
			pause(time.Millisecond)
		}
		return c.once()
	}, why: "net/http drops the connection"},
	{name: "certificate expired", secure: true, serve: ok, base: certificate(host, -1), why: "R-9"},
	{name: "certificate of another host", secure: true, serve: ok, base: certificate("elsewhere.test", 1), why: "R-9"},
	{name: "proxy refuses with 502, once", secure: true, proxied: true, serve: proxy(502), base: throughProxy, uncounted: true, why: "R-4: the proxy could not connect, and nothing was sent"},
	{name: "proxy refuses with 503, once", secure: true, proxied: true, serve: proxy(503), base: throughProxy, uncounted: true, why: "as above"},
	{name: "proxy refuses with 407", secure: true, proxied: true, serve: proxy(407), base: throughProxy, uncounted: true, why: "terminal"},
	{name: "proxy, no fault", secure: true, proxied: true, serve: proxy(0), base: throughProxy, uncounted: true},
}

// pooled are connections that die while they are in the pool.
var pooled = []fault{
	{name: "dead in the pool, nothing written, GET", serve: ok, use: onDead(1)},
	{name: "dead in the pool, nothing written, POST", body: payload, serve: ok, use: onDead(1), why: "no byte left the process"},
	{name: "dead in the pool, nothing written, POST with a key", body: payload, key: true, serve: ok, use: onDead(1), why: "no byte left the process"},
	{name: "dead in the pool, nothing written, PUT", method: http.MethodPut, body: payload, serve: ok, use: onDead(1)},
	{name: "dead in the pool, nothing written, POST of a streamed body", body: streamed, serve: ok, use: onDead(1), why: "net/http cannot rewind it"},
	{name: "three dead in the pool, nothing written, GET", serve: ok, use: onDead(3)},
	{name: "three dead in the pool, nothing written, POST", body: payload, serve: ok, use: onDead(3), why: "no byte left the process"},
	{name: "eight dead in the pool, nothing written, GET", serve: ok, use: onDead(8), why: "what was not sent is no attempt"},
	{name: "eight dead in the pool, nothing written, POST", body: payload, serve: ok, use: onDead(8), why: "as above"},
	{name: "closed under the request, GET", serve: first(1, hangsUp), use: onWarm(1), undialed: true},
	{name: "closed under the request, PUT", method: http.MethodPut, body: payload, serve: first(1, hangsUp), use: onWarm(1)},
	{name: "closed under the request, POST", body: payload, serve: first(1, hangsUp), use: onWarm(1), why: "R-6: it may have been done"},
	{name: "closed under the request, POST with a key", body: payload, key: true, serve: first(1, hangsUp), use: onWarm(1), undialed: true},
	{name: "closed under the request, POST of a streamed body with a key", body: streamed, key: true, serve: first(1, hangsUp), use: onWarm(1), undialed: true, why: "kept for replay, up to 64 KiB"},
	{name: "reset under the request, POST", body: payload, serve: first(1, resets), use: onWarm(1), why: "R-6: it may have been done"},
	{name: "closed under the request, three times, GET", serve: first(3, hangsUp), use: onWarm(3), undialed: true, why: "R-2 allows three retries"},
	{name: "closed under the request, three times, POST with a key", body: payload, key: true, serve: first(3, hangsUp), use: onWarm(3), undialed: true, why: "R-2 allows three retries"},
	{
		name: "closed under the request, eight times, GET", serve: first(8, hangsUp), use: onWarm(8), forbidden: true, undialed: true,
		why: "R-2: every send that may have arrived is an attempt, and four are allowed",
	},
}

// bodyOnceArrived lets the site go on when the headers have come.
func bodyOnceArrived(c *caller) response {
	resp, err := c.client.Do(c.request("/"))
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	c.site.arrived <- struct{}{}
	body, err := io.ReadAll(resp.Body)
	return response{status: resp.StatusCode, body: string(body), read: err}
}

// refused sends the first dials to a port where no one listens.
func refused(dials int64) func(*caller) {
	return func(c *caller) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.Fatal(err)
		}
		closed := l.Addr().String()
		_ = l.Close()
		c.dial = func(ctx context.Context, n int64, network, address string) (net.Conn, error) {
			if n > dials {
				return c.toSite(ctx, n, network, address)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", closed)
		}
	}
}

// nameless asks a name server of its own that knows no name.
func nameless(c *caller) {
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = dns.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := dns.ReadFrom(buf)
			if err != nil {
				return
			}
			buf[2], buf[3] = 0x81, 0x83 // a response: no such name
			_, _ = dns.WriteTo(buf[:n], from)
		}
	}()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	c.dial = func(ctx context.Context, _ int64, network, _ string) (net.Conn, error) {
		return (&net.Dialer{Resolver: resolver}).DialContext(ctx, network, "dependency.invalid.:80")
	}
}

// first does the same to the first requests and then responds.
func first(requests int, do handler) handler {
	return func(c *conn, req *http.Request, n int) bool {
		if n <= requests {
			return do(c, req, n)
		}
		return ok(c, req, n)
	}
}

// onWarm makes the call over a pool of n idle connections.
func onWarm(n int) func(*caller) response {
	return func(c *caller) response {
		c.warm(n)
		return c.once()
	}
}

// onDead makes the call over a pool of n connections that cannot be written to
// any more, while nothing has come to be read: what is left of a connection that
// a firewall has forgotten, or whose end has not been noticed yet.
func onDead(n int) func(*caller) response {
	return func(c *caller) response {
		var dead atomic.Bool
		dial := c.dial
		c.dial = func(ctx context.Context, number int64, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, number, network, address)
			if err != nil || dead.Load() {
				return conn, err
			}
			return mortal{conn, &dead}, nil
		}
		c.warm(n)
		dead.Store(true)
		return c.once()
	}
}

// mortal is a connection whose writes fail, before a byte is sent, once it is
// dead.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (m mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	}
	return m.Conn.Write(p)
}

// throughProxy makes the site the client's proxy.
func throughProxy(c *caller) {
	c.base.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: c.site.address()})
}

// proxy refuses the first CONNECT with a status, unless that is 0, and then opens
// the tunnel.
func proxy(status int) handler {
	return func(c *conn, req *http.Request, n int) bool {
		switch {
		case req.Method != http.MethodConnect:
			return ok(c, req, n)
		case n == 1 && status != 0:
			return says(status)(c, req, n)
		case c.write("HTTP/1.1 200 OK\r\n\r\n"):
			c.s.tunnel(c.Conn)
		}
		return false
	}
}
