package httpretry_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
)

// ticking answers with a body of unknown length that gives a byte after each
// pause, as a stream of events does; it ends with its request.
func ticking(pauses ...time.Duration) step {
	return func(req *http.Request) (*http.Response, error) {
		r, w := io.Pipe()
		ctx := req.Context()
		stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
		go func() {
			defer stop()
			for _, pause := range pauses {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					_ = w.CloseWithError(ctx.Err()) // stop may keep the other from it
					return
				}
				if _, err := io.WriteString(w, "."); err != nil {
					return
				}
			}
			_ = w.Close()
		}()
		return &http.Response{
			StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, ContentLength: -1, Body: r, Request: req,
		}, nil
	}
}

func TestStreams(t *testing.T) {
	const s = time.Second
	p := forbear.Policy{PerAttempt: s / 2, BodyIdle: 5 * s}
	for _, tc := range []struct {
		name   string
		pauses []time.Duration
		rest   time.Duration // that the reader takes after each byte
		want   string
		err    error
	}{
		{"moves for longer than the timeout", []time.Duration{4 * s, 4 * s, 4 * s, 4 * s}, 0, "....", nil},
		{"and for longer than the total", []time.Duration{4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s, 4 * s}, 0, ".........", nil},
		{"stalls", []time.Duration{s, 6 * s, s}, 0, ".", context.DeadlineExceeded},
		{"a slow reader is not a stall", []time.Duration{s, s, s}, 20 * s, "...", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp, err := over(t, &script{steps: []step{ticking(tc.pauses...)}}, p).
					RoundTrip(newRequest(t, http.MethodGet, "http://payments.test/", "", ""))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				time.Sleep(tc.rest)
				var got []byte
				var one [1]byte
				for err == nil {
					var n int
					n, err = resp.Body.Read(one[:])
					got = append(got, one[:n]...)
					time.Sleep(tc.rest)
				}
				if err == io.EOF {
					err = nil
				}
				if string(got) != tc.want || !errors.Is(err, tc.err) || errors.Is(err, context.Canceled) {
					t.Errorf("got %q, %v; want %q, %v", got, err, tc.want, tc.err)
				}
			})
		})
	}
}

// Who may say nothing for any time: a stream of events, a body whose policy sets no
// bound, and a server that waits for more of the request.
func TestBodiesThatMayStandStill(t *testing.T) {
	const s = time.Second
	bounded, unbounded := forbear.Policy{PerAttempt: s, BodyIdle: 5 * s}, forbear.Policy{PerAttempt: s, BodyIdle: -1}
	for _, tc := range []struct {
		name   string
		media  string
		policy forbear.Policy
		upload bool // the caller is still sending
		stands bool
	}{
		{"a long poll", "application/json", bounded, false, false},
		{"events", "text/event-stream; charset=utf-8", bounded, false, true},
		{"events, spelled otherwise", "Text/Event-Stream", bounded, false, true},
		{"a long poll without a bound", "application/json", unbounded, false, true},
		{"a conversation", "application/json", bounded, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				below := piped(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", tc.media)
					w.Header().Set("Content-Length", "3") // a short body is no other case
					_ = http.NewResponseController(w).EnableFullDuplex()
					_ = http.NewResponseController(w).Flush()
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return
					}
					if !tc.upload {
						time.Sleep(time.Hour)
					}
					_, _ = io.WriteString(w, "end")
				})
				var body io.Reader
				if tc.upload {
					body = &drip{time.Hour, "more", 2, io.EOF}
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://events.test/", body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := httpretry.NewTransport(below, quiet(t, tc.policy)).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if tc.stands && (err != nil || string(got) != "end") {
					t.Errorf("got %q, %v", got, err)
				}
				if !tc.stands && (!errors.Is(err, context.DeadlineExceeded) || err.Error() != "the body stalled for 5s") {
					t.Errorf("got %q, %v, want that it stood still", got, err)
				}
				time.Sleep(2 * time.Hour) // let the handler end
			})
		})
	}
}

// TestStreamsPassBeforeTheyEnd over a real connection.
func TestStreamsPassBeforeTheyEnd(t *testing.T) {
	next := make(chan string)
	s, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		for text := range next {
			fmt.Fprintf(w, "data: %s\n\n", text)
			_ = http.NewResponseController(w).Flush()
		}
	})
	var once sync.Once
	end := func() { once.Do(func() { close(next) }) }
	t.Cleanup(end)
	go func() { next <- "first" }()
	resp, _, err := send(t, newRequest(t, http.MethodGet, s.URL, "", ""), impatient(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{"first", "second", "third"} {
		if want != "first" {
			next <- want
		}
		if !lines.Scan() || lines.Text() != "data: "+want {
			t.Fatalf("got %q, %v, want %s", lines.Text(), lines.Err(), want)
		}
		lines.Scan() // the empty line
	}
	end()
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
}

// The body of an answer may be closed by another goroutine than the one that
// reads it, as with net/http itself.
func TestBodyClosedWhileItIsRead(t *testing.T) {
	s, _ := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	resp, _, err := send(t, newRequest(t, http.MethodGet, s.URL, "", ""), impatient(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	reading := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		reading <- err
	}()
	time.Sleep(5 * time.Millisecond)
	_ = resp.Body.Close()
	if err := <-reading; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reading ended with %v, want an error that is no timeout", err)
	}
}

// TestUpgradesOutliveTheTimeout: after a 101 the connection is the caller's.
func TestUpgradesOutliveTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 50 * time.Millisecond
		var n atomic.Int64
		below := piped(t, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			if r.Header.Get(httpretry.HeaderAttempt) == "0" {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			c, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = buf.Flush()
			for {
				line, err := buf.ReadString('\n')
				if err != nil {
					return
				}
				_, _ = buf.WriteString(line)
				_ = buf.Flush()
			}
		})
		req := newRequest(t, http.MethodGet, "http://echo.test/", "", "")
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := httpretry.NewTransport(below, quiet(t, impatient(timeout))).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if resp.StatusCode != http.StatusSwitchingProtocols || !ok || n.Load() != 2 {
			t.Fatalf("status %d after %d requests, body %T", resp.StatusCode, n.Load(), resp.Body)
		}
		lines := bufio.NewReader(conn)
		for range 2 {
			if _, err := io.WriteString(conn, "hello\n"); err != nil {
				t.Fatal(err)
			}
			if got, err := lines.ReadString('\n'); err != nil || got != "hello\n" {
				t.Fatalf("echo %q, %v", got, err)
			}
			time.Sleep(2 * timeout)
		}
	})
}

// The caller's own trace is called for every attempt.
func TestCallersTraceIsCalled(t *testing.T) {
	s, n := faulty(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(httpretry.HeaderAttempt) != "2" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	var wrote, asked, got, first, dialed atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteHeaders:         func() { wrote.Add(1) },
		GetConn:              func(string) { asked.Add(1) },
		GotConn:              func(httptrace.GotConnInfo) { got.Add(1) },
		GotFirstResponseByte: func() { first.Add(1) },
		ConnectStart:         func(string, string) { dialed.Add(1) },
	})
	resp, _, err := send(t, newRequest(t, http.MethodGet, s.URL, "", "").WithContext(ctx), fast)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || n.Load() != 3 {
		t.Errorf("status %d after %d requests, want 200 after 3", resp.StatusCode, n.Load())
	}
	for hook, got := range map[string]int64{"WroteHeaders": wrote.Load(), "GetConn": asked.Load(), "GotConn": got.Load(), "GotFirstResponseByte": first.Load()} {
		if got != 3 {
			t.Errorf("the caller's %s was called %d times, want 3", hook, got)
		}
	}
	if dialed.Load() < 1 {
		t.Error("the caller's ConnectStart was not called")
	}
}

// A re-send is stopped under a caller's trace as well.
func TestResendsAreStoppedBesideACallersTrace(t *testing.T) {
	s := newHangUp(t)
	base := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(base.CloseIdleConnections)
	s.warm(t, base, 8)
	var wrote atomic.Int64
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { wrote.Add(1) }})
	req := newRequest(t, http.MethodGet, "http://"+s.Addr().String(), "", "").WithContext(ctx)
	resp, err := httpretry.NewTransport(base, quiet(t, fast)).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	// The trace may see a write more, to a connection that was just closed.
	if n := s.hungUp.Load(); n > 4 || wrote.Load() == 0 {
		t.Errorf("%d requests reached dead connections, want at most 4; the caller's trace saw %d", n, wrote.Load())
	}
}
