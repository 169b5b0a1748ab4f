package direct

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/resend"
)

func newTransport(t *testing.T) *Transport {
	t.Helper()
	tr := &Transport{Next: &http.Transport{
		DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func request(t testing.TB, method, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = ""
	return r
}

// read sends a request and reads its response.
func read(t testing.TB, tr *Transport, r *http.Request) (int, string, error) {
	t.Helper()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// connections counts the connections that a server has had.
func connections(srv *httptest.Server) *atomic.Int64 {
	var n atomic.Int64
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			n.Add(1)
		}
	}
	return &n
}

// TestWhereRequestsGo: to the address that net/http dials for the same URL.
func TestWhereRequestsGo(t *testing.T) {
	for _, address := range []string{
		"http://a.test", "http://a.test:", "http://a.test:8080", "http://[::1]", "http://[::1]:", "http://[::1]:8080", "http://[fe80::1%25en0]:",
		"https://a.test", "https://a.test:", "https://a.test:8443", "https://[::1]:",
	} {
		var dialed []string
		over := &http.Transport{Protocols: &http.Protocols{}, DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("no connection")
		}}
		over.DialTLSContext = over.DialContext
		over.Protocols.SetHTTP1(true)
		r := request(t, "GET", "http://a.test/")
		var err error
		if r.URL, err = url.Parse(address + "/"); err != nil { // a request that was made of it would have a mended one
			t.Fatal(err)
		}
		for _, tr := range []http.RoundTripper{over, &Transport{Next: over}} {
			if _, err := tr.RoundTrip(r); err == nil {
				t.Errorf("%s: a response", address)
			}
		}
		if len(dialed) != 2 || dialed[0] != dialed[1] {
			t.Errorf("%s: net/http and this dial %q", address, dialed)
		}
	}
}

// TestConnectionsServeAgain: after each kind of response that leaves a connection
// usable, and after no other.
func TestConnectionsServeAgain(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/chunked":
			_ = http.NewResponseController(w).Flush()
			fmt.Fprint(w, "abc")
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
			fmt.Fprint(w, "abc")
		case "/close":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "abc")
		default:
			fmt.Fprint(w, "abc")
		}
	}))
	n := connections(srv)
	srv.Start()
	defer srv.Close()
	tr := newTransport(t)
	for _, tc := range []struct {
		method, path, want string
		status             int
	}{
		{"GET", "/", "abc", 200},
		{"HEAD", "/", "", 200},
		{"GET", "/chunked", "abc", 200},
		{"DELETE", "/204", "", 204},
		{"GET", "/hints", "abc", 200},
		{"POST", "/", "abc", 200},
	} {
		status, text, err := read(t, tr, request(t, tc.method, srv.URL+tc.path))
		if err != nil || status != tc.status || text != tc.want {
			t.Errorf("%s %s: %d %q, %v", tc.method, tc.path, status, text, err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("%d connections, want 1", n.Load())
	}
	for range 2 {
		if _, text, err := read(t, tr, request(t, "GET", srv.URL+"/close")); text != "abc" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if n.Load() != 2 {
		t.Errorf("%d connections, want 2: the server has closed the first", n.Load())
	}
	resp, err := tr.RoundTrip(request(t, "GET", srv.URL+"/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // before its end
	if _, _, err := read(t, tr, request(t, "GET", srv.URL+"/")); err != nil || n.Load() != 4 {
		t.Errorf("%d connections, want 4: a body was left unread; %v", n.Load(), err)
	}
}

// raw is a server that gives each connection to serve.
func raw(t *testing.T, serve func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c, bufio.NewReader(c))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestClosedWhileIdle: a server that hangs up between two requests costs none of them.
func TestClosedWhileIdle(t *testing.T) {
	var served atomic.Int64
	hungUp := make(chan struct{}, 20)
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			served.Add(1)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			_ = c.Close()
			hungUp <- struct{}{}
		}
	})
	tr := newTransport(t)
	for i := range 20 {
		if _, text, err := read(t, tr, request(t, []string{"GET", "POST"}[i%2], address)); err != nil || text != "ok" {
			t.Fatalf("request %d: %q, %v", i+1, text, err)
		}
		<-hungUp
	}
	if served.Load() != 20 {
		t.Errorf("%d served", served.Load())
	}
}

// TestClosedUnderARequest: a server that hangs up on a used connection when a request
// comes leaves a re-send for what may be sent again, and the plain error else.
func TestClosedUnderARequest(t *testing.T) {
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = http.ReadRequest(in)
	})
	for method, want := range map[string]error{"GET": resend.Err, "POST": io.EOF} {
		tr := newTransport(t)
		if _, _, err := read(t, tr, request(t, "GET", address)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(t, tr, request(t, method, address)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", method, err, want)
		}
	}
	fresh := raw(t, func(c net.Conn, in *bufio.Reader) { _, _ = http.ReadRequest(in) })
	if _, _, err := read(t, newTransport(t), request(t, "GET", fresh)); err != io.EOF {
		t.Errorf("on a fresh connection: %v", err)
	}
}

// TestWhatFollowsAResponse: a connection on which more came than its response serves no
// other request.
func TestWhatFollowsAResponse(t *testing.T) {
	var conns atomic.Int64
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		conns.Add(1)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
		}
	})
	tr := newTransport(t)
	for range 5 {
		if _, text, err := read(t, tr, request(t, "GET", address)); err != nil || text != "ok" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if conns.Load() != 5 {
		t.Errorf("%d connections for 5 requests", conns.Load())
	}
}

// TestCancel: the end of the context ends a request that waits for its headers or its
// body, with the context's cause, and leaves no connection.
func TestCancel(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "a")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	defer srv.Close()
	cause := errors.New("enough")
	for _, path := range []string{"/headers", "/body"} {
		tr := newTransport(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
		if _, _, err := read(t, tr, request(t, "GET", srv.URL+path).WithContext(ctx)); err != cause {
			t.Errorf("%s: %v", path, err)
		}
		if len(tr.idle) > 0 {
			t.Errorf("%s: a connection is idle", path)
		}
	}
}

// TestHeadersWithoutEnd: they end at a bound.
func TestHeadersWithoutEnd(t *testing.T) {
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		_, _ = http.ReadRequest(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		line := "X: " + strings.Repeat("x", 1<<16) + "\r\n"
		for {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	if _, _, err := read(t, newTransport(t), request(t, "GET", address)); !errors.Is(err, errLongHeaders) {
		t.Errorf("got %v", err)
	}
}

// TestIdleConnectionsEnd: when they have been idle for their time.
func TestIdleConnectionsEnd(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer srv.Close()
	tr := newTransport(t)
	tr.Next.IdleConnTimeout = 20 * time.Millisecond
	if _, _, err := read(t, tr, request(t, "GET", srv.URL)); err != nil {
		t.Fatal(err)
	}
	for range 6000 {
		tr.mu.Lock()
		n := len(tr.idle)
		tr.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a connection is still idle")
}

// TestCallersGetTheirOwn: many callers, each with a response of its own, some of whom
// leave in the middle.
func TestCallersGetTheirOwn(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Repeat(r.URL.Path, 500))
	}))
	defer srv.Close()
	tr := newTransport(t)
	var all sync.WaitGroup
	for caller := range 16 {
		all.Go(func() {
			for i := range 100 {
				path := fmt.Sprintf("/%d-%d", caller, i)
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
				}
				_, text, err := read(t, tr, request(t, "GET", srv.URL+path).WithContext(ctx))
				if err == nil && text != strings.Repeat(path, 500) || err != nil && ctx.Err() == nil {
					t.Errorf("%s: %.40q, %v", path, text, err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}
