package httpretry_test

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// limiter is a rate limiter as servers have them. It is asked under a lock, with the
// time since the start of the test.
type limiter interface {
	// admit takes a request or refuses it, and says what Retry-After to send.
	admit(now time.Duration) bool
	// set changes the limit to so many a second.
	set(rate float64)
}

// bucket is a token bucket; with a burst of 1 it is GCRA.
type bucket struct {
	rate, burst, tokens float64
	at                  time.Duration
}

func newBucket(rate, burst float64) *bucket { return &bucket{rate: rate, burst: burst, tokens: burst} }

func (b *bucket) admit(now time.Duration) bool {
	b.tokens = min(b.burst, b.tokens+b.rate*(now-b.at).Seconds())
	b.at = now
	if b.tokens < 1-1e-9 {
		return false
	}
	b.tokens--
	return true
}

func (b *bucket) set(rate float64) { b.rate = rate }

// fixed counts in windows of a length that begin with the clock.
type fixed struct {
	rate   float64
	length time.Duration
	window int64
	used   float64
}

func (f *fixed) admit(now time.Duration) bool {
	if n := int64(now / f.length); n != f.window {
		f.window, f.used = n, 0
	}
	if f.used++; f.used > f.rate*f.length.Seconds() {
		return false
	}
	return true
}

func (f *fixed) set(rate float64) { f.rate = rate }

// sliding logs what it admitted in the last second, and with counted what it refused.
type sliding struct {
	rate    float64
	counted bool
	log     []time.Duration
}

func (s *sliding) admit(now time.Duration) bool {
	for len(s.log) > 0 && s.log[0] <= now-time.Second {
		s.log = s.log[1:]
	}
	ok := float64(len(s.log)) < s.rate
	if ok || s.counted {
		s.log = append(s.log, now)
	}
	return ok
}

func (s *sliding) set(rate float64) { s.rate = rate }

// limited is a server behind a limiter.
type limited struct {
	limit      limiter
	jitter     time.Duration // of the network, on the way to it
	latency    time.Duration
	status     int // of a refusal; 429 unless set
	headers    func(now time.Duration) http.Header
	concurrent int                      // 0, or how many are served at once
	always     func(*http.Request) bool // refuses these whatever the limit

	mu    sync.Mutex
	start time.Time
	busy  int
	sends int
	good  []int // by second
	sent  []int
}

func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.jitter > 0 {
		time.Sleep(rand.N(l.jitter))
	}
	ok, now := l.begin(req)
	if l.latency > 0 && (ok || l.concurrent == 0) {
		time.Sleep(l.latency)
	}
	if !ok {
		var h http.Header
		if l.headers != nil {
			h = l.headers(now)
		}
		if h == nil {
			h = http.Header{}
		}
		code := l.status
		if code == 0 {
			code = 429
		}
		return &http.Response{StatusCode: code, Header: h, Body: http.NoBody, Request: req}, nil
	}
	l.mu.Lock()
	l.busy--
	l.mu.Unlock()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func (l *limited) begin(req *http.Request) (ok bool, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = time.Since(l.start)
	l.sends++
	second := int(now / time.Second)
	for len(l.good) <= second {
		l.good, l.sent = append(l.good, 0), append(l.sent, 0)
	}
	l.sent[second]++
	switch {
	case l.always != nil && l.always(req):
		return false, now
	case l.concurrent > 0 && l.busy >= l.concurrent, l.limit != nil && !l.limit.admit(now):
		return false, now
	}
	l.busy++
	l.good[second]++
	return true, now
}

func (l *limited) set(rate float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit.set(rate)
}

// between returns the good ones a second in the seconds [from, to).
func (l *limited) between(from, to int) float64 {
	n := 0
	for i := from; i < min(to, len(l.good)); i++ {
		n += l.good[i]
	}
	return float64(n) / float64(to-from)
}

// retryAfter says how long to stay away: always the same.
func retryAfter(seconds int) func(time.Duration) http.Header {
	return func(time.Duration) http.Header {
		return http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	}
}

// quotaHeaders are those of the older draft, for a window of a second.
func quotaHeaders(limit int) func(time.Duration) http.Header {
	return func(now time.Duration) http.Header {
		left := math.Ceil((time.Second - now%time.Second).Seconds())
		return http.Header{
			"Ratelimit-Limit": {strconv.Itoa(limit)}, "Ratelimit-Remaining": {"0"},
			"Ratelimit-Reset": {strconv.Itoa(int(left))},
		}
	}
}
