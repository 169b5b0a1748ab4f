package dispatch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

// What one process finds out about an endpoint, all that share the store know: that it
// is down, refuses everything or has no name. The first that finds it raises the one
// alert. The others, and those that start meanwhile, send single messages from then on;
// whichever looked last looks last again, so that all of them together look hardly more
// often than one would, and none can hold an endpoint that another one reaches. When one
// finds it well the others look at once, each for itself: a process that is cut off from
// a receiver must neither hold the others up nor be let loose by them.
//
// That a store cannot be written is logged, and each finds out by itself.
const (
	// Between two writes of what was found the store is left to deliveries: ten
	// thousand endpoints may go down at once.
	shareEvery = 250 * time.Millisecond
	shareBatch = 100
	shareRetry = 10 * time.Second
	// An endpoint that has accepted a message so lately is not slowed on the word of
	// another process.
	lately = 10 * time.Second
)

// The kinds of what is shared beside the holds that are shown: see LaneStats.
const (
	heldDown    = "down"
	heldSuspect = "suspected" // of refusing everything
)

// finding is what is found of an endpoint, and not stored yet.
type finding struct {
	store.HoldWrite
	next time.Time // when the next look is due, on the monotonic clock
}

// findings gathers them by endpoint and kind. The zero value has none.
type findings struct {
	mu   sync.Mutex
	list map[[2]string]finding
}

// add adds what was found after the rest. Of several about one hold the latest counts,
// and that it began.
func (f *findings) add(n finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(n)
}

// put is add; mu is held.
func (f *findings) put(n finding) {
	key := [2]string{n.Endpoint, n.Kind}
	if old, ok := f.list[key]; ok && old.Begins && !n.Begins {
		n.Begins, n.Alert = true, old.Alert
	}
	if f.list == nil {
		f.list = map[[2]string]finding{}
	}
	f.list[key] = n
}

// take takes up to limit.
func (f *findings) take(limit int) (list []finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, n := range f.list {
		if len(list) == limit {
			break
		}
		list = append(list, n)
		delete(f.list, key)
	}
	return list
}

// putBack returns what could not be stored, before what was found since.
func (f *findings) putBack(list []finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range list {
		key := [2]string{n.Endpoint, n.Kind}
		later, ok := f.list[key]
		f.list[key] = n
		if ok {
			f.put(later)
		}
	}
}

// has reports whether there is one that the store does not know yet.
func (f *findings) has(endpoint, kind string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.list[[2]string{endpoint, kind}]
	return ok
}

// find makes known what this process has found. It does not wait.
func (d *Dispatcher) find(n finding) {
	d.findings.add(n)
	signal(d.finds)
}

// over makes known that a hold is over.
func (d *Dispatcher) over(endpoint, kind string) {
	d.find(finding{HoldWrite: store.HoldWrite{Hold: store.Hold{Endpoint: endpoint, Kind: kind, Over: true}}})
}

// shares stores what is found until ctx ends.
func (d *Dispatcher) shares(ctx context.Context) {
	for ctx.Err() == nil {
		wait.Woken(ctx, shareRetry, d.finds)
		if d.share(context.WithoutCancel(ctx), d.raise) {
			signal(d.finds)
		}
		wait.Sleep(ctx, shareEvery)
	}
}

// share stores a batch of what was found, and reports whether there may be more. The
// store raises the alerts with it; when it cannot, raise does, and the rest is tried
// again later.
func (d *Dispatcher) share(ctx context.Context, raise func(deadletter.Alert)) (more bool) {
	list := d.findings.take(shareBatch)
	if len(list) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, choresGrace)
	defer cancel()
	writes, now := make([]store.HoldWrite, len(list)), time.Now()
	for i, n := range list {
		writes[i] = n.HoldWrite
		writes[i].In = n.next.Sub(now)
	}
	if d.do(ctx, partFindings, "what was found of endpoints not stored", func() error { return d.cfg.Store.PutHolds(ctx, d.cfg.Owner, writes) }) {
		return len(list) == shareBatch
	}
	for i := range list {
		if a := &list[i].Alert; a.Queue != "" {
			raise(*a)
			*a = deadletter.Alert{}
		}
	}
	d.findings.putBack(list)
	return false
}

// shareAll stores what is left at the end.
func (d *Dispatcher) shareAll(ctx context.Context) {
	for d.share(ctx, func(a deadletter.Alert) { d.storeAlert(ctx, a) }) {
	}
}

// learn reads what others have found.
func (d *Dispatcher) learn(ctx context.Context) error {
	since, began := d.heard, time.Now()
	whole := began.Sub(d.heardAll) >= compareEvery // see compareEvery
	if whole {
		since = 0
	}
	list, mark, err := d.cfg.Store.HoldChanges(ctx, since)
	if err != nil {
		return err
	}
	for i := range list {
		d.heed(&list[i])
	}
	if d.heard = mark; whole {
		d.heardAll = began
	}
	return nil
}

// heed lets an endpoint's lane know what another process has found.
func (d *Dispatcher) heed(h *store.Hold) {
	l := d.lane(h.Endpoint)
	if h.Owner == d.cfg.Owner || l == nil || !l.ep.enabled() || d.findings.has(h.Endpoint, h.Kind) {
		return
	}
	switch {
	case h.Kind == heldSuspect:
		l.ep.suspect(!h.Over)
		return
	case h.Over:
		l.lookNow(h.Kind)
	case h.Looks == 0 || l.ep.goodSince(time.Now().Add(-lately)):
		return
	default:
		// The others look before the one that wrote this.
		left := min(max(h.In, 0), lastProbe)
		l.follow(h, time.Now().Add(left*3/4+rand.N(left/4+1)))
	}
	d.ask(h.Endpoint)
}

// lookNow makes a hold be looked at at once: another process has found the endpoint
// well.
func (l *lane) lookNow(kind string) {
	switch kind {
	case heldDown:
		l.pacing.lookAgain()
	case HoldCredential:
		l.ep.hold.lookAgain()
	case HoldUnresolved:
		l.ep.names.lookAgain()
	case HoldRejecting:
		l.ep.rejects.lookAgain()
	}
}

// follow holds the endpoint as another process does, until it is this one's turn to look.
func (l *lane) follow(h *store.Hold, next time.Time) {
	l.ep.failedFor(h.Looks)
	switch h.Kind {
	case heldDown:
		if b := l.retryer.Breaker(); b != nil {
			b.Follow(l.d.now())
		}
		l.pacing.follow(h.Looks, next)
	case HoldUnresolved:
		l.ep.names.follow(h.Why, h.Looks, next)
	case HoldRejecting:
		l.ep.rejects.follow(h.Why, h.Looks, next)
	}
}
