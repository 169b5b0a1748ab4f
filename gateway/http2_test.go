package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
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
	"github.com/forbear-go/forbear/internal/testkit/race"
)

// h2cServer serves HTTP/2 in clear.
func h2cServer(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// overHTTP2 starts a gateway in front of a server, which it speaks HTTP/2 to.
func overHTTP2(t *testing.T, h http.Handler) (url string, client *http.Client) {
	t.Helper()
	u, err := upstream.New(upstream.Config{HTTP2: upstream.HTTP2Only})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	p := quick
	p.Total, p.PerAttempt = 30*time.Second, 20*time.Second
	url = start(t, gateway.Route{Prefix: "/", Target: parse(t, h2cServer(t, h)), Retryer: retryer(t, p), Transport: u})
	client = caller(t, nil, http2)
	client.Timeout = 30 * time.Second
	return url, client
}

// TestStreamingOverHTTP2: both directions are open at a time, through HTTP/2 on both
// sides: each line that the caller writes comes back before it writes the next.
func TestStreamingOverHTTP2(t *testing.T) {
	url, client := overHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			_, _ = io.WriteString(w, strings.ToUpper(lines.Text())+"\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	body, write := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 20 {
		fmt.Fprintf(write, "line %d\n", i)
		if got, err := lines.ReadString('\n'); got != fmt.Sprintf("LINE %d\n", i) || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	write.Close()
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// TestResponseTrailersOverHTTP2 pass, announced or not.
func TestResponseTrailersOverHTTP2(t *testing.T) {
	url, client := overHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Announced")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Announced", "a")
		w.Header().Set(http.TrailerPrefix+"Late", "b")
	}))
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.Trailer.Get("Announced") != "a" || resp.Trailer.Get("Late") != "b" {
		t.Errorf("got %v", resp.Trailer)
	}
}

// TestGoAwayUnderLoad: a dependency that goes on closing its connections of HTTP/2
// gracefully fails no request, and gets none twice that is not safe to repeat.
func TestGoAwayUnderLoad(t *testing.T) {
	var served, goAways, posted atomic.Int64
	url, client := overHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served.Add(1)%50 == 0 {
			goAways.Add(1)
			w.Header().Set("Connection", "close") // GOAWAY over HTTP/2
		}
		if r.Method == http.MethodPost {
			posted.Add(1)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	const callers, each = 16, 150
	var load sync.WaitGroup
	for i := range callers {
		load.Go(func() {
			for range each {
				method := http.MethodPut
				if i%2 == 0 {
					method = http.MethodPost
				}
				req, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("payload"))
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK || string(body) != "payload" {
					t.Errorf("%s %s: %s", method, resp.Status, body)
				}
			}
		})
	}
	load.Wait()
	if n := posted.Load(); n != callers/2*each {
		t.Errorf("%d POSTs arrived, %d were sent", n, callers/2*each)
	}
	t.Logf("%d served, %d times GOAWAY", served.Load(), goAways.Load())
}

// rawHTTP2 opens a connection of HTTP/2 in clear to a gateway, and returns it with
// what counts the frames that come back until it is closed.
func rawHTTP2(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", serveOn(t, nil, h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	writeFrame(c, 4, 0, 0, nil)
	return c
}

func writeFrame(c net.Conn, kind, flags byte, stream uint32, payload []byte) error {
	n := len(payload)
	head := binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream)
	_, err := c.Write(append(head, payload...))
	return err
}

// getHeaders are those of GET / in HPACK (RFC 7541 appendix A).
var getHeaders = []byte{0x82, 0x84, 0x86, 0x41, 1, 'a'}

// TestHTTP2Floods: what one connection can make the gateway do is bounded by net/http
// and by our settings of it; a flood ends the connection.
func TestHTTP2Floods(t *testing.T) {
	race.TooSlow(t, "TestGoAwayUnderLoad has many streams at once")
	for _, tt := range []struct {
		name  string
		write func(c net.Conn, i int) error
	}{
		{"streams that are reset", func(c net.Conn, i int) error {
			stream := uint32(2*i + 1)
			if err := writeFrame(c, 1, 5, stream, getHeaders); err != nil {
				return err
			}
			return writeFrame(c, 3, 0, stream, []byte{0, 0, 0, 8})
		}},
		{"CONTINUATION without end", func(c net.Conn, i int) error {
			if i == 0 {
				return writeFrame(c, 1, 0, 1, getHeaders)
			}
			field := append([]byte{0, 1, 'x', 0x7f, 0x81, 0x7e}, make([]byte, 16256)...) // without an index
			return writeFrame(c, 9, 0, 1, field)
		}},
		{"PING that is not read", func(c net.Conn, i int) error { return writeFrame(c, 6, 0, 0, make([]byte, 8)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var running, most atomic.Int64
			release := make(chan struct{})
			defer close(release)
			c := rawHTTP2(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for n := running.Add(1); ; {
					old := most.Load()
					if n <= old || most.CompareAndSwap(old, n) {
						break
					}
				}
				<-release // as one that does not see that its caller has gone
				running.Add(-1)
			}))
			ctx, ended := context.WithCancel(t.Context())
			if tt.name != "PING that is not read" {
				go func() { _, _ = io.Copy(io.Discard, c); ended() }()
			}
			defer ended()
			n := 0
			for ; n < 5_000_000 && ctx.Err() == nil; n++ {
				if tt.write(c, n) != nil {
					break
				}
			}
			if n == 5_000_000 {
				t.Error("the flood did not end the connection")
			}
			if most.Load() > 250 {
				t.Errorf("%d handlers at a time, want 250 at most", most.Load())
			}
			t.Logf("ended after %d, with %d handlers", n, most.Load())
		})
	}
}

// TestUnreadInterimResponsesHoldNoOneUp: a caller who does not read the responses before
// its response does not hold up those whose calls are on the same connection of HTTP/2.
func TestUnreadInterimResponsesHoldNoOneUp(t *testing.T) {
	long, sent, release := strings.Repeat("x", 600<<10), make(chan struct{}), make(chan struct{})
	url, client := overHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hints" {
			return
		}
		w.Header().Set("X-Hint", long)
		for range 12 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		close(sent)
		<-release
	}))
	defer close(release)
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, _ = io.WriteString(c, "GET /hints HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case <-sent:
	case <-time.After(5 * time.Second): // they are not read at all
	}
	client.Timeout = 30 * time.Second
	resp, err := client.Get(url + "/other")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the other call got %d", resp.StatusCode)
	}
}

// TestUpgradeOverHTTP2: a dependency that is spoken to in HTTP/2 only can change to no
// other protocol. The response and the log say so, and the dependency does not hear of it.
func TestUpgradeOverHTTP2(t *testing.T) {
	var asked atomic.Int64
	target := parse(t, h2cServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })))
	u, err := upstream.New(upstream.Config{HTTP2: upstream.HTTP2Only})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.Close)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	g, err := gateway.New(gateway.Config{Logger: log, Routes: []gateway.Route{{Prefix: "/", Target: target, Retryer: retryer(t, quick), Transport: u}}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	for _, protocol := range []string{"websocket", "other/1"} {
		got := call(t, http.MethodGet, srv.URL, http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}, nil)
		p := readProblem(t, got)
		if p.Status != http.StatusBadGateway || p.ErrorType != "upgrade_over_http2" || p.Attempts != 1 || !strings.Contains(p.Detail, "an upgrade needs HTTP/1") {
			t.Errorf("%s: got %+v", protocol, p)
		}
	}
	if text := out.String(); strings.Count(text, "error_type=upgrade_over_http2") != 2 || !strings.Contains(text, "an upgrade needs HTTP/1") {
		t.Errorf("the log: %s", text)
	}
	if got := call(t, http.MethodGet, srv.URL, nil, nil); got.StatusCode != http.StatusOK || asked.Load() != 1 {
		t.Errorf("without an upgrade: %d; the dependency had %d requests, want 1", got.StatusCode, asked.Load())
	}
}
