package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// compareEvery is how often all endpoints are read, and not only what has changed:
// a store that was brought back from a backup knows nothing of what came after it.
const compareEvery = 5 * time.Minute

// Load reads the endpoints that were changed since it last did, and makes a lane
// for each that is new or has another configuration; the first time, and then
// every five minutes, it reads them all. Run does so by itself. An endpoint that
// cannot be served keeps the lane it had.
func (d *Dispatcher) Load(ctx context.Context) error {
	select {
	case d.loading <- struct{}{}:
		defer func() { <-d.loading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return d.load(ctx)
}

// loaded reports whether a Load has read the endpoints.
func (d *Dispatcher) loaded() bool {
	d.loading <- struct{}{}
	defer func() { <-d.loading }()
	return !d.compared.IsZero()
}

// load is Load, for one at a time.
func (d *Dispatcher) load(ctx context.Context) error {
	since, began := d.mark, time.Now()
	whole := began.Sub(d.compared) >= compareEvery
	if whole {
		since = 0
	}
	c, err := d.cfg.Store.EndpointChanges(ctx, since)
	if err != nil {
		return err
	}
	if d.compared.IsZero() && len(c.Unreadable) > 0 {
		return c.Unreadable[0].Err // it was started with the wrong key
	}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		d.served(e, d.loadEndpoint(e))
	}
	for i := range c.Unreadable {
		u := &c.Unreadable[i]
		d.served(&u.Endpoint, u.Err)
		d.keepLane(&u.Endpoint)
	}
	for _, id := range c.Deleted {
		d.lanes.drop(id)
	}
	if whole {
		d.dropOthers(&c)
		d.compared = began
	}
	d.mark = c.Mark
	return nil
}

// refresh is a Load that several calls wait for.
type refresh struct {
	done chan struct{} // closed at the end
	err  error         // then
}

// refreshes gathers calls of current. The zero value has none.
type refreshes struct {
	mu   sync.Mutex
	next *refresh // which has not begun
}

// loadTimeout bounds a refresh, which goes on when who asked for it has given up.
const loadTimeout = 10 * time.Second

// current makes known what any process had changed of the endpoints when it was
// called. Calls that come while a read is under way share the next one.
func (d *Dispatcher) current(ctx context.Context) error {
	d.refreshes.mu.Lock()
	r := d.refreshes.next
	if r == nil {
		r = &refresh{done: make(chan struct{})}
		d.refreshes.next = r
		go d.refresh(context.WithoutCancel(ctx), r)
	}
	d.refreshes.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refresh reads what has changed, behind the read that is under way.
func (d *Dispatcher) refresh(ctx context.Context, r *refresh) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	defer close(r.done)
	d.loading <- struct{}{}
	defer func() { <-d.loading }()
	d.refreshes.mu.Lock()
	d.refreshes.next = nil // who comes from here on may know of a later change
	d.refreshes.mu.Unlock()
	r.err = d.load(ctx)
}

// served notes whether an endpoint is served as it is stored. What is for it is refused
// for now where it is not and has no lane, and what its application's endpoints share, for
// it may want that.
func (d *Dispatcher) served(e *webhook.Endpoint, err error) {
	if !d.lanes.served(e, err) {
		d.log.Error("endpoint cannot be served as it is stored", slog.String("endpoint", e.ID), slog.String("error", err.Error()))
	}
}

// keepLane gives the lane of an endpoint that cannot be read the state that the store
// has for it. Its configuration stays as it was.
func (d *Dispatcher) keepLane(e *webhook.Endpoint) {
	l := d.lane(e.ID)
	if l == nil {
		return
	}
	was := l.stored
	was.State, was.DisabledBy, was.Reason, was.Since, was.FailingSince = e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince
	if was.Tenant != nil {
		tenant := *was.Tenant
		tenant.Suspended, tenant.Reason = e.Tenant.Suspended, e.Tenant.Reason
		was.Tenant = &tenant
	}
	_ = d.loadEndpoint(&was) // what it was made of makes a lane
}

// loadEndpoint makes the lane of an endpoint that is new or was changed.
func (d *Dispatcher) loadEndpoint(e *webhook.Endpoint) error {
	old := d.lane(e.ID)
	if old != nil && old.serves(e) {
		return nil
	}
	l, err := d.newLane(*e, old)
	if err != nil {
		return fmt.Errorf("endpoint %q %w: %w", e.ID, webhook.ErrUnreadable, err)
	}
	if d.compared.IsZero() {
		l.due = time.Time{} // the first look at the store finds those that have work
	}
	d.lanes.set(l)
	if old != nil && !l.ep.enabled() {
		old.ep.retire() // what it has claimed and not sent
	}
	d.lease.Store(max(d.lease.Load(), int64(leaseTime(l))))
	d.agenda.ask(e.ID)
	if e.Rate > 0 && !d.members.counts() {
		signal(d.joins)
	}
	return nil
}

// dropOthers drops the lanes of endpoints that are not among all there are, and finds
// the lease that the rest needs.
func (d *Dispatcher) dropOthers(all *store.EndpointChanges) {
	known := make(map[string]bool, len(all.Endpoints))
	for i := range all.Endpoints {
		known[all.Endpoints[i].ID] = true
	}
	for i := range all.Unreadable {
		known[all.Unreadable[i].ID] = true
	}
	lease := leaseTime(nil)
	for id, l := range d.lanes.all() {
		if known[id] {
			lease = max(lease, leaseTime(l))
		} else {
			d.lanes.drop(id)
		}
	}
	d.lanes.forget(known)
	d.lease.Store(int64(lease))
}

// leaseTime covers the longest attempt, the wait for a slot and the writing
// back. What a dead process held stays for as long, so that it is not longer than
// it must be. nil is no lane.
func leaseTime(l *lane) time.Duration {
	longest := 10 * time.Second
	if l != nil {
		longest = max(longest, l.attemptTimeout())
	}
	return longest + 10*time.Second
}

// newLane returns a lane for an endpoint, in the place of old, which may be nil.
// What old knows of the receiver stays, unless the endpoint is another receiver
// now: a change of a header must not make a dead one look well.
func (d *Dispatcher) newLane(conf webhook.Endpoint, old *lane) (*lane, error) {
	stored := conf
	conf.Policy.Kind = forbear.Webhook
	shared := len(conf.Secrets) == 0 && conf.Tenant != nil && !conf.Unsigned
	if shared {
		conf.Secrets, conf.OldSecrets = conf.Tenant.Secrets, conf.Tenant.OldSecrets
	}
	ep, err := d.newEndpoint(conf)
	if err != nil {
		return nil, err
	}
	ep.shared = shared
	l := &lane{d: d, stored: stored, ep: ep, due: time.Now()}
	if old != nil {
		ep.hold = old.ep.hold
		if old.ep.conf.URL == conf.URL {
			l.inherit(old)
		}
	}
	if l.retryer == nil {
		if err := l.newRetryer(); err != nil {
			return nil, err
		}
	}
	ep.lookAgain()
	ep.cred = newCredential(conf.Auth, d, l.retryer.Refreshed)
	return l, nil
}

// newRetryer makes the lane's Retryer, with its budget and its breaker, and the
// pacing that observes the breaker.
func (l *lane) newRetryer() (err error) {
	d, id := l.d, l.ep.id()
	l.pacing = &pacing{
		opened: func(first bool, times int, next time.Time) { d.slowed(id, first, times, next) },
		closed: func() {
			d.over(id, heldDown)
			d.ask(id)
		},
	}
	opts := []forbear.Option{forbear.WithCallerDeadLetter(), forbear.WithObserver(l.pacing.observer())}
	p := l.ep.conf.Policy
	p.Breaker.OpenFor = cmp.Or(p.Breaker.OpenFor, firstWait)
	l.retryer, err = forbear.New("webhook:"+id, p, append(opts, d.cfg.Options...)...)
	return err
}

// lane returns the lane of an endpoint, or nil. Callers that wait in between ask
// again: a change of the endpoint may have replaced it.
func (d *Dispatcher) lane(id string) *lane { return d.lanes.of(id) }

// ask makes the main loop ask the lane of an endpoint what it wants.
func (d *Dispatcher) ask(id string) {
	d.agenda.ask(id)
	d.wake()
}

// dueAt lets the lane of an endpoint know that it has work from t on.
func (d *Dispatcher) dueAt(id string, t time.Time) {
	if l := d.lane(id); l != nil {
		l.dueAt(t)
	}
}

// keepsOrder reports whether an endpoint keeps the order of keys.
func (d *Dispatcher) keepsOrder(id string) bool {
	l := d.lane(id)
	return l != nil && l.ep.conf.Ordered
}
