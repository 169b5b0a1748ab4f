package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

// What one process finds out about an endpoint, all that share the store know: that it
// is down, refuses everything or has no name. The first that finds it raises the one
// alert. The others, and those that start meanwhile, send single messages from then on.
// Whichever looked last looks last again, so that all of them together look hardly more
// often than one would, and none can hold an endpoint that another one reaches. When one
// finds it well the others look at once, each for itself. A partitioned process must not
// delay the others, and their success must not release it.
//
// A store that cannot be written is logged, and each process finds out by itself.
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

// finding is what is found of an endpoint, and not stored yet.
type finding struct {
	store.HoldWrite
	next time.Time // when the next look is due, on the monotonic clock
}

// ledger has what this process has found of endpoints and counted of attempts, until the
// store has it. The zero value is empty. It is safe for concurrent use.
type ledger struct {
	mu       sync.Mutex
	findings map[[2]string]finding // by endpoint and kind
	tallies
}

// add adds what was found after the rest. Of several about one hold the latest counts,
// and that it began.
func (l *ledger) add(n finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(n)
}

// put is add; mu is held.
func (l *ledger) put(n finding) {
	key := [2]string{n.Endpoint, n.Kind}
	if old, ok := l.findings[key]; ok && old.Begins && !n.Begins {
		n.Begins, n.Alert = true, old.Alert
	}
	if l.findings == nil {
		l.findings = map[[2]string]finding{}
	}
	l.findings[key] = n
}

// take takes up to limit.
func (l *ledger) take(limit int) (list []finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, n := range l.findings {
		if len(list) == limit {
			break
		}
		list = append(list, n)
		delete(l.findings, key)
	}
	return list
}

// putBack returns what could not be stored, before what was found since.
func (l *ledger) putBack(list []finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range list {
		key := [2]string{n.Endpoint, n.Kind}
		later, ok := l.findings[key]
		l.findings[key] = n
		if ok {
			l.put(later)
		}
	}
}

// has reports whether there is one that the store does not know yet.
func (l *ledger) has(endpoint, kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.findings[[2]string{endpoint, kind}]
	return ok
}

// find makes known what this process has found. It does not wait.
func (d *Dispatcher) find(n finding) {
	d.ledger.add(n)
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
func (d *Dispatcher) share(ctx context.Context, raise func(queue.Alert)) (more bool) {
	list := d.ledger.take(shareBatch)
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
	if d.do(ctx, partFindings, "state of endpoints not shared with other processes", func() error { return d.cfg.Store.PutHolds(ctx, d.cfg.Owner, writes) }) {
		return len(list) == shareBatch
	}
	for i := range list {
		if a := &list[i].Alert; a.Queue != "" {
			raise(*a)
			*a = queue.Alert{}
		}
	}
	d.ledger.putBack(list)
	return false
}

// shareAll stores what is left at the end.
func (d *Dispatcher) shareAll(ctx context.Context) {
	for d.share(ctx, func(a queue.Alert) { d.storeAlert(ctx, a) }) {
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

// heed lets an endpoint's receiver know what another process has found.
func (d *Dispatcher) heed(h *store.Hold) {
	r := d.receiver(h.Endpoint)
	if h.Owner == d.cfg.Owner || r == nil || d.ledger.has(h.Endpoint, h.Kind) {
		return
	}
	if r.heed(h) {
		d.ask(h.Endpoint)
	}
}

// heed learns what another process has found, and reports whether that changes anything.
func (r *receiver) heed(h *store.Hold) bool {
	if r.followsDown(h) {
		if b := r.endpoint().retryer.Breaker(); b != nil {
			b.Follow(r.d.now()) // which breakerMoved hears of
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := kind(slices.IndexFunc(kindOf[:], func(of kindFacts) bool { return of.name == h.Kind }))
	switch {
	case !r.enabledLocked():
		return false
	case h.Kind == suspected:
		r.suspected = !h.Over
		return false
	case k < 0:
		return false
	case h.Over: // another process has found the endpoint well
		r.holds[k].lookAgain()
		return true
	case r.knowsBetter(h):
		return false
	}
	// The others look before the one that wrote this.
	left := min(max(h.In, 0), kindOf[rejecting].last)
	next := time.Now().Add(left*3/4 + rand.N(left/4+1))
	switch on := &r.holds[k]; {
	case k == credential:
	case k != down:
		r.failures = max(r.failures, h.Looks)
		if on.follow(h.Why, h.Looks, next) {
			r.resolved = r.resolved && k != unresolved
		}
	case on.waits(time.Now()) && r.failures >= lifeless: // none of this process's succeed, and none is due
		on.looks, on.until = h.Looks, next
	}
	return true
}

// followsDown reports whether another process's word that the endpoint is down is to be
// followed.
func (r *receiver) followsDown(h *store.Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.Kind == kindOf[down].name && !h.Over && r.enabledLocked() && !r.knowsBetter(h)
}

// knowsBetter reports whether a hold of another process is not to be followed: it is not
// meant to be, or the endpoint has accepted a message so lately. The caller holds mu.
func (r *receiver) knowsBetter(h *store.Hold) bool {
	return h.Looks == 0 || r.good.After(time.Now().Add(-lately))
}
