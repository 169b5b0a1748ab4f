package idempotency

import (
	"context"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// flights lets duplicates within one process wait for each other, and for runs of
// other processes.
type flights struct {
	limit int
	store Waker // nil: the ends of other processes' runs are polled for

	mu      sync.Mutex
	byID    map[ID]*flight
	waiters int
	deaf    context.CancelFunc // ends listening; nil: nothing listens
	idle    *time.Timer        // that calls it
}

// flight is a run that duplicates in this process wait for. over is closed when it may
// have ended, here or elsewhere.
type flight struct {
	waiters int
	over    chan struct{}
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
		x = &flight{over: make(chan struct{})}
		f.byID[id] = x
	}
	if x.waiters >= f.limit {
		return nil
	}
	x.waiters++
	f.waiters++
	f.listen()
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
	if f.waiters--; f.waiters == 0 && f.deaf != nil {
		f.idle = time.AfterFunc(listenOn, f.hush)
	}
}

// landed wakes the waiters of a run that ended in this process.
func (f *flights) landed(id ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(id)
}

// wake wakes those who wait for a key, or all for "": a run may have ended elsewhere.
func (f *flights) wake(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.byID {
		if key == "" || id.Key == key {
			f.end(id)
		}
	}
}

// end ends a flight; those who still wait board another one. f.mu is held.
func (f *flights) end(id ID) {
	if x := f.byID[id]; x != nil {
		close(x.over)
		delete(f.byID, id)
	}
}

// listenOn is how long the store is listened to when no duplicate waits any more, so that
// not each of them makes a connection.
const listenOn = time.Minute

// listen begins to listen to the store, unless that goes on. f.mu is held.
func (f *flights) listen() {
	if f.idle != nil {
		f.idle.Stop()
		f.idle = nil
	}
	if f.store == nil || f.deaf != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.deaf = cancel
	go f.store.Wakes(ctx, f.wake)
}

// hush ends listening if still no duplicate waits.
func (f *flights) hush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiters == 0 && f.deaf != nil {
		f.deaf()
		f.deaf, f.idle = nil, nil
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
	h, ctx := x.h, x.r.Context()
	f := h.flights.join(c.ID)
	if f == nil {
		return false
	}
	defer h.flights.leave(c.ID, f)
	start := time.Now()
	if _, known := h.Backlog.Known(c); known {
		return true // it landed before this joined
	}
	for poll := h.firstPoll; ; poll = min(2*poll, h.Poll) {
		left := limit - time.Since(start)
		if left <= 0 {
			return false
		}
		over := wait.Woken(ctx, min(left, wait.Jitter(2*poll)), f.over)
		if ctx.Err() != nil {
			return false
		}
		if over || h.Transaction {
			return true // what a transaction has written shows when it ends
		}
		rec, err := h.store.Get(ctx, c.ID)
		if err == nil && (rec.State != Started || rec.Fence != v.Record.Fence || time.Since(start) > v.LeaseLeft && rec.LeaseEnd.Equal(v.Record.LeaseEnd)) {
			return true
		}
	}
}
