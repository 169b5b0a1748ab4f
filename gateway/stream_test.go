package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway"
)

// An event reaches the caller while the upstream is still at work: the upstream
// sends the second only after the caller has told of the first.
func TestStreamPassesThrough(t *testing.T) {
	got := make(chan string)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case line := <-got:
				if line != fmt.Sprintf("data: %d", i) {
					t.Errorf("caller read %q", line)
				}
			case <-time.After(10 * time.Second):
				t.Error("the event did not arrive while the stream was open")
				return
			}
		}
	})
	resp, err := http.Get(address + "/up/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	count := 0
	for lines.Scan() {
		got <- lines.Text()
		count++
	}
	if count != 3 {
		t.Errorf("%d events, want 3", count)
	}
}

// A body that breaks off must not look complete.
func TestBrokenBodyBreaksOff(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "only this")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	resp, err := http.Get(address + "/up")
	if err != nil {
		return // broken before the headers got through: plain enough
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read %q without an error", text)
	}
}

// A long request body is passed on while it comes, and sent once.
func TestLongBodyIsSentOnce(t *testing.T) {
	var rs requests
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		rs.add(r)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	body := strings.Repeat("x", 200<<10)
	got := call(t, http.MethodPut, address+"/up", nil, strings.NewReader(body))
	if got.StatusCode != 503 || got.Header.Get("Forbear-Stop") != "not_replayable" || len(rs.seen) != 1 {
		t.Errorf("got %d, Forbear-Stop %q, %d requests", got.StatusCode, got.Header.Get("Forbear-Stop"), len(rs.seen))
	}
	if rs.body[0] != body {
		t.Errorf("the body arrived with %d bytes", len(rs.body[0]))
	}
}

func TestUpgrade(t *testing.T) {
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" || !strings.EqualFold(r.Header.Get("Connection"), "Upgrade") {
			http.Error(w, "no upgrade asked", http.StatusBadRequest)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		_ = rw.Flush()
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "GET /up/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %+v, %v", resp, err)
	}
	// Longer than an attempt may take: the timeout ends with the headers.
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestHopByHopHeaders(t *testing.T) {
	seen := make(chan *http.Request, 1)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.Header().Set("Connection", "X-Private")
		w.Header().Set("X-Private", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("X-Public", "1")
	})
	h := http.Header{
		"Connection": {"X-Hop"}, "X-Hop": {"1"}, "Te": {"deflate"}, "Proxy-Authorization": {"Basic x"},
		"X-End": {"1"}, "X-Forwarded-For": {"192.0.2.7"}, "Forwarded": {"for=192.0.2.7"}, "Authorization": {"Bearer x"},
	}
	got := call(t, http.MethodGet, address+"/up", h, nil)
	r := <-seen
	for _, name := range []string{"X-Hop", "Te", "Proxy-Authorization", "Connection"} {
		if v := r.Header.Values(name); len(v) > 0 {
			t.Errorf("%s: %q was passed on", name, v)
		}
	}
	if r.Header.Get("X-End") != "1" || r.Header.Get("Authorization") != "Bearer x" {
		t.Error("end-to-end headers were lost")
	}
	if chain := r.Header.Get("X-Forwarded-For"); chain != "127.0.0.1" || r.Header["Forwarded"] != nil {
		t.Errorf("X-Forwarded-For %q", chain)
	}
	if r.Header.Get("X-Forwarded-Proto") != "http" || r.Header.Get("X-Forwarded-Host") == "" {
		t.Errorf("X-Forwarded-*: %v", r.Header)
	}
	if _, sent := r.Header["User-Agent"]; !sent {
		t.Error("the caller's User-Agent was lost")
	}
	if got.Header.Get("X-Private") != "" || got.Header.Get("Keep-Alive") != "" || got.Header.Get("X-Public") != "1" {
		t.Errorf("answer headers: %v", got.Header)
	}
}

// What is encoded stays as it is: the gateway neither asks for compression by
// itself nor takes it off.
func TestEncodingIsLeftAlone(t *testing.T) {
	asked := make(chan []string, 1)
	address := before(t, quick, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header["Accept-Encoding"]
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "not really gzip")
	})
	for _, want := range [][]string{{"br"}, nil} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/up", nil)
		if err != nil {
			t.Fatal(err)
		}
		if want != nil {
			req.Header["Accept-Encoding"] = want
		}
		resp, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if a := <-asked; !slices.Equal(a, want) || string(body) != "not really gzip" {
			t.Errorf("asked for %q, want %q; got %q, %v", a, want, body, err)
		}
	}
}

// A shutdown lets the call under way finish, its retries included.
func TestShutdownDrains(t *testing.T) {
	started, release := make(chan struct{}, 9), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		<-release
		if r.Header.Get("X-Retry-Attempt") == "0" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(up.Close)
	g, err := gateway.New(gateway.Config{Routes: []gateway.Route{
		{Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gateway.NewServer(g)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String() + "/x")
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-started
	g.Drain()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(ctx) }()
	if err := <-served; err != http.ErrServerClosed {
		t.Errorf("serve ended with %v", err)
	}
	close(release)
	if got := <-status; got != 200 {
		t.Errorf("the call under way got %d", got)
	}
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// Callers who send slowly do not make their dependency look slow: their uploads
// arrive, each once, and the breaker stays closed for everybody.
func TestSlowUploadsArrive(t *testing.T) {
	const uploads, pieces = 30, 4 // more than opens a breaker
	p := quick
	p.PerAttempt, p.Breaker = 3*time.Second, breaker.Policy{}
	var rs requests
	address := before(t, p, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		rs.add(r)
		_, _ = w.Write(got)
	})
	var all sync.WaitGroup
	for i := range uploads {
		all.Go(func() {
			piece := fmt.Sprintf("piece of %d;", i)
			body, in := io.Pipe()
			go func() {
				defer in.Close()
				for range pieces {
					time.Sleep(time.Second)
					_, _ = io.WriteString(in, piece)
				}
			}()
			a := call(t, http.MethodPost, address+"/up", nil, body)
			if a.StatusCode != http.StatusOK || a.body != strings.Repeat(piece, pieces) {
				t.Errorf("upload %d: got %d %q", i, a.StatusCode, a.body)
			}
		})
	}
	all.Wait()
	if n := len(rs.seen); n != uploads {
		t.Errorf("%d requests arrived, want %d", n, uploads)
	}
	if a := get(t, address+"/up"); a.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d %q", a.StatusCode, a.body)
	}
}

// A caller who stops in the middle of an upload gets a response after the time that a
// body may stand still, and the dependency is not blamed for it.
func TestStalledUploadEnds(t *testing.T) {
	p := quick
	p.BodyIdle, p.Breaker = 300*time.Millisecond, breaker.Policy{FailureRate: 0.25, MinCalls: 1}
	address := before(t, p, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for range 5 {
		c, err := net.Dial("tcp", parse(t, address).Host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "PUT /up HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000\r\n\r\nabc")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = c.Close()
		if resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), "urn:forbear:problem:request-body") {
			t.Errorf("got %d %s", resp.StatusCode, text)
		}
	}
	if a := get(t, address+"/up"); a.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d %q", a.StatusCode, a.body)
	}
}
