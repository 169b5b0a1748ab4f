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

// flight is a run that duplicates in this process wait for. done is closed when it
// lands here, and look when it may have landed elsewhere.
type flight struct {
	waiters    int
	done, look chan struct{}
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
		x = &flight{done: make(chan struct{}), look: make(chan struct{})}
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
	if x := f.byID[id]; x != nil {
		close(x.done)
		delete(f.byID, id)
	}
}

// listenOn is how long the store is listened to when no duplicate waits any more: a
// connection is not made for each.
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

// wake lets those look who wait for a key, or all for "".
func (f *flights) wake(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, x := range f.byID {
		if key == "" || id.Key == key {
			close(x.look)
			x.look = make(chan struct{})
		}
	}
}

// looks returns what is closed when it is time to look.
func (f *flights) looks(x *flight) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return x.look
}

// landed waits for d, for the end of ctx, or until it is time to look, and reports
// whether the run has ended in this process.
func (x *flight) landed(ctx context.Context, d time.Duration, look <-chan struct{}) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-x.done:
		return true
	case <-look:
	case <-t.C:
	case <-ctx.Done():
	}
	return false
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
	look := h.flights.looks(f)
	for poll := h.firstPoll; ; poll = min(2*poll, h.Poll) {
		left := limit - time.Since(start)
		if left <= 0 {
			return false
		}
		if f.landed(ctx, min(left, wait.Jitter(2*poll)), look) {
			return true
		}
		look = h.flights.looks(f) // before the store is asked: what ends after that is not missed
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
