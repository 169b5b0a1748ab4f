package idempotency_test

import (
	"bytes"
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

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// Seventy callers whose bodies trickle in keep no other caller waiting, whether
// they have sent the beginning of it or nearly all: a good caller's large body is
// read and its response sent while every one of them is still under way.
func TestSlowBodiesHoldNoOneElseUp(t *testing.T) {
	const slow, length = 70, 1 << 20
	for name, first := range map[string]int{"the beginning": 20 << 10, "nearly all": length - 1<<10} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int64
			h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{Scope: idempotency.SingleTenant()},
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs.Add(1) }))
			if err != nil {
				t.Fatal(err)
			}
			var arrived atomic.Int64 // bytes of slow bodies that the middleware has read
			var ended atomic.Int64   // slow bodies that it has given up
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Slow") != "" {
					r.Body = &counting{r.Body, &arrived, &ended}
				}
				h.ServeHTTP(w, r)
			}))
			srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			srv.Start()
			defer srv.Close()
			defer srv.CloseClientConnections()

			stop := make(chan struct{})
			var wg sync.WaitGroup
			for i := range slow {
				wg.Go(func() { trickle(t, srv.Listener.Addr().String(), i, first, length, stop) })
			}
			defer wg.Wait()
			defer close(stop)
			// Until no more is read: of those that wait for their turn, nothing is.
			for seen, quiet := int64(-1), 0; quiet < 20 && seen < int64(slow*first); time.Sleep(10 * time.Millisecond) {
				if n := arrived.Load(); n > seen+slow*8 {
					seen, quiet = n, 0
				} else {
					quiet++
				}
			}

			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/pay", bytes.NewReader(make([]byte, 200<<10)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "good")
			resp, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 200 || ended.Load() != 0 || runs.Load() != 1 {
				text, _ := io.ReadAll(resp.Body)
				t.Errorf("got %d after %d of %d slow callers had ended, %d runs; want 200 while all are under way: %s", resp.StatusCode, ended.Load(), slow, runs.Load(), text)
			}
		})
	}
}

// counting counts what is read of a body, and whether the reading fails.
type counting struct {
	io.ReadCloser
	n, ended *atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	if err != nil {
		c.ended.Add(1)
	}
	return n, err
}

// trickle sends the first bytes of a body at once and then one at a time, until it
// is stopped or refused.
func trickle(t *testing.T, address string, i, first, length int, stop <-chan struct{}) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "POST /pay HTTP/1.1\r\nHost: x\r\nSlow: yes\r\nIdempotency-Key: key-%d\r\nContent-Length: %d\r\n\r\n", i, length)
	if _, err := conn.Write(make([]byte, first)); err != nil {
		return
	}
	for range length - first {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if _, err := conn.Write([]byte{0}); err != nil {
			return
		}
	}
}

// A large body that breaks off is no request, however its length was named: it
// runs nothing, and what was read of it is given back.
func TestLargeBodiesThatBreakOffRunNothing(t *testing.T) {
	for name, framing := range map[string]string{
		"declared":           "Content-Length: 900000\r\n\r\n" + strings.Repeat("x", 300<<10),
		"between two chunks": "Transfer-Encoding: chunked\r\n\r\n4b000\r\n" + strings.Repeat("x", 300<<10) + "\r\n",
		"within a chunk":     "Transfer-Encoding: chunked\r\n\r\nf0000\r\n" + strings.Repeat("x", 300<<10),
	} {
		t.Run(name, func(t *testing.T) {
			results := make(chan idempotency.Result, 1)
			h, err := idempotency.Handler(&memstore.Idempotency{}, idempotency.Options{
				Scope: idempotency.SingleTenant(), Observe: func(e idempotency.Event) { results <- e.Result },
			}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(h)
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, "POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"+framing); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			if got := <-results; got != idempotency.Invalid {
				t.Errorf("got %s, want %s", got, idempotency.Invalid)
			}
		})
	}
}

// A body that stands still ends after its idle time with a problem that says so,
// over either HTTP, and what it sent runs nothing; its caller may come again with
// the same key.
func TestStalledBodiesGet408(t *testing.T) {
	for _, major := range []int{1, 2} {
		for name, sent := range map[string]int{"a small one": 100, "a large one": 300 << 10} {
			t.Run(fmt.Sprintf("%s over HTTP/%d", name, major), func(t *testing.T) {
				var runs atomic.Int64
				results := make(chan idempotency.Result, 2)
				store := &memstore.Idempotency{}
				handler := func(idle time.Duration) http.Handler {
					h, err := idempotency.Handler(store, idempotency.Options{
						Scope: idempotency.SingleTenant(), BodyIdle: idle, Observe: func(e idempotency.Event) { results <- e.Result },
					}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs.Add(1) }))
					if err != nil {
						t.Fatal(err)
					}
					return h
				}
				// The second time a body may stand still for as long as a busy machine lets it.
				hasty, patient := handler(50*time.Millisecond), handler(time.Minute)
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.ContentLength < 0 {
						hasty.ServeHTTP(w, r)
						return
					}
					patient.ServeHTTP(w, r)
				}))
				srv.EnableHTTP2 = major == 2
				srv.StartTLS()
				defer srv.Close()
				post := func(body io.Reader) *http.Response {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/pay", body)
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Idempotency-Key", "k")
					resp, err := srv.Client().Do(req)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = resp.Body.Close() })
					if resp.ProtoMajor != major {
						t.Errorf("over HTTP/%d", resp.ProtoMajor)
					}
					return resp
				}
				still, writer := io.Pipe()
				defer writer.Close()
				go func() { _, _ = writer.Write(make([]byte, sent)) }()
				resp := post(still)
				text, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(text), "idempotency/request-timeout") || <-results != idempotency.Stalled || runs.Load() != 0 {
					t.Errorf("got %d %s, %d runs; want 408 and none", resp.StatusCode, text, runs.Load())
				}
				if resp := post(strings.NewReader("whole")); resp.StatusCode != 200 || runs.Load() != 1 {
					t.Errorf("the same key again: %d, %d runs; want 200 and one", resp.StatusCode, runs.Load())
				}
			})
		}
	}
}
