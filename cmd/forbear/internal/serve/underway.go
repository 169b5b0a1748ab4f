package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// underWay counts the calls that the gateway is serving. The zero value is ready to use.
type underWay struct {
	calls    atomic.Int64
	draining atomic.Bool
}

// count counts the calls that next serves. It counts upgraded connections for as long
// as they last, which net/http's own Shutdown does not.
func (u *underWay) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.calls.Add(1)
		defer u.calls.Add(-1)
		if u.draining.Load() && r.Header.Get("Upgrade") == "" {
			// Over HTTP/2 net/http makes a GOAWAY of it.
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drain makes each response ask for the end of its connection. Closing the
// connections instead would lose the requests that are on their way (RFC 9112
// section 9.6).
func (u *underWay) drain() { u.draining.Store(true) }

// wait returns when no call is under way, or with ctx's error when that ends first.
func (u *underWay) wait(ctx context.Context) error {
	return waitUntil(ctx, func() bool { return u.calls.Load() == 0 })
}

// waitUntil looks every few milliseconds whether something is done: the end of a process is
// not worth a lock in every call.
func waitUntil(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
