package faulttable

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// site is the server of one run. It counts what reaches it.
type site struct {
	f         *fault
	listener  net.Listener
	config    *tls.Config // nil for plain HTTP
	lender    *httptest.Server
	onConnect func(c net.Conn, number int) bool // false hangs up
	ended     chan struct{}                     // closed with the site
	arrived   chan struct{}                     // takes a value when the client has the headers

	mu          sync.Mutex
	connections map[net.Conn]bool
	accepted    int
	closed      bool
	sends       int
	bytes       int
	effects     map[string]int // complete writes, by operation
	wrong       bool           // a complete body was not the caller's
}

func newSite(t *testing.T, f *fault) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{f: f, listener: l, arrived: make(chan struct{}), ended: make(chan struct{}), effects: map[string]int{}, connections: map[net.Conn]bool{}}
	if f.secure || f.stream != nil {
		// A test server lends its certificate and a client that trusts it.
		s.lender = httptest.NewUnstartedServer(http.NotFoundHandler())
		s.lender.StartTLS()
		t.Cleanup(s.lender.Close)
		s.config = &tls.Config{Certificates: s.lender.TLS.Certificates, NextProtos: []string{"http/1.1"}}
		if f.stream != nil {
			s.config.NextProtos = []string{"h2"}
		}
	}
	return s
}

// start lets clients in, as the site is from now on.
func (s *site) start(t *testing.T) {
	var running sync.WaitGroup
	running.Go(func() { s.accept(&running) })
	t.Cleanup(func() { s.close(); running.Wait() })
}

// trusted returns the client's side of the site's TLS.
func (s *site) trusted() *tls.Config {
	if s.lender == nil {
		return nil
	}
	return &tls.Config{RootCAs: s.lender.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
}

func (s *site) address() string { return s.listener.Addr().String() }

// tunnel serves the client that has asked a proxy for a connection to the site.
func (s *site) tunnel(c net.Conn) { s.serveHTTP1(tls.Server(c, s.config)) }

func (s *site) accept(running *sync.WaitGroup) {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		number, ok := s.add(c)
		if !ok {
			return
		}
		running.Go(func() {
			defer s.hangUp(c)
			if s.onConnect != nil && !s.onConnect(c, number) {
				return
			}
			s.serve(c)
		})
	}
}

func (s *site) serve(c net.Conn) {
	if s.config != nil && !s.f.proxied {
		c = tls.Server(c, s.config)
	}
	if s.f.stream != nil {
		s.serveHTTP2(c)
		return
	}
	s.serveHTTP1(c)
}

func (s *site) add(c net.Conn) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = c.Close()
		return 0, false
	}
	s.accepted++
	s.connections[c] = true
	return s.accepted, true
}

// open reports whether a client is connected, or one of that many has not been
// let in yet.
func (s *site) open(dialed int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.connections) > 0 || int64(s.accepted) < dialed
}

func (s *site) hangUp(c net.Conn) {
	_ = c.Close()
	s.disown(c)
}

// disown leaves a connection to its handler.
func (s *site) disown(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// close ends the site and with it every handler that waits for its client.
func (s *site) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		close(s.ended)
	}
	s.closed = true
	for c := range s.connections {
		_ = c.Close()
	}
}

// received counts a request whose headers have come, and returns its number.
func (s *site) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends++
	return s.sends
}

// forget begins the counting anew, after a pool was filled.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sends, s.bytes = 0, 0
}

// done records a request that came in full and may have been carried out. Only
// a write without a key counts each time: the rest is idempotent, or the server
// recognizes it.
func (s *site) done(method, key, body string) {
	want := s.f.received
	if want == "" {
		want = "payload"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f.body != nil && body != want {
		s.wrong = true
	}
	if (method == http.MethodPost || method == http.MethodPatch) && key == "" {
		s.effects[body]++
	}
}

// seen returns what has reached the site.
func (s *site) seen() (sends, bytes int, twice, wrong bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.effects {
		twice = twice || n > 1
	}
	return s.sends, s.bytes, twice, s.wrong
}

// counting is what a client sends, counted.
type counting struct {
	io.Reader
	s *site
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.bytes += n
	return n, err
}

// conn is a connection over which the site speaks HTTP/1.1.
type conn struct {
	net.Conn
	s *site
	r *bufio.Reader
}
