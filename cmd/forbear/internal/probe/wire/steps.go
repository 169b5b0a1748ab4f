package wire

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Status responds with a status, and a body of some bytes. Header lines are "name: value".
func Status(code int, lines ...string) Step {
	return func(x *Exchange) bool {
		body := fmt.Sprintf("{\"status\":%d}\n", code)
		if x.Method == http.MethodHead {
			body = ""
		}
		header := [][2]string{
			{"date", time.Now().UTC().Format(http.TimeFormat)}, {"content-type", "application/json"}, {"content-length", strconv.Itoa(len(body))},
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			header = append(header, [2]string{name, value})
		}
		if x.session != nil {
			return x.respond2(code, header, body)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
		for _, h := range header {
			fmt.Fprintf(&b, "%s: %s\r\n", http.CanonicalHeaderKey(h[0]), h[1])
		}
		x.done()
		_, err := io.WriteString(x.conn, b.String()+"\r\n"+body)
		return err == nil
	}
}

// Write sends bytes as they are, and then closes the connection, or resets it.
func Write(text string, end Step) Step {
	return func(x *Exchange) bool {
		x.done()
		_, _ = io.WriteString(x.conn, text)
		return end(x)
	}
}

// Close closes the connection in an orderly way.
func Close(x *Exchange) bool {
	x.done()
	return false
}

// Reset resets the connection: the client's next read fails.
func Reset(x *Exchange) bool {
	x.done()
	if t, ok := plain(x.conn).(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	return false
}

// plain returns the connection below TLS.
func plain(c net.Conn) net.Conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c
}

// Hang never responds. It notes when the client has had enough: with HTTP/2 that may be of
// the stream alone, and the connection goes on.
func Hang(x *Exchange) bool {
	gone := true
	if x.session != nil {
		select {
		case <-x.gone:
		case <-x.s.closed:
		}
	} else {
		_, err := x.conn.Read(make([]byte, 1))
		gone = err != nil
	}
	select {
	case <-x.s.closed: // we had enough
	default:
		if gone {
			x.s.mu.Lock()
			x.Gone = x.s.Now()
			x.s.mu.Unlock()
		}
	}
	return x.session != nil
}

// Over is closed when the server does not listen any more.
func (x *Exchange) Over() <-chan struct{} { return x.s.closed }

// RefuseFor does something to a request, and has every connection refused for a while.
// The port is closed before the client learns what became of its request.
func RefuseFor(d time.Duration, step Step) Step {
	return func(x *Exchange) bool {
		s := x.s
		s.mu.Lock()
		_ = s.listener.Close()
		s.mu.Unlock()
		s.wg.Go(func() {
			select {
			case <-time.After(d):
				s.listenAgain()
			case <-s.closed:
			}
		})
		_ = step(x)
		return false
	}
}
