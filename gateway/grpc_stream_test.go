package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear/gateway"
)

// begun: whatever the trailers say, it is passed on once.
func TestRPCBegunIsNotRetried(t *testing.T) {
	for _, early := range []bool{false, true} {
		var sends atomic.Int64
		address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
			sends.Add(1)
			w.Header().Set("Content-Type", "application/grpc")
			if !early {
				_, _ = io.WriteString(w, "half")
			}
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "14")
			w.Header().Set(http.TrailerPrefix+"Grpc-Message", "gone%21")
			w.Header().Set(http.TrailerPrefix+"X-More", "metadata")
		})
		got := invoke(t, address, keyed, strings.NewReader("request"))
		if sends.Load() != 1 || got.code != "14" || got.message != "gone!" || got.alone || got.Trailer.Get("X-More") != "metadata" {
			t.Errorf("%d sends, code %q, message %q, alone %v, %v", sends.Load(), got.code, got.message, got.alone, got.Trailer)
		}
	}
}

// is not that of the other.
func TestRPCStream(t *testing.T) {
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_ = http.NewResponseController(w).Flush()
		var b [8]byte
		for {
			n, err := r.Body.Read(b[:])
			if n > 0 {
				_, _ = w.Write(b[:n])
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				break
			}
		}
		_, _ = io.WriteString(w, "end")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	in, out := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, in)
	req.Header = http.Header{"Content-Type": {"application/grpc+proto"}, "Te": {"trailers"}}
	resp, err := clear2(t).RoundTrip(req) // the headers come before any message
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for _, message := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(out, message); err != nil {
			t.Fatal(err)
		}
		echo := make([]byte, len(message))
		if _, err := io.ReadFull(resp.Body, echo); err != nil || string(echo) != message {
			t.Fatalf("%q, %v", echo, err)
		}
	}
	_ = out.Close()
	rest, err := io.ReadAll(resp.Body)
	if string(rest) != "end" || err != nil || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%q, %v, %v", rest, err, resp.Trailer)
	}
}

// once more, with what the caller has sent so far and will send.
func TestRPCStreamIsRetried(t *testing.T) {
	var sends atomic.Int64
	refused := make(chan struct{})
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if sends.Add(1) == 1 {
			trailersOnly(w, "14")
			close(refused)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		reply(w, string(body))
	})
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "before ")
		<-refused
		_, _ = io.WriteString(out, "after")
		_ = out.Close()
	}()
	got := invoke(t, address, keyed, in)
	if sends.Load() != 2 || got.code != "0" || got.body != "before after" {
		t.Errorf("%d sends, code %q, %q, %v", sends.Load(), got.code, got.body, got.err)
	}
}

// sent twice.
func TestRPCLongBodyIsSentOnce(t *testing.T) {
	var sends atomic.Int64
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		sends.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		trailersOnly(w, "14")
	})
	got := invoke(t, address, keyed, strings.NewReader(strings.Repeat("x", 80<<10)))
	if sends.Load() != 1 || got.code != "14" || got.Header.Get("Forbear-Stop") != "not_replayable" {
		t.Errorf("%d sends, code %q, %v", sends.Load(), got.code, got.Header)
	}
}

// TestRPCBreaksOff: a response that ends in the middle is a stream that is reset.
func TestRPCBreaksOff(t *testing.T) {
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	got := invoke(t, address, keyed, nil)
	if got.err == nil || !strings.Contains(got.err.Error(), "stream error") || got.body != "half" {
		t.Errorf("%q, %v, trailers %v", got.body, got.err, got.Trailer)
	}
}

// TestRPCCallerLeaves: the server learns at once that its caller has gone.
func TestRPCCallerLeaves(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if got := invokeContext(ctx, t, address, keyed, nil); !errors.Is(got.err, context.Canceled) {
		t.Errorf("code %q, %v", got.code, got.err)
	}
	<-ended
}

// stand still: its deadline is its own.
func TestRPCMayBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick
		p.BodyIdle = time.Second
		in, out := io.Pipe()
		target := func(r *http.Request) (*http.Response, error) {
			first := make([]byte, 1)
			if _, err := io.ReadFull(r.Body, first); err != nil {
				return nil, err
			}
			answer, ours := io.Pipe()
			go func() {
				time.Sleep(time.Hour)
				_, _ = io.WriteString(ours, "late")
				_ = ours.Close()
			}()
			return &http.Response{
				StatusCode: 200, ProtoMajor: 2, ContentLength: -1, Header: http.Header{"Content-Type": {"application/grpc"}},
				Trailer: http.Header{"Grpc-Status": {"0"}}, Body: answer, Request: r,
			}, nil
		}
		g, err := gateway.New(gateway.Config{Logger: slog.New(slog.DiscardHandler), Routes: []gateway.Route{{
			Prefix: "/", Target: parse(t, "http://up"), Retryer: retryer(t, p), Transport: roundTripper(target),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			_, _ = io.WriteString(out, "x")
			_ = out.Close()
		}()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a.B/C", in)
		r.Proto, r.ProtoMajor, r.ProtoMinor, r.ContentLength = "HTTP/2.0", 2, 0, -1
		r.Header.Set("Content-Type", "application/grpc")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Body.String() != "late" {
			t.Errorf("%d, %v, %q", w.Code, w.Header(), w.Body)
		}
	})
}

// TestRPCCallerMayBeSilent: nor is the caller hurried on its connection.
func TestRPCCallerMayBeSilent(t *testing.T) {
	p := quick
	p.BodyIdle = 20 * time.Millisecond
	address := beforeRPC(t, p, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reply(w, string(body))
	})
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "first ")
		time.Sleep(5 * p.BodyIdle)
		_, _ = io.WriteString(out, "second")
		_ = out.Close()
	}()
	if got := invoke(t, address, nil, in); got.code != "0" || got.body != "first second" {
		t.Errorf("code %q, %q, %v", got.code, got.body, got.err)
	}
}

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
