package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// Load reads the endpoints and makes a lane for each that is new or changed. Run
// does so by itself. An endpoint that cannot be served keeps the lane it had.
func (d *Dispatcher) Load(ctx context.Context) error {
	select {
	case d.loading <- struct{}{}:
		defer func() { <-d.loading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.reload.Store(false) // before the list is read: a change from now on is another
	list, err := d.cfg.Store.Endpoints(ctx)
	if err != nil {
		return err
	}
	lanes := make(map[string]*lane, len(list))
	changed := false
	for i := range list {
		e := &list[i]
		l := d.lane(e.ID)
		if l == nil || !l.serves(e) {
			made, err := d.newLane(*e, l)
			if err != nil {
				d.log.Error("endpoint cannot be served", slog.String("endpoint", e.ID), slog.String("error", err.Error()))
			} else {
				l, changed = made, true
			}
		}
		if l != nil {
			lanes[e.ID] = l
		}
	}
	tenants := byTenant(lanes)
	d.lanes.Store(&lanes)
	d.tenants.Store(&tenants)
	if changed {
		d.look() // a new lane knows of no work yet
	}
	d.lease.Store(int64(leaseTime(lanes)))
	return nil
}

// leaseTime covers the longest attempt, the wait for a slot and the writing
// back. What a dead process held stays for as long, so that it is not longer than
// it must be.
func leaseTime(lanes map[string]*lane) time.Duration {
	longest := 10 * time.Second
	for _, l := range lanes {
		longest = max(longest, l.attemptTimeout())
	}
	return longest + 10*time.Second
}

// newLane returns a lane for an endpoint, in the place of old, which may be nil.
// What old knows of the receiver stays, unless the endpoint is another receiver
// now: a change of a header must not make a dead one look well.
func (d *Dispatcher) newLane(conf webhook.Endpoint, old *lane) (*lane, error) {
	conf.Policy.Kind = forbear.Webhook
	if len(conf.Secrets) == 0 && conf.Tenant != nil {
		conf.Secrets = conf.Tenant.Secrets
	}
	ep, err := d.newEndpoint(conf)
	if err != nil {
		return nil, err
	}
	l := &lane{d: d, ep: ep, due: time.Now()}
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
	ep.hold.lookAgain()
	ep.cred = newCredential(conf.Auth, d, l.retryer.Refreshed)
	return l, nil
}

// newRetryer makes the lane's Retryer, with its budget and its breaker, and the
// pacing that observes the breaker.
func (l *lane) newRetryer() (err error) {
	d, id := l.d, l.ep.id()
	l.pacing = &pacing{opened: func() {
		d.raise(deadletter.Alert{Queue: webhook.QueueOf(id), Reason: "endpoint_slowed", Detail: "endpoint " + id + " keeps failing: attempts are spaced out"})
	}}
	opts := []forbear.Option{forbear.WithCallerDeadLetter(), forbear.WithObserver(l.pacing.observer())}
	l.retryer, err = forbear.New("webhook:"+id, l.ep.conf.Policy, append(opts, d.cfg.Options...)...)
	return err
}

// lane returns the lane of an endpoint, or nil. Callers that wait in between ask
// again: a change of the endpoint may have replaced it.
func (d *Dispatcher) lane(id string) *lane { return (*d.lanes.Load())[id] }

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
