// Package wire is the server of a probe: it listens for one run of a client, does to each
// request what a script says, byte by byte where it must, and records what arrived.
package wire

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// maxKept bounds the arrivals of a run that are kept: a client that never stops is known
// for one long before.
const maxKept = 10_000

// handshake is how long a TLS handshake may take.
const handshake = 30 * time.Second

// maxHeader and maxBody bound what is read of a request.
const maxHeader, maxBody = 1 << 20, 16 << 20

// Arrival is a request that arrived. Times count from the start of the [Server].
type Arrival struct {
	Number int           `json:"n"`    // from 1
	Conn   int           `json:"conn"` // from 1
	At     time.Duration `json:"at_ns"`
	// Done is when its response began to be written, or its connection was broken; 0 when
	// it had none.
	Done   time.Duration `json:"done_ns,omitempty"`
	Proto  string        `json:"proto"`
	Method string        `json:"method"`
	Target string        `json:"target"`
	Header http.Header   `json:"-"` // may have credentials
	Body   string        `json:"body_sha256,omitempty"`
	Length int64         `json:"body_bytes"`
	// Gone is when the client closed a connection that had no response.
	Gone time.Duration `json:"gone_ns,omitempty"`
}

// Conn is a connection that was made.
type Conn struct {
	At    time.Duration `json:"at_ns"`
	Fault string        `json:"fault,omitempty"` // of its TLS handshake
}

// Script says what is done to a request. It is called for one at a time.
type Script func(a *Arrival) Step

// Step does something to a request. It reports whether the connection goes on.
type Step func(x *Exchange) (goesOn bool)

// Exchange is a request on its connection.
type Exchange struct {
	*Arrival
	conn    net.Conn
	s       *Server
	session *session // nil with HTTP/1
	stream  uint32
	gone    <-chan struct{} // of the stream
}

// Server listens for one run. It is safe for concurrent use.
type Server struct {
	URL    string
	start  time.Time
	script Script
	tls    *tls.Config
	closed chan struct{}
	wg     sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
	conns    []Conn
	arrivals []*Arrival
	first    chan struct{} // closed by the first arrival or connection
}

// Listen starts a server on a free port of this machine. With a certificate it speaks TLS.
func Listen(script Script, config *tls.Config) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), start: time.Now(), script: script, tls: config,
		closed: make(chan struct{}), listener: l, open: map[net.Conn]bool{}, first: make(chan struct{}),
	}
	if config != nil {
		s.URL = "https://" + l.Addr().String()
	}
	s.wg.Go(func() { s.accept(l) })
	return s, nil
}

// First is closed when something has arrived.
func (s *Server) First() <-chan struct{} { return s.first }

// Stop ends the record: what the client does from now on is not its own doing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

func (s *Server) stop() {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// Close ends all connections, and waits for what serves them.
func (s *Server) Close() {
	s.mu.Lock()
	s.stop()
	_ = s.listener.Close()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Seen returns what has arrived so far.
func (s *Server) Seen() (conns []Conn, arrivals []Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arrivals {
		arrivals = append(arrivals, *a)
	}
	return slices.Clone(s.conns), arrivals
}

// Now is the time since the start of the server.
func (s *Server) Now() time.Duration { return time.Since(s.start) }

// listenAgain opens the port that was closed.
func (s *Server) listenAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := net.Listen("tcp", s.listener.Addr().String())
	if err != nil {
		return // another program has it now: nothing arrives any more
	}
	s.listener = l
	select {
	case <-s.closed:
		_ = l.Close()
	default:
		s.wg.Go(func() { s.accept(l) })
	}
}

func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		number := len(s.conns) + 1
		s.conns = append(s.conns, Conn{At: s.Now()})
		s.open[c] = true
		s.seen()
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(c, number)
			_ = c.Close()
			s.mu.Lock()
			delete(s.open, c)
			s.mu.Unlock()
		})
	}
}

// seen notes that something has arrived. The caller holds mu.
func (s *Server) seen() {
	select {
	case <-s.first:
	default:
		close(s.first)
	}
}

func (s *Server) serve(raw net.Conn, number int) {
	conn := raw
	if s.tls != nil {
		t := tls.Server(raw, s.tls)
		_ = raw.SetDeadline(time.Now().Add(handshake))
		err := t.HandshakeContext(context.Background())
		_ = raw.SetDeadline(time.Time{})
		if err != nil {
			s.mu.Lock()
			s.conns[number-1].Fault = err.Error()
			s.mu.Unlock()
			return
		}
		conn = t
	}
	limited := &io.LimitedReader{R: conn, N: maxHeader}
	in := bufio.NewReader(limited)
	if start, _ := in.Peek(4); string(start) == http2.ClientPreface[:4] {
		limited.N = math.MaxInt64
		s.serve2(conn, in, number)
		return
	}
	s.serve1(conn, in, limited, number)
}

// serve1 serves HTTP/1.
func (s *Server) serve1(conn net.Conn, in *bufio.Reader, limited *io.LimitedReader, number int) {
	for {
		limited.N = maxHeader + maxBody
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		a := &Arrival{Conn: number, At: s.Now(), Proto: req.Proto, Method: req.Method, Target: req.URL.RequestURI(), Header: req.Header}
		if req.Header.Get("Expect") != "" {
			_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if a.Body, a.Length, err = sum(req.Body); err != nil {
			return
		}
		step := s.arrived(a)
		if step == nil || !step(&Exchange{Arrival: a, conn: conn, s: s}) || req.Close { // HTTP/1.0 reads to the end
			return
		}
	}
}

// sum reads a body.
func sum(body io.Reader) (text string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, io.LimitReader(body, maxBody+1))
	if n > maxBody {
		err = errors.New("the body is too large")
	}
	return digest(h), n, err
}

func digest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:8]) }

// arrived records a request, and returns what is to be done to it; nil for one too many.
func (s *Server) arrived(a *Arrival) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrivals) == maxKept {
		return nil
	}
	a.Number = len(s.arrivals) + 1
	s.arrivals = append(s.arrivals, a)
	return s.script(a)
}

// done notes that the response begins now. What the client does next may come before this
// returns, never earlier.
func (x *Exchange) done() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.Done = cmp.Or(x.Done, x.s.Now())
}
