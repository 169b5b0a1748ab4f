package gateway_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/gateway"
)

// clear2 is a transport that speaks HTTP/2 in clear.
func clear2(t testing.TB) *http.Transport {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// server2 runs h over HTTP/2 in clear and returns its address.
func server2(t testing.TB, h http.Handler) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// beforeRPC puts a gateway before h, with HTTP/2 in clear on both sides, and returns the
// address of a method.
func beforeRPC(t testing.TB, p forbear.Policy, h http.HandlerFunc) string {
	t.Helper()
	r := retryer(t, p)
	return start(t, gateway.Route{Prefix: "/", Target: parse(t, server2(t, h)), Retryer: r, Transport: clear2(t)}) + "/test.Ledger/Post"
}

// rpc is a gRPC response that has been read, with its status wherever it was.
type rpc struct {
	answer
	code    string
	message string
	alone   bool // trailers-only
	err     error
}

// invoke makes a gRPC call with a body that is read as it is sent.
func invoke(t testing.TB, address string, header http.Header, body io.Reader) rpc {
	t.Helper()
	return invokeContext(t.Context(), t, address, header, body)
}

func invokeContext(ctx context.Context, t testing.TB, address string, header http.Header, body io.Reader) rpc {
	t.Helper()
	if body != nil {
		body = io.MultiReader(body) // of unknown length
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	maps.Copy(req.Header, header)
	resp, err := clear2(t).RoundTrip(req)
	if err != nil {
		return rpc{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	got := rpc{answer: answer{resp, string(text)}, err: err}
	h := resp.Trailer
	if got.alone = resp.Header.Get("Grpc-Status") != ""; got.alone {
		h = resp.Header
	}
	got.code, got.message = h.Get("Grpc-Status"), grpcwire.DecodeMessage(h.Get("Grpc-Message"))
	return got
}

// trailersOnly ends a call with a status alone.
func trailersOnly(w http.ResponseWriter, code string, more ...string) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", code)
	for i := 0; i < len(more); i += 2 {
		h.Add(more[i], more[i+1])
	}
	w.WriteHeader(http.StatusOK)
}

// reply ends a call well, with a message.
func reply(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/grpc")
	_, _ = io.WriteString(w, body)
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

var keyed = http.Header{"Idempotency-Key": {"k-1"}}

// TestRPCIsRetried: a trailers-only UNAVAILABLE is retried like a 503, by grpcretry's
// rules: with a key, or where the policy says that operations are safe to repeat.
func TestRPCIsRetried(t *testing.T) {
	safe := quick
	safe.Idempotent = true
	for _, tc := range []struct {
		name   string
		policy forbear.Policy
		header http.Header
		code   string
		more   []string
		sends  int64
		got    string
		stop   string
	}{
		{"with a key", quick, keyed, "14", nil, 3, "0", ""},
		{"safe to repeat", safe, nil, "14", nil, 3, "0", ""},
		{"aborted", safe, nil, "10", nil, 3, "0", ""},
		{"neither", quick, nil, "14", nil, 1, "14", "no_idempotency_key"},
		{"internal", safe, nil, "13", nil, 1, "13", ""},
		{"no code", safe, nil, "x", nil, 1, "x", ""},
		{"pushed back", safe, nil, "14", []string{"Grpc-Retry-Pushback-Ms", "1"}, 3, "0", ""},
		{"told to stop", safe, nil, "14", []string{"Grpc-Retry-Pushback-Ms", "-1"}, 1, "14", "server_said_stop"},
		{"told twice", safe, nil, "14", []string{"Grpc-Retry-Pushback-Ms", "1", "Grpc-Retry-Pushback-Ms", "1"}, 1, "14", "server_said_stop"},
		{"asked to wait too long", safe, nil, "8", []string{"Grpc-Status-Details-Bin", "CAgaMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIPA"}, 1, "8", "after_exceeds_deadline"},
		{"exhausted below", safe, nil, "14", []string{"Forbear-Retries-Exhausted", "true"}, 1, "14", "exhausted_below"},
		{"an inner call", safe, http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, "14", nil, 1, "14", "inner_layer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sends atomic.Int64
			address := beforeRPC(t, tc.policy, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if string(body) != "request" {
					t.Errorf("body %q", body)
				}
				if n := sends.Add(1); n < 3 {
					trailersOnly(w, tc.code, tc.more...)
					return
				}
				reply(w, "response")
			})
			got := invoke(t, address, tc.header, strings.NewReader("request"))
			if got.err != nil || got.code != tc.got || sends.Load() != tc.sends || got.Header.Get("Forbear-Stop") != tc.stop {
				t.Errorf("code %s after %d sends, stop %q, %v", got.code, sends.Load(), got.Header.Get("Forbear-Stop"), got.err)
			}
			if got.code == "0" && got.body != "response" {
				t.Errorf("body %q", got.body)
			}
			if got.code != "0" && !got.alone {
				t.Error("a trailers-only response came apart")
			}
		})
	}
}

// TestRPCPreviousAttempts: retries say how many came before them, as gRFC A6 has it, and
// nothing else does; a caller's own number goes on.
func TestRPCPreviousAttempts(t *testing.T) {
	seen := make(chan http.Header, 8)
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		trailersOnly(w, "14")
	})
	got := invoke(t, address, keyed, strings.NewReader("request"))
	for i, want := range []string{"", "1", "2", "3"} {
		h := <-seen
		if n := h.Get("Grpc-Previous-Rpc-Attempts"); n != want {
			t.Errorf("attempt %d says %q", i+1, n)
		}
		for _, name := range []string{"X-Retry-Attempt", "X-Request-Deadline", "Grpc-Timeout"} {
			if h.Get(name) != "" {
				t.Errorf("attempt %d has %s", i+1, name)
			}
		}
		if h.Get("Te") != "trailers" || h.Get("Content-Type") != "application/grpc" {
			t.Errorf("attempt %d: %v", i+1, h)
		}
	}
	if got.Header.Get("Grpc-Retry-Pushback-Ms") != "-1" || got.Header.Get("Forbear-Retries-Exhausted") == "" ||
		got.Header.Get("Forbear-Attempts") != "4" || got.Header.Get("X-Forbear-Retries-Exhausted") != "" {
		t.Errorf("the last response does not say that retries are used up: %v", got.Header)
	}
	invoke(t, address, http.Header{"Idempotency-Key": {"k"}, "Grpc-Previous-Rpc-Attempts": {"2"}}, nil)
	if n := (<-seen).Get("Grpc-Previous-Rpc-Attempts"); n != "2" || len(seen) != 0 {
		t.Errorf("a caller's retry went on as %q, and %d more", n, len(seen))
	}
}

// TestRPCBegunIsNotRetried: once headers without a status have come, the response has
// TestRPCByHTTPStatus: a proxy before the server knows nothing of gRPC. Its statuses are
// judged as gRPC's clients map them.
func TestRPCByHTTPStatus(t *testing.T) {
	for status, sends := range map[int]int64{502: 4, 503: 4, 504: 4, 429: 4, 500: 1, 404: 1, 401: 1, 200: 1} {
		var n atomic.Int64
		address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<p>")
		})
		got := invoke(t, address, keyed, nil)
		if n.Load() != sends || got.StatusCode != status || got.body != "<p>" {
			t.Errorf("%d: %d sends, status %d, %q", status, n.Load(), got.StatusCode, got.body)
		}
	}
}

// TestRPCStream: messages go on one by one, both ways at once, and the end of the one way
// TestRPCStreamIsRetried: a server that refuses a stream before it reads anything gets it
// TestRPCLongBodyIsSentOnce: of a request that is longer than what is kept nothing is
// TestRPCReset: a stream that is reset before any header is INTERNAL to gRPC, and not
// retried; one that was not looked at is UNAVAILABLE, and is.
func TestRPCReset(t *testing.T) {
	var sends atomic.Int64
	address := beforeRPC(t, quick, func(http.ResponseWriter, *http.Request) {
		sends.Add(1)
		panic(http.ErrAbortHandler)
	})
	got := invoke(t, address, keyed, nil)
	if sends.Load() != 1 || got.code != "13" || !got.alone {
		t.Errorf("%d sends, code %q, %v", sends.Load(), got.code, got.err)
	}
}

// TestRPCDeadline: grpc-timeout bounds the call and goes on as what is left of it.
func TestRPCDeadline(t *testing.T) {
	seen := make(chan string, 8)
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Deadline") != "" {
			t.Error("the deadline goes on in HTTP's words as well")
		}
		seen <- r.Header.Get("Grpc-Timeout")
		if len(seen) == 1 {
			trailersOnly(w, "14")
			return
		}
		<-r.Context().Done()
	})
	got := invoke(t, address, http.Header{"Idempotency-Key": {"k"}, "Grpc-Timeout": {"2S"}}, nil)
	if got.code != "4" || !got.alone || got.Header.Get("Forbear-Stop") != "deadline" {
		t.Errorf("code %q, %v, %v", got.code, got.Header, got.err)
	}
	before := 2 * time.Second
	for range 2 {
		left, ok := grpcwire.ParseTimeout([]string{<-seen})
		if !ok || left >= before {
			t.Errorf("%v is left of %v", left, before)
		}
		before = left
	}
}

// TestRPCDeadlineInTheMiddle: the time that runs out while a stream is under way is said
// as gRPC says it, and not by breaking it off.
func TestRPCDeadlineInTheMiddle(t *testing.T) {
	address := beforeRPC(t, quick, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		_, _ = io.WriteString(w, "message")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	got := invoke(t, address, http.Header{"Grpc-Timeout": {"200m"}}, nil)
	if got.code != "4" || got.alone || got.body != "message" || got.err != nil {
		t.Errorf("code %q, %q, %v", got.code, got.body, got.err)
	}
}

// TestRPCRefusals: what the gateway has to say itself is a gRPC status, and says when to
// TestRPCBreaker: trailers-only failures open the breaker, which then says when to come
// TestRPCNeedsHTTP2: gRPC over HTTP/1.1 is refused in words; gRPC-Web is HTTP like any
// TestRPCMayBeSilent: neither side of a stream is hurried by the time that a body may
// TestRefusalLeavesTheConnection: a request that is refused for what its caller sent does
