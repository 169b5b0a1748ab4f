package faulttable

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/forbear-go/forbear/httpretry"
)

// fine is the body of a good response.
const fine = "fine"

// handler deals with one request, of which only the headers have been read, and
// reports whether the connection lives on. n counts the requests from 1.
type handler func(c *conn, req *http.Request, n int) bool

// warming marks the requests that only fill a pool.
const warming = "/warm"

func (s *site) serveHTTP1(raw net.Conn) {
	c := &conn{Conn: raw, s: s, r: bufio.NewReader(counting{raw, s})}
	for {
		req, err := http.ReadRequest(c.r)
		if err != nil {
			return
		}
		switch {
		case req.URL.Path == warming:
			_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
		case !s.f.serve(c, req, s.received()):
			return
		}
		if err != nil {
			return
		}
	}
}

// take reads the request to its end, after which it may have been carried out.
func (c *conn) take(req *http.Request) bool {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	c.s.done(req.Method, req.Header.Get(httpretry.HeaderKey), string(body))
	return true
}

func (c *conn) write(parts ...string) bool {
	_, err := io.WriteString(c, strings.Join(parts, ""))
	return err == nil
}

// reset ends the connection so that the peer's reads fail with ECONNRESET.
func (c *conn) reset() bool {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return false
}

// abandoned waits until the client hangs up.
func (c *conn) abandoned() bool {
	_, _ = io.Copy(io.Discard, c.r)
	return false
}

// sends responds with the bytes as they are, to HEAD without the body, and keeps
// the connection.
func sends(raw string) handler {
	return func(c *conn, req *http.Request, _ int) bool {
		text := raw
		if head, _, found := strings.Cut(raw, "\r\n\r\n"); found && req.Method == http.MethodHead {
			text = head + "\r\n\r\n"
		}
		return c.take(req) && c.write(text)
	}
}

// sendsAndCloses responds with the bytes as they are and hangs up.
func sendsAndCloses(raw string) handler {
	return func(c *conn, req *http.Request, _ int) bool {
		_ = c.take(req) && c.write(raw)
		return false
	}
}

// ok is the good response.
var ok = sends("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + fine)

// says responds with a status, its text as the body, and lines of headers.
func says(code int, lines ...string) handler {
	text := http.StatusText(code)
	head := []string{fmt.Sprintf("HTTP/1.1 %d %s", code, text)}
	head = append(head, lines...)
	head = append(head, fmt.Sprintf("Content-Length: %d", len(text)), "", text)
	return sends(strings.Join(head, "\r\n"))
}

// once does the first for the first request, then the good response.
func once(first handler) handler { return then(first, ok) }

// then does the first for the first request and the rest for the others.
func then(first, rest handler) handler {
	return func(c *conn, req *http.Request, n int) bool {
		if n == 1 {
			return first(c, req, n)
		}
		return rest(c, req, n)
	}
}

// The ways to end a connection under a request.

// hangsUp reads the request and closes the connection.
func hangsUp(c *conn, req *http.Request, _ int) bool {
	c.take(req)
	return false
}

// resets reads the request and resets the connection.
func resets(c *conn, req *http.Request, _ int) bool {
	c.take(req)
	return c.reset()
}

// isSilent reads the request and never responds.
func isSilent(c *conn, req *http.Request, _ int) bool {
	c.take(req)
	return c.abandoned()
}
