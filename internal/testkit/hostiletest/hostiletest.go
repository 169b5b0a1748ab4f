// Package hostiletest has the servers that a sender must not believe: each breaks off, never
// ends, floods, lies about a length or changes the protocol, on a socket. What sends
// requests is held to all of them.
package hostiletest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Server says what one does with a connection after it has read the head of the
// request; with Deaf, before. The connection is closed when Do returns.
type Server struct {
	Name string
	Do   func(net.Conn)
	Deaf bool
	// Status is what a sender may see of it, 0 for an error alone.
	Status int
	// Stands says that it goes on until the sender leaves: a bound of the
	// sender's own has to end it.
	Stands bool
	// Conns is how many connections it may be asked for at most; 0: for each request one.
	Conns int
	// Keeps says that its connections may be kept: net/http never closes one on which it
	// has reserved a stream that did not come about.
	Keeps bool
	HTTP2 bool
}

const (
	ok      = "HTTP/1.1 200 OK\r\n"
	upgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	hint    = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
)

// Servers returns those of HTTP/1.1; see [HTTP2].
func Servers() []Server {
	list := []Server{
		// Another protocol.
		{Name: "switches and keeps the connection", Do: stand(upgrade), Status: 101},
		{Name: "switches and talks", Do: flood(upgrade, "talk talk talk\r\n", time.Millisecond), Status: 101},
		{Name: "switches and closes", Do: say(upgrade), Status: 101},
		{Name: "switches after hints", Do: stand(hint + hint + upgrade), Status: 101},
		{Name: "switches to h2c", Do: stand(strings.Replace(upgrade, "websocket", "h2c", 1)), Status: 101},
		{Name: "switches with a length", Do: stand(strings.Replace(upgrade, "\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello", 1)), Status: 101},
		{Name: "switches, but does not say to what", Do: stand("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Status: 101},
		{Name: "greets as SSH does", Do: stand("SSH-2.0-OpenSSH_9.2\r\n")},
		{Name: "responds with HTTP/0.9", Do: say("<html>ok</html>")},
		{Name: "responds with HTTP/2 frames", Do: stand("\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64")},

		// No end.
		{Name: "reads nothing", Do: stand(""), Deaf: true, Stands: true},
		{Name: "says nothing", Do: stand(""), Stands: true},
		{Name: "stops in the status line", Do: stand("HTTP/1.1 20"), Stands: true},
		{Name: "stops in the headers", Do: stand(ok + "X-A: b\r\n"), Stands: true},
		{Name: "stops in the body", Do: stand(ok + "Content-Length: 100\r\n\r\nhalf"), Status: 200, Stands: true},
		{Name: "stops in a chunk", Do: stand(ok + "Transfer-Encoding: chunked\r\n\r\n8\r\nhalf"), Status: 200, Stands: true},
		{Name: "stops in the body of a 500", Do: stand("HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nhalf"), Status: 500, Stands: true},
		{Name: "drips its headers", Do: flood(ok, "X-A: b\r\n", 5*time.Millisecond), Stands: true},
		{Name: "drips its body", Do: flood(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 5*time.Millisecond), Status: 200, Stands: true},
		{Name: "hints for ever", Do: flood("", hint, 5*time.Millisecond), Stands: true},
		{Name: "lets go on for ever", Do: flood("", "HTTP/1.1 100 Continue\r\n\r\n", 5*time.Millisecond), Stands: true},
		{Name: "processes for ever", Do: flood("", "HTTP/1.1 102 Processing\r\n\r\n", 5*time.Millisecond), Stands: true},

		// Floods.
		{Name: "floods with hints", Do: flood("", strings.Repeat(hint, 64), 0)},
		{Name: "floods with headers", Do: flood(ok, "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0)},
		{Name: "floods with trailers", Do: flood(ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n", 0), Status: 200},
		{Name: "floods with a body", Do: flood(ok+"\r\n", strings.Repeat("b", 64<<10), 0), Status: 200},
		{Name: "floods with one chunk extension", Do: flood(ok+"Transfer-Encoding: chunked\r\n\r\n1;", strings.Repeat("b", 64<<10), 0), Status: 200},
		{Name: "floods with one line", Do: flood("HTTP/1.1 200 ", strings.Repeat("b", 64<<10), 0)},

		// Lies.
		{Name: "has two lengths", Do: say(ok + "Content-Length: 2\r\nContent-Length: 5\r\n\r\nhello")},
		{Name: "has a negative length", Do: say(ok + "Content-Length: -1\r\n\r\nhello")},
		{Name: "has a length of 20 digits", Do: say(ok + "Content-Length: 99999999999999999999\r\n\r\nhello")},
		{Name: "has more than its length", Do: say(ok + "Content-Length: 2\r\n\r\nhello"), Status: 200},
		{Name: "has a body where none may be", Do: say("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), Status: 204},
		{Name: "has no such chunk", Do: say(ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello"), Status: 200},
		{Name: "has an encoding that is none", Do: say(ok + "Transfer-Encoding: cupped\r\n\r\nhello")},
		{Name: "is no gzip", Do: say(ok + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"), Status: 200},
		{Name: "responds twice", Do: say(ok + "Content-Length: 0\r\n\r\nHTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"), Status: 200},
	}
	whole := "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	for _, n := range []int{0, 1, 9, 13, 26, 30, 45, 60, len(whole) - 5, len(whole) - 1} {
		status := 0
		if n >= len(whole)-5 {
			status = 200
		}
		list = append(list,
			Server{Name: fmt.Sprintf("closes after %d bytes", n), Do: say(whole[:n]), Status: status},
			Server{Name: fmt.Sprintf("resets after %d bytes", n), Do: reset(whole[:n]), Status: status})
	}
	for status := 100; status < 600; status++ {
		if status > 104 && status < 198 {
			continue // no more to be seen than of those
		}
		s := Server{Name: fmt.Sprintf("responds %d", status), Status: status}
		text := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\n{}", status)
		switch {
		case status == 101: // above
			continue
		case status < 200:
			s.Do, s.Status, s.Stands = stand(fmt.Sprintf("HTTP/1.1 %d X\r\n\r\n", status)), 0, true
		default:
			if status == http.StatusNoContent || status == http.StatusNotModified {
				text = fmt.Sprintf("HTTP/1.1 %d X\r\n\r\n", status)
			}
			s.Do = say(text)
		}
		list = append(list, s)
	}
	return list
}

// say sends text and closes.
func say(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = c.Write([]byte(text)) }
}

// reset sends text and then a reset.
func reset(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Write([]byte(text))
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
}

// stand sends text and keeps the connection until the other side ends it.
func stand(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = c.Write([]byte(text))
		wait(c)
	}
}

// flood sends first, and then more at intervals until the other side ends it.
func flood(first, more string, every time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		_, err := c.Write([]byte(first))
		for err == nil {
			_, err = c.Write([]byte(more))
			time.Sleep(every)
		}
	}
}

// wait returns when the other side has ended the connection.
func wait(c net.Conn) {
	b := make([]byte, 4096)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// Each calls hold with the servers of HTTP/1.1 and with those of HTTP/2, and with a
// transport that speaks to them and keeps no connection.
func Each(t *testing.T, hold func(t *testing.T, servers []Server, transport *http.Transport)) {
	var first, second http.Protocols
	first.SetHTTP1(true)
	second.SetUnencryptedHTTP2(true)
	t.Run("HTTP1.1", func(t *testing.T) { hold(t, Servers(), &http.Transport{DisableKeepAlives: true, Protocols: &first}) })
	t.Run("HTTP2", func(t *testing.T) {
		hold(t, HTTP2(), &http.Transport{
			DisableKeepAlives: true, Protocols: &second, IdleConnTimeout: time.Second,
			HTTP2: &http.HTTP2Config{WriteByteTimeout: 2 * time.Second}, // as the transports of our own have it, longer
		})
	})
}

// Hold sends to each of the servers and fails for those that send does not come back
// from, that were asked more often than send says that it has asked, or whose connection
// is kept. The bound of a single exchange is the sender's own.
func Hold(t *testing.T, servers []Server, send func(t *testing.T, s Server, url string) (asked int)) {
	t.Helper()
	var sending sync.WaitGroup
	var missed atomic.Int64
	places := make(chan struct{}, 16)
	for _, s := range servers {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			site, ended := Start(t, s), make(chan int, 1)
			go func() { ended <- send(t, s, site.URL) }()
			select {
			case asked := <-ended:
				switch n := site.Requests(); {
				case n == 0:
					missed.Add(1) // on a busy machine, not in time
				case n != asked && (n < asked || n > s.Conns):
					t.Errorf("%s: %d requests, counted as %d", s.Name, n, asked)
				}
				for range 1000 {
					if s.Keeps || site.Open() == 0 {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				t.Errorf("%s: its connection is kept", s.Name)
			case <-time.After(time.Minute): // long after any bound
				t.Errorf("%s: it has not ended", s.Name)
			}
		})
	}
	sending.Wait()
	if n := int(missed.Load()); n > len(servers)/10 {
		t.Errorf("%d of %d were not asked", n, len(servers))
	}
}

// Site is a Server at an address of its own. It is safe for concurrent use.
type Site struct {
	URL string

	mu       sync.Mutex
	requests int
	open     map[net.Conn]bool
}

// Start starts s; it ends with the test.
func Start(t testing.TB, s Server) *Site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	site := &Site{URL: "http://" + l.Addr().String() + "/", open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { site.serve(c, s) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		site.mu.Lock()
		for c := range site.open {
			_ = c.Close()
		}
		site.mu.Unlock()
		serving.Wait()
	})
	return site
}

func (s *Site) serve(c net.Conn, server Server) {
	s.mu.Lock()
	s.open[c] = true
	s.mu.Unlock()
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	switch {
	case server.Deaf:
	case server.HTTP2:
		if request2(c) != nil {
			return
		}
	default:
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // a close with more to read would be a reset
	}
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	server.Do(c)
}

// Requests returns how many there were; of a deaf server, how many connections.
func (s *Site) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Open returns how many connections the other side keeps.
func (s *Site) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
