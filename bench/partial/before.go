package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// before is a model of the circuit breaker that forbear had until the failure
// rate was judged with its error: 50 % of the last 100 attempts opened it, looked
// at after each of them from the 20th on; 25 % while the retry budget was spent.
// It stayed open for 30 s, and five probes had to succeed.
type before struct {
	mu         sync.Mutex
	generation int // of the state; an attempt counts in the one it began in
	state      breaker.State
	ring       [100]bool // true: failed
	n, failed  int
	spent      time.Time // when the budget last refused a retry; zero: it would grant one
	opened     time.Time
	permits    int // probes that may still begin
	succeeded  int
}

const (
	beforeLeast  = 20
	beforeOpen   = 30 * time.Second
	beforeProbes = 5
	beforeMemory = time.Second // of a refusal by the budget
)

// openBefore puts the model around forbear without a breaker: before its first
// attempt, around each attempt, and as what ends its retries.
func openBefore(rt http.RoundTripper, url string) (call, error) {
	b := &before{}
	r, err := forbear.New("dependency", policy(breaker.Policy{Disabled: true}),
		forbear.WithObserver(b.observer()), forbear.WithHealthGate(b.healthy))
	if err != nil {
		return nil, err
	}
	do := through(httpretry.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
		return b.roundTrip(rt, req)
	}), r), url)
	return func(ctx context.Context) bool { return !b.refuses(time.Now()) && do(ctx) }, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (b *before) roundTrip(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	generation, ok := b.allow(time.Now())
	if !ok { // a response that forbear does not retry
		return &http.Response{
			StatusCode: http.StatusFailedDependency, ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: req,
		}, nil
	}
	resp, err := rt.RoundTrip(req)
	failed := err != nil || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests
	b.record(generation, failed, time.Now())
	return resp, err
}

// refuses reports whether a call may not even begin.
func (b *before) refuses(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case breaker.Open:
		return now.Sub(b.opened) < beforeOpen
	case breaker.HalfOpen:
		return b.permits == 0
	}
	return false
}

func (b *before) allow(now time.Time) (generation int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == breaker.Open && now.Sub(b.opened) >= beforeOpen {
		b.move(breaker.HalfOpen)
		b.permits, b.succeeded = beforeProbes, 0
	}
	switch {
	case b.state == breaker.Closed:
		return b.generation, true
	case b.state == breaker.Open, b.permits == 0:
		return 0, false
	}
	b.permits--
	return b.generation, true
}

func (b *before) record(generation int, failed bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case generation != b.generation:
	case b.state == breaker.HalfOpen && failed:
		b.open(now)
	case b.state == breaker.HalfOpen:
		if b.succeeded++; b.succeeded == beforeProbes {
			b.move(breaker.Closed)
			b.n, b.failed, b.spent = 0, 0, time.Time{}
		}
	default:
		cell := &b.ring[b.n%len(b.ring)]
		if b.n >= len(b.ring) && *cell {
			b.failed--
		}
		if *cell = failed; failed {
			b.failed++
		}
		b.n++
		b.judge(now)
	}
}

// judge opens the breaker when the ring is over the threshold of the moment.
func (b *before) judge(now time.Time) {
	threshold := 0.5
	if !b.spent.IsZero() && now.Sub(b.spent) <= beforeMemory {
		threshold = breaker.MinFailureRate
	}
	n := min(b.n, len(b.ring))
	if b.state == breaker.Closed && n >= beforeLeast && b.failed > 0 && float64(b.failed) >= threshold*float64(n) {
		b.open(now)
	}
}

func (b *before) open(now time.Time) {
	b.move(breaker.Open)
	b.opened = now
}

func (b *before) move(to breaker.State) { b.state, b.generation = to, b.generation+1 }

// healthy is a health gate: an open breaker ends the retries.
func (b *before) healthy(time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state != breaker.Open
}

// RetryScheduled is for the callback of [forbear.Observer]: the budget granted a retry.
func (b *before) RetryScheduled(context.Context, forbear.RetryScheduled) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = time.Time{}
}

// Stopped is for the callback of [forbear.Observer]: it learns when the budget refused
// a retry.
func (b *before) Stopped(_ context.Context, e forbear.Stopped) {
	if e.Reason != reason.Budget {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = time.Now()
	b.judge(b.spent)
}

func (o *before) observer() *forbear.Observer {
	return &forbear.Observer{RetryScheduled: o.RetryScheduled, Stopped: o.Stopped}
}
