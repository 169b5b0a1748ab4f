package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// compareEvery is how often all endpoints are read, and not only what has changed:
// a store that was brought back from a backup knows nothing of what came after it.
const compareEvery = 5 * time.Minute

// Load reads the endpoints that were changed since it last did, and makes a receiver for
// each that is new, or gives one its other configuration; the first time, and then every
// five minutes, it reads them all. Run does so by itself. An endpoint that cannot be served
// keeps the configuration it had.
func (d *Dispatcher) Load(ctx context.Context) error {
	return d.loadOnce(ctx, func() error { return d.load(ctx) })
}

// loadOnce calls load when no other one is under way.
func (d *Dispatcher) loadOnce(ctx context.Context, load func() error) error {
	select {
	case d.loading <- struct{}{}:
		defer func() { <-d.loading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return load()
}

// loadTimeout bounds a call of current.
const loadTimeout = 10 * time.Second

// current makes known what any process had changed of the endpoints when it was called.
// Calls that come while a read is under way share the next one.
func (d *Dispatcher) current(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	known := d.loads.Load()
	return d.loadOnce(ctx, func() error {
		if d.loads.Load() > known && d.loadErr == nil {
			return nil // which began after the call
		}
		return d.load(ctx)
	})
}

// loaded reports whether a Load has read the endpoints.
func (d *Dispatcher) loaded() bool {
	d.loading <- struct{}{}
	defer func() { <-d.loading }()
	return !d.compared.IsZero()
}

// load is Load, for one at a time.
func (d *Dispatcher) load(ctx context.Context) (err error) {
	d.loads.Add(1)
	defer func() { d.loadErr = err }()
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
		d.keepServing(&u.Endpoint)
	}
	for _, id := range c.Deleted {
		d.receivers.drop(id)
	}
	if whole {
		d.dropOthers(&c)
		d.compared = began
	}
	d.mark = c.Mark
	return nil
}

// served notes whether an endpoint is served as it is stored. What is for it is refused
// for now where it is not and has no receiver, and what its application's endpoints share, for
// it may want that.
func (d *Dispatcher) served(e *webhook.Endpoint, err error) {
	if !d.receivers.served(e, err) {
		d.log.Error("stored endpoint cannot be used", slog.String("endpoint", e.ID), slog.String("error", err.Error()))
	}
}

// keepServing gives the receiver of an endpoint that cannot be read the state that the
// store has for it. Its configuration stays as it was.
func (d *Dispatcher) keepServing(e *webhook.Endpoint) {
	r := d.receiver(e.ID)
	if r == nil {
		return
	}
	was := r.endpoint().stored
	was.State, was.DisabledBy, was.Reason, was.Since, was.FailingSince = e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince
	if was.Tenant != nil {
		tenant := *was.Tenant
		tenant.Suspended, tenant.Reason = e.Tenant.Suspended, e.Tenant.Reason
		was.Tenant = &tenant
	}
	_ = d.loadEndpoint(&was) // what it was made of can be served
}

// loadEndpoint makes the receiver of an endpoint that is new, or configures it anew.
func (d *Dispatcher) loadEndpoint(e *webhook.Endpoint) error {
	r := d.receiver(e.ID)
	if r != nil && r.endpoint().conf.Application != e.Application { // from a backup
		d.receivers.drop(e.ID)
		r = nil
	}
	known := r != nil
	if !known {
		r = &receiver{d: d, id: e.ID}
	}
	changed, err := r.configure(e)
	if err != nil {
		return fmt.Errorf("endpoint %q %w: %w", e.ID, webhook.ErrUnreadable, err)
	}
	if !changed {
		return nil
	}
	if !d.compared.IsZero() { // else the first look at the store finds those that have work
		r.dueAt(time.Now())
	}
	if !known {
		d.receivers.add(r)
	}
	d.lease.Store(max(d.lease.Load(), int64(leaseTime(r))))
	d.agenda.ask(e.ID)
	if e.Rate > 0 && d.members.Load().live == 0 {
		signal(d.joins)
	}
	return nil
}

// dropOthers drops the receivers of endpoints that are not among all there are, and finds
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
	for id, r := range d.receivers.all() {
		if known[id] {
			lease = max(lease, leaseTime(r))
		} else {
			d.receivers.drop(id)
		}
	}
	d.receivers.forget(known)
	d.lease.Store(int64(lease))
}

// leaseTime covers the longest attempt, the wait for a slot and the writing
// back. What a dead process held stays for as long, so that it is not longer than
// it must be. nil is no receiver.
func leaseTime(r *receiver) time.Duration {
	longest := 10 * time.Second
	if r != nil {
		longest = max(longest, r.endpoint().attemptTimeout())
	}
	return longest + 10*time.Second
}

// receiver returns the receiver of an endpoint, or nil.
func (d *Dispatcher) receiver(id string) *receiver { return d.receivers.of(id) }

// ask makes the main loop ask the receiver of an endpoint what it wants.
func (d *Dispatcher) ask(id string) {
	d.agenda.ask(id)
	d.wake()
}

// dueAt lets the receiver of an endpoint know that it has work from t on.
func (d *Dispatcher) dueAt(id string, t time.Time) {
	if r := d.receiver(id); r != nil {
		r.dueAt(t)
	}
}

// keepsOrder reports whether an endpoint keeps the order of keys.
func (d *Dispatcher) keepsOrder(id string) bool {
	r := d.receiver(id)
	return r != nil && r.endpoint().conf.Ordered
}
