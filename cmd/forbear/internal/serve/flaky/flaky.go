// Package flaky is an upstream that fails on request: the URL says how. It is what
// serve's sample stands in front of, and what the guides try things on. It
// remembers nothing: which attempt a request is, it reads off the header
// X-Retry-Attempt, so that concurrent calls do not disturb each other.
package flaky

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// Manual is the response to GET /.
const Manual = `A flaky upstream. It fails as the path says, and then succeeds.

  /flaky/ok                        200 at once
  /flaky/status/503?times=2        503 twice (default: always), then 200
  /flaky/retry-after/2?times=1     429 with Retry-After: 2 once, then 200
  /flaky/reset?times=1             resets the connection once, then 200
  /flaky/delay/300ms               200 after 300 ms, at most a minute
  /flaky/delay/5s?times=1          ... the first time, and then at once
  /flaky/stream/5                  five events, one every 200 ms

Any method will do. "times" counts attempts of one call, which it knows by the
header X-Retry-Attempt that forbear sends. The response tells which attempt got it:

  {"attempt":3,"method":"GET","path":"/flaky/status/503"}
`

// Handler returns a new flaky upstream.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(Manual))
	})
	mux.HandleFunc("/flaky/ok", succeed)
	mux.HandleFunc("/flaky/status/{code}", status)
	mux.HandleFunc("/flaky/retry-after/{seconds}", retryAfter)
	mux.HandleFunc("/flaky/reset", reset)
	mux.HandleFunc("/flaky/delay/{duration}", delay)
	mux.HandleFunc("/flaky/stream/{n}", stream)
	return mux
}

// attempt returns the number of the attempt that r is, the first being 1. A client
// that sends no header, or nonsense, is always at its first.
func attempt(r *http.Request) int {
	n, err := strconv.Atoi(r.Header.Get("X-Retry-Attempt"))
	if err != nil || n < 0 {
		return 1
	}
	return n + 1
}

// fails reports whether this attempt is among those that shall fail: the first
// times of a call, unless the query says another number.
func fails(r *http.Request, times int) bool {
	if n, err := strconv.Atoi(r.URL.Query().Get("times")); err == nil {
		times = n
	}
	return attempt(r) <= times
}

// always is more attempts than any call makes.
const always = 1 << 30

// report is the body of every response but the stream's: a user sees which attempt
// got through, and with which key.
type report struct {
	Attempt int    `json:"attempt"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Key     string `json:"idempotency_key,omitempty"`
	Fault   string `json:"fault,omitempty"`
}

func write(w http.ResponseWriter, r *http.Request, code int, fault string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(report{attempt(r), r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), fault})
}

func succeed(w http.ResponseWriter, r *http.Request) { write(w, r, http.StatusOK, "") }

// number reads a number off the path, or refuses the request: a misspelt fault must not
// look like one.
func number(w http.ResponseWriter, r *http.Request, name string, least, most int) (n int, ok bool) {
	n, err := strconv.Atoi(r.PathValue(name))
	if ok = err == nil && least <= n && n <= most; !ok {
		write(w, r, http.StatusBadRequest, fmt.Sprintf("want a number from %d to %d: see GET /", least, most))
	}
	return n, ok
}

// status fails with any status that a client can see as final.
func status(w http.ResponseWriter, r *http.Request) {
	code, ok := number(w, r, "code", 200, 599)
	switch {
	case !ok:
	case fails(r, always):
		write(w, r, code, "status "+strconv.Itoa(code))
	default:
		succeed(w, r)
	}
}

// retryAfter asks for a wait, in seconds, as RFC 9110 section 10.2.3 has it.
func retryAfter(w http.ResponseWriter, r *http.Request) {
	seconds, ok := number(w, r, "seconds", 0, math.MaxInt32)
	switch {
	case !ok:
	case fails(r, 1):
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		write(w, r, http.StatusTooManyRequests, fmt.Sprintf("come back in %d s", seconds))
	default:
		succeed(w, r)
	}
}

// reset cuts the connection before a byte of the response.
func reset(w http.ResponseWriter, r *http.Request) {
	if !fails(r, 1) {
		succeed(w, r)
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a reset, not an orderly end
	}
	_ = conn.Close()
}

// delay sends the response late, for timeouts. A minute at most: a longer one would
// only hold connections.
func delay(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.PathValue("duration"))
	if err != nil || d < 0 || d > time.Minute {
		write(w, r, http.StatusBadRequest, "want a duration of up to 1m: see GET /")
		return
	}
	if fails(r, always) && !wait.Sleep(r.Context(), d) {
		return
	}
	succeed(w, r)
}

// stream sends events one by one. Each is flushed, so that a client sees that the
// gateway holds nothing back.
func stream(w http.ResponseWriter, r *http.Request) {
	n, ok := number(w, r, "n", 1, 300)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for i := range n {
		if i > 0 && !wait.Sleep(r.Context(), 200*time.Millisecond) {
			return
		}
		fmt.Fprintf(w, "data: event %d of %d, attempt %d\n\n", i+1, n, attempt(r))
		if out.Flush() != nil {
			return
		}
	}
}
