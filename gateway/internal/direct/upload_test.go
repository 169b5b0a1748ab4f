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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/forbear-go/forbear/httpretry"
)

// opaque is a body that no one knows the type of.
type opaque struct{ io.Reader }

func (o opaque) Close() error {
	if c, ok := o.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// posting returns a request with a body of n bytes, or of an unknown number.
func posting(t testing.TB, address string, body io.Reader, n int64) *http.Request {
	t.Helper()
	r := request(t, "POST", address)
	r.Body, r.ContentLength = opaque{body}, n
	return r
}

// TestUploadsUseConnectionsAgain: bodies of all sizes arrive whole, over one connection.
func TestUploadsUseConnectionsAgain(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, r.ContentLength, r.Trailer.Get("X-Sum"), err)
	}))
	n := connections(srv)
	srv.Start()
	defer srv.Close()
	tr := newTransport(t)
	for _, size := range []int{1, 100, 4 << 10, 5000, 32 << 10, 1 << 20} {
		for _, known := range []bool{true, false} {
			r := posting(t, srv.URL, strings.NewReader(strings.Repeat("x", size)), int64(size))
			want := fmt.Sprint(size, size, "", nil)
			if !known {
				r.ContentLength, r.Trailer = -1, http.Header{"X-Sum": {"7"}}
				want = fmt.Sprint(size, -1, "7", nil)
			}
			if _, text, err := read(t, tr, r); text != want || err != nil {
				t.Errorf("%d bytes, known %v: %q, %v; want %q", size, known, text, err, want)
			}
		}
	}
	if n.Load() != 1 {
		t.Errorf("%d connections, want 1", n.Load())
	}
}

// TestResponseBeforeTheBody: it is handed over at once, the upload goes on, and the
// connection is used again only when both have come to their end.
func TestResponseBeforeTheBody(t *testing.T) {
	var conns atomic.Int64
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		conns.Add(1)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
			if r.URL.Path == "/refuse" {
				_, _ = io.WriteString(c, "0\r\n\r\n")
			}
			n, _ := io.Copy(io.Discard, r.Body)
			if _, err := fmt.Fprintf(c, "2\r\n%02d\r\n0\r\n\r\n", n); err != nil {
				return
			}
		}
	})
	tr := newTransport(t)
	for range 3 {
		body, in := io.Pipe()
		resp, err := tr.RoundTrip(posting(t, address, body, -1))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, _ = io.WriteString(in, "piece")
		}
		_ = in.Close()
		if text, err := io.ReadAll(resp.Body); string(text) != "ok15" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections, want 1", conns.Load())
	}
	body, in := io.Pipe()
	resp, err := tr.RoundTrip(posting(t, address, body, -1))
	if err != nil {
		t.Fatal(err)
	}
	_ = in.CloseWithError(errNoMore)
	if text, err := io.ReadAll(resp.Body); err != errNoMore {
		t.Errorf("after a body that broke off: %q, %v", text, err)
	}
	body, in = io.Pipe()
	defer in.Close()
	_, text, err := read(t, tr, posting(t, address+"/refuse", body, -1))
	if text != "ok" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if len(tr.idle[place{address: strings.TrimPrefix(address, "http://")}]) > 0 {
		t.Error("a connection on which a request is still being written is idle")
	}
	for err == nil { // up to the first write to a connection that is closed
		_, err = io.WriteString(in, "more")
	}
}

type failure struct {
	name  string
	serve func(c *net.TCPConn, in *bufio.Reader)
	body  func() io.Reader
}

var errNoMore = errors.New("no more")

// failing are servers that do not respond as they should, and bodies that do not come.
var failing = []failure{
	{name: "hangs up", serve: func(*net.TCPConn, *bufio.Reader) {}},
	{name: "hangs up after the headers", serve: func(_ *net.TCPConn, in *bufio.Reader) { _, _ = http.ReadRequest(in) }},
	{name: "resets", serve: func(c *net.TCPConn, in *bufio.Reader) { _, _ = in.Peek(1); _ = c.SetLinger(0) }},
	{name: "resets after all", serve: func(c *net.TCPConn, in *bufio.Reader) { all(in); _ = c.SetLinger(0) }},
	{name: "hangs up after all", serve: func(_ *net.TCPConn, in *bufio.Reader) { all(in) }},
	{name: "half a status line", serve: func(c *net.TCPConn, in *bufio.Reader) { all(in); _, _ = io.WriteString(c, "HTTP/1.1 2") }},
	{name: "half of the headers", serve: func(c *net.TCPConn, in *bufio.Reader) {
		all(in)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nA: b")
	}},
	{name: "no HTTP", serve: func(c *net.TCPConn, in *bufio.Reader) { all(in); _, _ = io.WriteString(c, "SSH-2.0-x\r\n") }},
	{name: "says nothing", serve: func(_ *net.TCPConn, in *bufio.Reader) { all(in); _, _ = in.ReadByte() }},
	{name: "a body that fails", serve: func(_ *net.TCPConn, in *bufio.Reader) { all(in) }, body: func() io.Reader {
		return io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(errNoMore))
	}},
	{name: "a body that is short", serve: func(_ *net.TCPConn, in *bufio.Reader) { all(in) }, body: func() io.Reader { return strings.NewReader("hel") }},
	{name: "a body that is long", serve: func(_ *net.TCPConn, in *bufio.Reader) { all(in); _, _ = in.ReadByte() }, body: func() io.Reader { return strings.NewReader(strings.Repeat("hello", 2)) }},
}

// all reads a request to its end.
func all(in *bufio.Reader) {
	if r, err := http.ReadRequest(in); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// TestFailuresAreThoseOfNetHTTP: what goes wrong is of the class that it would be of
// there, on a fresh connection and on a used one. Of which type it is there depends on
// which of its goroutines is first.
func TestFailuresAreThoseOfNetHTTP(t *testing.T) {
	for _, tc := range failing {
		for _, method := range []string{"GET", "POST"} {
			for _, used := range []bool{false, true} {
				if tc.body != nil && method == "GET" || used && tc.name == "hangs up" {
					continue // TestClosedWhileIdle has the latter
				}
				t.Run(fmt.Sprintf("%s/%s/used %v", tc.name, method, used), func(t *testing.T) {
					t.Parallel()
					tr := newTransport(t)
					got, want := tc.send(t, tr, method, used), tc.send(t, tr.Next, method, used)
					if used && want == "200 OK" {
						want = "transient" // it has sent it again, which is left to the retries here
					}
					if got != want {
						t.Errorf("got %s, net/http has %s", got, want)
					}
				})
			}
		}
	}
}

// send returns the class of the failure, or what was no failure.
func (tc *failure) send(t *testing.T, rt http.RoundTripper, method string, used bool) string {
	address := raw(t, func(c net.Conn, in *bufio.Reader) {
		if used {
			all(in)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
		tc.serve(c.(*net.TCPConn), in)
	})
	if used {
		resp, err := rt.RoundTrip(request(t, "GET", address))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	limit := time.Minute
	if tc.name == "says nothing" {
		limit = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := request(t, method, address).WithContext(ctx)
	if method == "POST" {
		r.Body, r.ContentLength = opaque{strings.NewReader("hello")}, 5
	}
	if tc.body != nil {
		r.Body = opaque{tc.body()}
	}
	resp, err := rt.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
		return resp.Status
	}
	if errors.Is(err, errNoMore) || errors.Is(err, context.DeadlineExceeded) {
		return err.Error()
	}
	return httpretry.Classify(request(t, method, address), nil, err).Class.String()
}

// TestUploadsAreNotMixed: many callers with bodies, some of whom leave in the middle,
// before servers that respond early or late.
func TestUploadsAreNotMixed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "3") {
			fmt.Fprint(w, r.URL.Path)
			return
		}
		text, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.URL.Path, len(text), strings.Count(string(text), "x"))
	}))
	defer srv.Close()
	tr := newTransport(t)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range 60 {
				path, size := fmt.Sprintf("/%d-%d", caller, i), 1+i*997
				ctx, cancel := context.WithCancel(t.Context())
				if i%7 == 0 {
					time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
				}
				want := path + fmt.Sprint(size, size)
				if strings.HasSuffix(path, "3") {
					want = path
				}
				r := posting(t, srv.URL+path, strings.NewReader(strings.Repeat("x", size)), int64(size))
				_, text, err := read(t, tr, r.WithContext(ctx))
				if err == nil && text != want || err != nil && ctx.Err() == nil {
					t.Errorf("%s: %.60q, %v", path, text, err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
}
