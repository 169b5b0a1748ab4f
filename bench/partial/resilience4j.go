package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// resilience4j is a model of that library's defaults: a retry around a circuit
// breaker. Every exception is retried, the breaker's refusal too: three attempts,
// 500 ms apart. Half of the last 100 attempts, and not fewer, open the breaker
// for 60 s; then half of ten attempts decide.
type resilience4j struct {
	mu        sync.Mutex
	state     int
	epoch     int // of the state; an attempt counts in the one it began in
	ring      [100]bool
	n, failed int
	opened    time.Time
	permits   int
}

const (
	r4jClosed = iota
	r4jOpen
	r4jHalfOpen

	r4jAttempts = 3
	r4jWait     = 500 * time.Millisecond
	r4jOpenFor  = 60 * time.Second
	r4jProbes   = 10
)

func openResilience4j(rt http.RoundTripper, url string) (call, error) {
	client, b := &http.Client{Transport: rt}, &resilience4j{}
	return func(ctx context.Context) bool {
		for n := 1; ; n++ {
			if epoch, ok := b.acquire(time.Now()); ok {
				_, err := good(attempt(ctx, client, url))
				b.record(epoch, err != nil, time.Now())
				if err == nil {
					return true
				}
			}
			if n == r4jAttempts || !sleep(ctx, r4jWait) {
				return false
			}
		}
	}, nil
}

// sleep reports false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *resilience4j) acquire(now time.Time) (epoch int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == r4jOpen && now.Sub(b.opened) >= r4jOpenFor {
		b.move(r4jHalfOpen)
		b.permits = r4jProbes
	}
	switch {
	case b.state == r4jOpen, b.state == r4jHalfOpen && b.permits == 0:
		return 0, false
	case b.state == r4jHalfOpen:
		b.permits--
	}
	return b.epoch, true
}

func (b *resilience4j) record(epoch int, failed bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch != b.epoch {
		return
	}
	at := &b.ring[b.n%len(b.ring)]
	if b.n >= len(b.ring) && *at {
		b.failed--
	}
	if *at = failed; failed {
		b.failed++
	}
	b.n++
	least := len(b.ring)
	if b.state == r4jHalfOpen {
		least = r4jProbes
	}
	n := min(b.n, len(b.ring))
	switch {
	case n < least:
	case 2*b.failed >= n:
		b.move(r4jOpen)
		b.opened = now
	case b.state == r4jHalfOpen:
		b.move(r4jClosed)
	}
}

// move enters a state, with nothing counted yet.
func (b *resilience4j) move(to int) { b.state, b.epoch, b.n, b.failed = to, b.epoch+1, 0, 0 }
