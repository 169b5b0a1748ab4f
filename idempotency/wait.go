package idempotency

import (
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// flights lets duplicates within one process wait for each other.
type flights struct {
	limit int
	mu    sync.Mutex
	byID  map[ID]*flight
}

// flight is a run that duplicates in this process wait for. done is closed when it
// lands.
type flight struct {
	waiters int
	done    chan struct{}
}

// join adds a waiter; nil means that there are enough.
func (f *flights) join(id ID) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID == nil {
		f.byID = map[ID]*flight{}
	}
	x := f.byID[id]
	if x == nil {
		x = &flight{done: make(chan struct{})}
		f.byID[id] = x
	}
	if x.waiters >= f.limit {
		return nil
	}
	x.waiters++
	return x
}

// leave takes a waiter away, and the flight with the last one.
func (f *flights) leave(id ID, x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x.waiters--
	if x.waiters == 0 && f.byID[id] == x {
		delete(f.byID, id)
	}
}

// landed wakes the waiters of a run that ended in this process.
func (f *flights) landed(id ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.byID[id]; x != nil {
		close(x.done)
		delete(f.byID, id)
	}
}

// The store is asked this often for runs of other processes: soon at first, since
// most runs are short.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// wait waits at most limit for the run that v found, here or in another
// process, to end or to be abandoned. It reports whether to claim again.
func (x *keyedRequest) wait(c Claim, v Verdict, limit time.Duration) bool {
	h, id, ctx := x.h, c.ID, x.r.Context()
	f := h.flights.join(id)
	if f == nil {
		return false
	}
	defer h.flights.leave(id, f)
	start := time.Now()
	if _, known := h.Backlog.Known(c); known {
		return true // it landed before this joined
	}
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		left := limit - time.Since(start)
		if left <= 0 {
			return false
		}
		if wait.Woken(ctx, min(left, wait.Jitter(2*poll)), f.done) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if h.Transaction {
			return true // what a transaction has written shows when it ends
		}
		rec, err := h.store.Get(ctx, id)
		if err == nil && (rec.State != Started || rec.Fence != v.Record.Fence || time.Since(start) > v.LeaseLeft && rec.LeaseEnd.Equal(v.Record.LeaseEnd)) {
			return true
		}
	}
}
