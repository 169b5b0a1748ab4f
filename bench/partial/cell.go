package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// figures are what became of the calls of one cell.
type figures struct {
	calls, good int64
	sends       int64 // requests that the server received
}

func (f figures) success() float64    { return float64(f.good) / float64(max(f.calls, 1)) }
func (f figures) sendsACall() float64 { return float64(f.sends) / float64(max(f.calls, 1)) }

// call makes one logical call and reports whether it succeeded.
type call func(ctx context.Context) bool

// cell measures one contender against one fault. Calls that are under way at
// the end are waited for, and count.
func cell(ctx context.Context, o options, f fault, c contender) (figures, error) {
	begin := time.Now().Add(o.warm)
	end := begin.Add(f.length(o.length))
	d, err := newDependency(f, begin)
	if err != nil {
		return figures{}, err
	}
	defer d.http.Close()
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.ResponseHeaderTimeout = 0, o.callers, f.timeout
	defer t.CloseIdleConnections()
	do, err := c.open(t, d.url)
	if err != nil {
		return figures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	var calls, succeeded atomic.Int64
	var wg sync.WaitGroup
	for range o.callers {
		wg.Go(func() {
			pace(ctx, f.every(o), end, func(now time.Time) {
				ok := do(ctx)
				if now.Before(begin) {
					return
				}
				calls.Add(1)
				if ok {
					succeeded.Add(1)
				}
			})
		})
	}
	wg.Wait()
	return figures{calls.Load(), succeeded.Load(), d.sends.Load()}, ctx.Err()
}

// pace starts a call every so often until end, the first at random within that
// time: a call that is refused at once does not make the caller spin, and one
// that takes longer is followed by the next without a pause.
func pace(ctx context.Context, every time.Duration, end time.Time, do func(now time.Time)) {
	next := time.Now().Add(rand.N(every))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for next.Before(end) {
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		do(now)
		if next = next.Add(every); next.Before(time.Now()) {
			next = time.Now()
		}
	}
}
