package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// hesitant is a service that speaks its lines when it has the headers of a request, one
// for each request, and counts what comes after them. Its connections stay open.
type hesitant struct {
	net.Listener
	lines []string
	mu    sync.Mutex
	asked int          // requests
	bytes atomic.Int64 // of bodies
	spoke atomic.Bool  // a line was said
	wg    sync.WaitGroup
}

func hesitates(t *testing.T, lines ...string) *hesitant {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hesitant{Listener: l, lines: lines}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.wg.Add(1)
			go h.serve(c)
		}
	}()
	return h
}

func (h *hesitant) serve(c net.Conn) {
	defer h.wg.Done()
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	h.mu.Lock()
	said := h.lines[min(h.asked, len(h.lines)-1)]
	h.asked++
	h.mu.Unlock()
	h.spoke.Store(said != "")
	_, _ = io.WriteString(c, said)
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		if h.bytes.Add(int64(n)) == 5 {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
		}
		if err != nil {
			return
		}
	}
}

func (h *hesitant) url() string { return "http://" + h.Addr().String() }

// asks sends the headers of an upload and returns the connection.
func asks(t *testing.T, address, path string, length int, more ...string) net.Conn {
	t.Helper()
	c := dial(t, address)
	_, _ = fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n%s\r\n", path, length, strings.Join(more, ""))
	return c
}

// TestRefusedUploadIsNotAskedFor: a caller that waits with its body gets the final
// status, and no 100 before it, and the service none of the body (RFC 9110 section
// 10.1.1).
func TestRefusedUploadIsNotAskedFor(t *testing.T) {
	const refusal = "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"
	long := strings.Repeat("no", 200_000)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
		asked int
	}{
		{"short", []string{refusal}, "no", 1},
		{"empty", []string{"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"}, "", 1},
		{"long", []string{fmt.Sprintf("HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%s", len(long), long)}, long, 1},
		{"chunked", []string{"HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"}, "no", 1},
		{"closing", []string{"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"}, "no", 1},
		{"after a retry", []string{"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno", refusal}, "no", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := hesitates(t, tt.lines...)
			address := start(t, gateway.Route{Prefix: "/", Target: parse(t, up.url()), Retryer: retryer(t, quick)})
			for range 5 {
				up.mu.Lock()
				up.asked = 0
				up.mu.Unlock()
				c := asks(t, address, "/a", 200_000_000)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(resp.Body); resp.StatusCode != 401 || string(body) != tt.want || err != nil || !resp.Close {
					t.Fatalf("got %d %.10q, %v, closing: %v; want the 401", resp.StatusCode, body, err, resp.Close)
				}
				if n, _ := io.Copy(io.Discard, c); n != 0 {
					t.Errorf("%d bytes after the response", n)
				}
				_ = c.Close()
				if up.asked != tt.asked {
					t.Errorf("asked %d times, want %d", up.asked, tt.asked)
				}
			}
			up.wg.Wait() // its connections end with their requests
			if n := up.bytes.Load(); n != 0 {
				t.Errorf("the service got %d bytes of a body that it has refused", n)
			}
		})
	}
}

// TestUploadIsAskedForInTurn: the caller is told to go on when the service has said so,
// or when that was waited for long enough.
func TestUploadIsAskedForInTurn(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		wait       time.Duration
	}{
		{"100", "HTTP/1.1 100 Continue\r\n\r\n", time.Minute},
		{"a hint and 100", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", time.Minute},
		{"nothing", "", 100 * time.Millisecond},
		{"a hint alone", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := hesitates(t, tt.line)
			send := &http.Transport{ExpectContinueTimeout: tt.wait}
			t.Cleanup(send.CloseIdleConnections)
			address := start(t, gateway.Route{Prefix: "/", Target: parse(t, up.url()), Retryer: retryer(t, quick), Transport: send})
			c := asks(t, address, "/a", 5)
			r := bufio.NewReader(c)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != http.StatusContinue || tt.wait == time.Minute && !up.spoke.Load() || up.bytes.Load() != 0 {
				t.Fatalf("got %v, %v; want 100 once the service has said it", resp, err)
			}
			_, _ = io.WriteString(c, "hello")
			resp, err = http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); string(body) != "done" || err != nil {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}

// TestUploadGoesOnBesideItsResponse: a service that knows nothing of the expectation may
// respond while it reads.
func TestUploadGoesOnBesideItsResponse(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		part := make([]byte, 5)
		for i := range 3 {
			if _, err := io.ReadFull(rw, part); err != nil {
				t.Error(err)
				return
			}
			if i == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n")
			}
			_, _ = c.Write(part)
		}
	}))
	t.Cleanup(up.Close)
	send := &http.Transport{ExpectContinueTimeout: 10 * time.Millisecond}
	t.Cleanup(send.CloseIdleConnections)
	address := start(t, gateway.Route{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick), Transport: send, Limits: gateway.Limits{Stream: true}})
	c := asks(t, address, "/a", 15)
	r := bufio.NewReader(c)
	if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("got %v, %v", resp, err)
	}
	_, _ = io.WriteString(c, "hello")
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		part := make([]byte, 5)
		if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != "hello" {
			t.Fatalf("got %q, %v", part, err)
		}
		_, _ = io.WriteString(c, "hello")
	}
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "hello" {
		t.Errorf("got %q, %v", rest, err)
	}
}

// TestOwnRefusalsAskForNothing: what the gateway refuses by itself it refuses by the
// headers.
func TestOwnRefusalsAskForNothing(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	open := quick
	open.Breaker = breaker.Policy{}
	opened := retryer(t, open)
	opened.Breaker().Force(breaker.Open, "test", time.Now())
	full := retryer(t, forbear.Policy{MaxConcurrent: 1})
	if _, err := edge.Begin(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	keyed := &gateway.Ingress{Store: &memstore.Idempotency{}, Options: idempotency.Options{Scope: gateway.PrincipalHeader("X-Principal")}}
	target := parse(t, closed.URL)
	address := start(
		t,
		gateway.Route{Prefix: "/small", Target: target, Retryer: retryer(t, quick), Limits: gateway.Limits{MaxBody: 10}},
		gateway.Route{Prefix: "/read", Target: target, Retryer: retryer(t, quick), Methods: []string{"GET"}},
		gateway.Route{Prefix: "/open", Target: target, Retryer: opened},
		gateway.Route{Prefix: "/full", Target: target, Retryer: full},
		gateway.Route{Prefix: "/closed", Target: target, Retryer: retryer(t, quick)},
		gateway.Route{Prefix: "/keyed", Target: target, Retryer: retryer(t, quick), Ingress: keyed},
	)
	for _, tt := range []struct {
		path, header string
		status       int
	}{
		{"/none", "", 404},
		{"/read", "", 405},
		{"/small", "", 413},
		{"/open", "", 503},
		{"/full", "", 503},
		{"/closed", "", 502},
		{"/closed", "X-Request-Deadline: 1000\r\n", 504},
		{"/closed/%2e%2e/a", "", 400},
		{"/keyed", "Idempotency-Key: k\r\n", 401},
		{"/keyed", "X-Principal: a\r\n", 400},
		{"/keyed", "X-Principal: a\r\nIdempotency-Key: k\r\n", 413},
	} {
		c := dial(t, address)
		method := "PUT"
		if tt.path == "/keyed" {
			method = "POST"
		}
		_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 200000000\r\n%s\r\n", method, tt.path, tt.header)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.path, err)
		}
		if resp.StatusCode != tt.status {
			t.Errorf("%s %s: got %d, want %d", tt.path, tt.header, resp.StatusCode, tt.status)
		}
		_ = c.Close()
	}
}

// unasked is a body that counts how often it is read.
type unasked struct{ reads atomic.Int64 }

func (u *unasked) Read(p []byte) (int, error) { u.reads.Add(1); return len(p), nil }

// TestRefusedUploadOverHTTP2: the same, on either side of the gateway.
func TestRefusedUploadOverHTTP2(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	one := hesitates(t, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
	for name, route := range map[string]gateway.Route{
		"to HTTP/1": {Target: parse(t, one.url())},
		"to HTTP/2": {Target: parse(t, server2(t, refuse)), Transport: patient(clear2(t))},
	} {
		route.Prefix, route.Retryer = "/", retryer(t, quick)
		address := start(t, route)
		continued := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { continued = true }})
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		body := &unasked{}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, address+"/a", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue")
		req.ContentLength = 200_000_000
		resp, err := patient(clear2(t)).RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 401 || continued || body.reads.Load() != 0 {
			t.Errorf("%s: got %d, 100: %v, after %d reads of the body", name, resp.StatusCode, continued, body.reads.Load())
		}
		cancel()
	}
	if n := one.bytes.Load(); n != 0 {
		t.Errorf("the service got %d bytes", n)
	}
}

// patient has a transport wait for 100 as long as it takes.
func patient(t *http.Transport) *http.Transport {
	t.ExpectContinueTimeout = time.Minute
	return t
}
