package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// envoy is a model of Envoy's retries with retry_on 5xx, num_retries 3 and a
// retry budget: retries under way, their wait included, are fewer than 20 % of
// the requests that count, or than three. No outlier detection.
//
// Without an interval, the requests under way count. With one (budget_interval,
// since Envoy 1.39), those of that time count instead, retries among them: see the
// comment of CircuitBreakers_Thresholds_RetryBudget.BudgetInterval in
// go-control-plane/envoy v1.40.0, and envoyproxy/envoy#44147. What is limited
// remains the retries under way, and no number of retries in that time.
type envoy struct {
	interval time.Duration

	mu              sync.Mutex
	active, retries int
	slots           [envoySlots]int // requests, by a tenth of the interval
	slot            int64           // the newest, counted from 1970
}

const (
	envoyRetries = 3
	envoyPercent = 20
	envoyLeast   = 3
	envoySlots   = 10
	envoyBase    = 25 * time.Millisecond
	envoyCap     = 10 * envoyBase
	envoyRoute   = 15 * time.Second // the default time-out of a route, all tries included
)

func openEnvoy(interval time.Duration) func(http.RoundTripper, string) (call, error) {
	return func(rt http.RoundTripper, url string) (call, error) {
		client, e := &http.Client{Transport: rt}, &envoy{interval: interval}
		return func(ctx context.Context) bool { return e.call(ctx, client, url) }, nil
	}
}

func (e *envoy) call(ctx context.Context, client *http.Client, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, envoyRoute)
	defer cancel()
	e.add(1, 0)
	defer e.add(-1, 0)
	for n := 1; ; n++ {
		e.sent(time.Now())
		status, err := attempt(ctx, client, url)
		if n > 1 {
			e.add(0, -1)
		}
		if err == nil && status < 500 {
			return status == http.StatusOK
		}
		if n > envoyRetries || !e.admit(time.Now()) {
			return false
		}
		if !sleep(ctx, rand.N(min(envoyBase<<n-envoyBase, envoyCap))) {
			e.add(0, -1)
			return false
		}
	}
}

func (e *envoy) add(active, retries int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active, e.retries = e.active+active, e.retries+retries
}

// sent counts a request.
func (e *envoy) sent(now time.Time) {
	if e.interval == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(now)
	e.slots[e.slot%envoySlots]++
}

// advance empties the slots that have left the interval.
func (e *envoy) advance(now time.Time) {
	at := now.UnixNano() / int64(e.interval/envoySlots)
	for e.slot = max(e.slot, at-envoySlots); e.slot < at; {
		e.slot++
		e.slots[e.slot%envoySlots] = 0
	}
}

// admit asks for a retry.
func (e *envoy) admit(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	requests := e.active
	if e.interval > 0 {
		e.advance(now)
		requests = 0
		for _, n := range e.slots {
			requests += n
		}
	}
	if e.retries >= max(requests*envoyPercent/100, envoyLeast) {
		return false
	}
	e.retries++
	return true
}
