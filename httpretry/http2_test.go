package httpretry_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// Frame types and codes of RFC 9113, as far as the server below needs them.
const (
	frameHeaders  = 0x1
	frameReset    = 0x3
	frameSettings = 0x4
	frameGoAway   = 0x7

	codeRefusedStream = 0x7
)

// h2Server speaks just enough HTTP/2 to refuse every request in a way of its
// own. It counts the requests that reach it.
type h2Server struct {
	net.Listener
	requests atomic.Int64
	refuse   func(c net.Conn, stream uint32) (hangUp bool)
	client   *http.Transport
}

func newH2Server(t *testing.T, refuse func(net.Conn, uint32) bool) *h2Server {
	t.Helper()
	// A test server lends its certificate and a client that trusts it.
	lender := httptest.NewUnstartedServer(http.NotFoundHandler())
	lender.StartTLS()
	t.Cleanup(lender.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: lender.TLS.Certificates,
		NextProtos:   []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	roots := lender.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s := &h2Server{Listener: l, refuse: refuse, client: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
	}}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = c.Close() })()
				s.serve(c)
			})
		}
	})
	t.Cleanup(func() { s.client.CloseIdleConnections(); _ = l.Close(); conns.Wait() })
	return s
}

func (s *h2Server) serve(c net.Conn) {
	defer c.Close()
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	writeFrame(c, frameSettings, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return
		}
		if head[3] != frameHeaders {
			continue
		}
		s.requests.Add(1)
		if s.refuse(c, binary.BigEndian.Uint32(head[5:])&0x7fffffff) {
			return
		}
	}
}

func writeFrame(w io.Writer, kind byte, stream uint32, payload []byte) {
	frame := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, 0}
	frame = binary.BigEndian.AppendUint32(frame, stream)
	_, _ = w.Write(append(frame, payload...))
}

// goAway tells the client that no stream was processed, and hangs up.
func goAway(c net.Conn, _ uint32) bool {
	writeFrame(c, frameGoAway, 0, make([]byte, 8)) // last stream 0, NO_ERROR
	return true
}

func refuseStream(c net.Conn, stream uint32) bool {
	writeFrame(c, frameReset, stream, binary.BigEndian.AppendUint32(nil, codeRefusedStream))
	return false
}

// reset ends the stream with a code of RFC 9113 section 7.
func reset(code uint32) func(net.Conn, uint32) bool {
	return func(c net.Conn, stream uint32) bool {
		writeFrame(c, frameReset, stream, binary.BigEndian.AppendUint32(nil, code))
		return false
	}
}

// A body that comes without GetBody is replayed over HTTP/2, too: net/http would end
// such a request with an error that says nothing.
func TestHTTP2ReplaysBodies(t *testing.T) {
	for name, refuse := range map[string]func(net.Conn, uint32) bool{
		"GOAWAY": goAway, "REFUSED_STREAM": refuseStream, "CANCEL": reset(0x8), "INTERNAL_ERROR": reset(0x2),
	} {
		for kind, body := range map[string]func() io.Reader{
			"a reader":    func() io.Reader { return struct{ io.Reader }{strings.NewReader("payload")} },
			"in memory":   func() io.Reader { return io.NopCloser(strings.NewReader("payload")) },
			"can seek":    func() io.Reader { return seekable{strings.NewReader("payload")} },
			"known to it": func() io.Reader { return strings.NewReader("payload") },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := newH2Server(t, refuse)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+s.Addr().String(), body())
				if err != nil {
					t.Fatal(err)
				}
				_, err = httpretry.NewTransport(s.client, quiet(t, fast)).RoundTrip(req)
				e, ok := errors.AsType[*forbear.Error](err)
				if !ok || e.Reason != reason.Exhausted || s.requests.Load() != 4 {
					t.Errorf("%d sends, %v; want 4, and all retries used", s.requests.Load(), err)
				}
			})
		}
	}
}

// A POST without a key that the server has disowned is sent again over HTTP/2, once, as
// RFC 9113 section 8.7 allows; so it is with any method of that kind, and with a body that
// comes without GetBody. After a reset with PROTOCOL_ERROR, where net/http would send it
// again by itself, it is not: the server may have processed it.
func TestHTTP2RefusedPosts(t *testing.T) {
	goAway := func(c net.Conn, stream uint32) bool { // and goes on reading: a body may be on its way
		goAway(c, stream)
		return false
	}
	for _, tt := range []struct {
		name   string
		refuse func(net.Conn, uint32) bool
		unsent bool // of the policy
		sends  int64
	}{
		{"GOAWAY", goAway, false, 2},
		{"GOAWAY, retry_unsent", goAway, true, 4},
		{"REFUSED_STREAM", refuseStream, false, 2},
		{"REFUSED_STREAM, retry_unsent", refuseStream, true, 4},
		{"PROTOCOL_ERROR", reset(0x1), false, 1},
		{"PROTOCOL_ERROR, retry_unsent", reset(0x1), true, 1},
	} {
		for kind, body := range map[string]io.Reader{"with GetBody": strings.NewReader("payload"), "a stream": struct{ io.Reader }{strings.NewReader("payload")}} {
			s := newH2Server(t, tt.refuse)
			p := fast
			p.RetryUnsent = tt.unsent
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Addr().String(), body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = httpretry.NewTransport(s.client, quiet(t, p)).RoundTrip(req)
			if n := s.requests.Load(); err == nil || n != tt.sends {
				t.Errorf("%s, %s: %d sends, want %d (%v)", tt.name, kind, n, tt.sends, err)
			}
		}
	}
}

// A server that recycles its connections loses nothing of a POST without a key, whatever
// the policy, and gets nothing twice. A call is sent again once, so it must not meet two
// recycled connections: the callers go in step, and each second step has one.
func TestHTTP2RecycledConnections(t *testing.T) {
	const callers, steps = 10, 100
	var mu sync.Mutex
	seen, arrived := map[string]int{}, 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)]++
		if arrived++; arrived%(2*callers) == callers/2 {
			w.Header().Set("Connection", "close") // GOAWAY
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: httpretry.NewTransport(server.Client().Transport, quiet(t, forbear.Policy{}))}
	for step := range steps {
		var posting sync.WaitGroup
		for caller := range callers {
			posting.Go(func() {
				body := fmt.Sprintf("%d.%d", caller, step)
				resp, err := client.Do(newRequest(t, http.MethodPost, server.URL, body, ""))
				if err != nil {
					t.Errorf("%s: %v", body, err)
					return
				}
				_ = resp.Body.Close()
			})
		}
		posting.Wait()
	}
	if len(seen) != callers*steps {
		t.Errorf("%d of %d arrived", len(seen), callers*steps)
	}
	for body, n := range seen {
		if n != 1 {
			t.Errorf("%s arrived %d times", body, n)
		}
	}
}

// TestHTTP2RefusalsAreBounded holds what net/http would repeat without a bound
// that a policy knows of.
func TestHTTP2RefusalsAreBounded(t *testing.T) {
	for name, refuse := range map[string]func(net.Conn, uint32) bool{
		"GOAWAY": goAway, "REFUSED_STREAM": refuseStream,
	} {
		for _, tc := range resendCases {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				s := newH2Server(t, refuse)
				rec := &counter{}
				r, err := forbear.New("payments", fast, forbear.WithObserver(rec.observer()))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := httpretry.NewTransport(s.client, r).RoundTrip(
					newRequest(t, tc.method, "https://"+s.Addr().String(), tc.body, tc.key))
				if err == nil {
					_ = resp.Body.Close()
					t.Fatalf("got status %d from a server that refuses everything", resp.StatusCode)
				}
				if sends, attempts := s.requests.Load(), rec.n.Load(); sends != attempts || attempts != 4 {
					t.Errorf("%d sends on the wire, %d attempts reported; want 4 of both (%v)", sends, attempts, err)
				}
			})
		}
	}
}

// h2c is such a server that speaks HTTP/2 in clear, and a transport for it.
func h2c(t *testing.T, refuse func(net.Conn, uint32) bool) (*h2Server, *http.Transport) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &h2Server{Listener: l, refuse: refuse}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &protocols}
	t.Cleanup(tr.CloseIdleConnections)
	return s, tr
}

// Over HTTP/2 in clear, where no handshake says what is spoken, a POST without a key is
// sent again once at most: net/http would send it thousands of times.
func TestPostOverHTTP2InClear(t *testing.T) {
	for name, refuse := range map[string]func(net.Conn, uint32) bool{
		"PROTOCOL_ERROR": reset(0x1), "GOAWAY": goAway, "REFUSED_STREAM": refuseStream,
	} {
		sends := int64(2)
		if name == "PROTOCOL_ERROR" {
			sends = 1
		}
		t.Run(name, func(t *testing.T) {
			s, tr := h2c(t, refuse)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			req := newRequest(t, http.MethodPost, "http://"+s.Addr().String(), "order", "").WithContext(ctx)
			_, err := httpretry.NewTransport(tr, quiet(t, fast)).RoundTrip(req)
			if s.requests.Load() != sends {
				t.Errorf("the POST was received %d times: %v", s.requests.Load(), err)
			}
		})
	}
}

// What is stopped over HTTP/2 in clear leaves the connection to the others on it.
func TestStopOverHTTP2InClearSparesOthers(t *testing.T) {
	held := make(chan struct{})
	var first atomic.Bool
	s, tr := h2c(t, func(c net.Conn, stream uint32) bool {
		if stream == 1 {
			if !first.CompareAndSwap(false, true) {
				return refuseStream(c, stream)
			}
			close(held)
			go func() {
				time.Sleep(300 * time.Millisecond)
				frame := []byte{0, 0, 1, frameHeaders, 0x5}
				frame = binary.BigEndian.AppendUint32(frame, stream)
				_, _ = c.Write(append(frame, 0x88))
			}()
			return false
		}
		return refuseStream(c, stream)
	})
	other := make(chan error, 1)
	go func() {
		resp, err := tr.RoundTrip(newRequest(t, http.MethodPost, "http://"+s.Addr().String(), "", ""))
		if err == nil {
			_ = resp.Body.Close()
		}
		other <- err
	}()
	<-held
	_, _ = httpretry.NewTransport(tr, quiet(t, fast)).RoundTrip(newRequest(t, http.MethodGet, "http://"+s.Addr().String(), "", ""))
	if err := <-other; err != nil {
		t.Errorf("another request on the connection died: %v", err)
	}
}
