package gateway_test

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear/gateway"
	"github.com/forbear-go/forbear/gateway/upstream"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// startWithin is start with memory for the bodies of all routes.
func startWithin(t *testing.T, memory *httpretry.BodyMemory, routes ...gateway.Route) string {
	t.Helper()
	g, err := gateway.New(gateway.Config{
		Routes: routes, Logger: slog.New(slog.DiscardHandler), Options: []httpretry.Option{httpretry.WithBodyMemory(memory)},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = gateway.NewServer(g)
	srv.Listener = gateway.Listener(srv.Listener, nil, nil)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// free waits until no body takes memory.
func free(t *testing.T, memory *httpretry.BodyMemory) {
	t.Helper()
	for end := time.Now().Add(time.Minute); memory.Used() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes stay taken", memory.Used())
		}
	}
}

// noise returns a body that no other is like.
func noise(size int) string {
	p := make([]byte, size)
	_, _ = rand.Read(p) // never fails
	return string(p)
}

// bodies are what an upstream got, by the key of the request.
type bodies struct {
	mu  sync.Mutex
	got map[string][][32]byte
}

// take reads a body, or as much of it as most, and returns the number of the attempt.
func (b *bodies) take(r *http.Request, most int64) int {
	h := sha256.New()
	_, _ = io.CopyN(h, r.Body, most)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got == nil {
		b.got = map[string][][32]byte{}
	}
	key := r.Header.Get("Idempotency-Key")
	b.got[key] = append(b.got[key], [32]byte(h.Sum(nil)))
	return len(b.got[key])
}

// last returns the hash of the latest body, and how many there were.
func (b *bodies) last(key string) (n int, hash [32]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = len(b.got[key]); n > 0 {
		hash = b.got[key][n-1]
	}
	return n, hash
}

// TestBodyLimit: a long POST whose first attempt fails is sent again, byte for byte, where
// its route keeps that much, and else it is sent once. That is so with and without a
// length, over HTTP/1 and HTTP/2, and if the failure comes in the middle of the body.
func TestBodyLimit(t *testing.T) {
	race.TooSlow(t, "TestBodyMemoryOfManyRequests has many bodies at once")
	const long = 9 << 20
	body := noise(long)
	want := sha256.Sum256([]byte(body))
	for _, over := range []string{"HTTP/1", "HTTP/2"} {
		var seen bodies
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			most := int64(long + 1)
			if r.URL.Path == "/middle" && r.Header.Get("X-Retry-Attempt") == "0" {
				most = long / 2
			}
			if seen.take(r, most) == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		client, route := http.DefaultClient, gateway.Route{Retryer: retryer(t, quick)}
		if over == "HTTP/1" {
			up := httptest.NewServer(h)
			t.Cleanup(up.Close)
			route.Target = parse(t, up.URL)
		} else {
			u, err := upstream.New(upstream.Config{HTTP2: upstream.HTTP2Only})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(u.Close)
			route.Target, route.Transport, client = parse(t, h2cServer(t, h)), u, caller(t, nil, http2)
		}
		keeps, tight, usual := route, route, route
		keeps.Prefix, keeps.BodyLimit = "/keeps", long
		tight.Prefix, tight.BodyLimit = "/tight", long-1
		usual.Prefix = "/usual"
		memory := httpretry.NewBodyMemory(256 << 20)
		address := startWithin(t, memory, keeps, tight, usual)
		for _, tc := range []struct {
			path     string
			attempts int
		}{
			{"/keeps/end", 2}, {"/keeps/middle", 2}, {"/tight/end", 1}, {"/usual/end", 1},
		} {
			for _, length := range []int64{long, -1} {
				name := fmt.Sprint(over, " ", tc.path, " ", length)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+tc.path, io.MultiReader(strings.NewReader(body)))
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = length
				req.Header.Set("Idempotency-Key", name)
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				_ = resp.Body.Close()
				stop, status := "", 200
				if tc.attempts == 1 {
					stop, status = "not_replayable", 503
				}
				n, hash := seen.last(name)
				if resp.StatusCode != status || resp.Header.Get("Forbear-Stop") != stop || n != tc.attempts {
					t.Errorf("%s: status %d, Forbear-Stop %q after %d attempts", name, resp.StatusCode, resp.Header.Get("Forbear-Stop"), n)
				}
				if hash != want {
					t.Errorf("%s: attempt %d had another body", name, n)
				}
			}
		}
		free(t, memory)
	}
}

// TestBodyMemoryOfManyRequests: when the bodies of all requests do not fit into the
// memory, some are sent again and the others once; no body arrives changed, and nothing
// stays taken. A short body is sent again all the same.
func TestBodyMemoryOfManyRequests(t *testing.T) {
	const long, calls, fit = 2 << 20, 32, 4
	memory := httpretry.NewBodyMemory(fit * long)
	var seen bodies
	var firsts sync.WaitGroup // the first attempts are at their end together
	firsts.Add(calls)
	var most atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.take(r, long+1) == 1 {
			if r.URL.Path == "/long" {
				most.Store(max(most.Load(), memory.Used()))
				firsts.Done()
				firsts.Wait()
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(up.Close)
	address := startWithin(t, memory, gateway.Route{
		Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick), Limits: gateway.Limits{BodyLimit: long},
	})
	var again, once atomic.Int64
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			body, key := noise(long), fmt.Sprint("call ", i)
			got := call(t, http.MethodPut, address+"/long", http.Header{"Idempotency-Key": {key}}, io.MultiReader(strings.NewReader(body)))
			n, hash := seen.last(key)
			switch stop := got.Header.Get("Forbear-Stop"); {
			case got.StatusCode == 200 && n == 2:
				again.Add(1)
			case got.StatusCode == 503 && n == 1 && stop == "not_replayable":
				once.Add(1)
			default:
				t.Errorf("%s: status %d, Forbear-Stop %q after %d attempts", key, got.StatusCode, stop, n)
			}
			if hash != sha256.Sum256([]byte(body)) {
				t.Errorf("%s: attempt %d had another body", key, n)
			}
		})
	}
	all.Wait()
	if again.Load() == 0 || again.Load() > fit+1 || again.Load()+once.Load() != calls { // the first block of each is free
		t.Errorf("%d were sent again, %d once", again.Load(), once.Load())
	}
	if got := most.Load(); got == 0 || got > memory.Limit() {
		t.Errorf("%d bytes were taken of %d", got, memory.Limit())
	}
	free(t, memory)
	if got := call(t, http.MethodPut, address+"/short", nil, strings.NewReader(noise(64<<10))); got.StatusCode != 200 {
		t.Errorf("a short body: %d %s", got.StatusCode, got.body)
	}
}

// TestCallerLeavesInALongBody: what is kept of a body is given back when its caller hangs
// up in the middle.
func TestCallerLeavesInALongBody(t *testing.T) {
	const long = 9 << 20
	ended := make(chan int64, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			t.Error("half a body looks complete")
		}
		ended <- n
	}))
	t.Cleanup(up.Close)
	memory := httpretry.NewBodyMemory(64 << 20)
	address := startWithin(t, memory, gateway.Route{
		Prefix: "/", Target: parse(t, up.URL), Retryer: retryer(t, quick), Limits: gateway.Limits{BodyLimit: long},
	})
	for _, head := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", long), "Transfer-Encoding: chunked\r\n\r\n500000\r\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\n"+head+noise(4<<20))
		for end := time.Now().Add(time.Minute); memory.Used() < 3<<20; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d bytes are taken", memory.Used())
			}
		}
		_ = c.Close()
		if n := <-ended; n > 4<<20 {
			t.Errorf("%d bytes arrived", n)
		}
		free(t, memory)
	}
}
