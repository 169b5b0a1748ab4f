package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

const (
	storeBatch   = 500 // rows that a poll asks of the store at once
	overdueBatch = 256
	bodyBatch    = 64  // bodies that are read to be dropped
	sweepBatch   = 256 // finished deliveries that are deleted at once
	sweepPause   = 20 * time.Millisecond
	choresGrace  = 5 * time.Second // for alerts that cannot be stored, at the end
)

// startChores starts the goroutines that write alerts and states. A store that is
// away must not delay the workers, which may raise an alert with each attempt.
// There are two, so that an alert that is tried again and again does not delay
// the state of an endpoint. The returned function lets the chores that there are
// finish; nothing may be added from then on.
func (d *Dispatcher) startChores(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	for range 2 {
		helpers.Go(func() {
			for f := range d.chores {
				f(ctx)
			}
		})
	}
	return func() {
		defer cancel()
		defer time.AfterFunc(choresGrace, cancel).Stop()
		close(d.chores)
		helpers.Wait()
	}
}

// chore runs f outside of the workers. It waits when there are too many: a worker
// that goes on would have to drop an alert.
func (d *Dispatcher) chore(f func(context.Context)) { d.chores <- f }

// raise stores an alert. It must not be lost, so that it is tried until the
// store takes it, or the grace of a stop is over.
func (d *Dispatcher) raise(a queue.Alert) {
	d.chore(func(ctx context.Context) { d.storeAlert(ctx, a) })
}

// storeAlert stores an alert, if it can before ctx ends.
func (d *Dispatcher) storeAlert(ctx context.Context, a queue.Alert) {
	backoff := wait.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second}
	for ctx.Err() == nil {
		err := d.parts[partAlerts].Do(func() error { return d.cfg.Alerts.Raise(ctx, a) })
		if err == nil {
			return
		}
		d.log.Error("alert not stored", slog.String("reason", a.Reason), slog.String("error", err.Error()))
		wait.Sleep(ctx, backoff.Next())
	}
}

// failing stores since when an endpoint has been failing; zero: it is well.
func (d *Dispatcher) failing(id string, since time.Time) {
	d.chore(func(ctx context.Context) { d.storeState(ctx, id, webhook.Enabled, "", since) })
}

// disable stores that an endpoint is disabled. The store raises the alert with the write
// that changes it, so that there is one however many processes find the same; when it
// cannot, this process raises its own.
func (d *Dispatcher) disable(id, why string, failing time.Time) {
	d.chore(func(ctx context.Context) {
		if !d.storeState(ctx, id, webhook.Disabled, why, failing) {
			d.storeAlert(ctx, store.DisabledAlert(id, why))
		}
	})
}

// storeState stores the state of an endpoint, and reports whether it did. A write that fails
// is not repeated: the next change brings another, and a late one could undo that.
func (d *Dispatcher) storeState(ctx context.Context, id string, s webhook.EndpointState, why string, failing time.Time) bool {
	err := d.parts[partStates].Do(func() error {
		err := d.cfg.Store.SetEndpointState(ctx, id, s, webhook.ByForbear, why, failing)
		if errors.Is(err, webhook.ErrNotFound) { // deleted meanwhile: it has no state
			return nil
		}
		return err
	})
	if err == nil {
		return true
	}
	d.log.Error("endpoint state not stored", slog.String("endpoint", id), slog.String("error", err.Error()))
	return false
}

// reclaim takes back what dead processes held, in batches, so that one that held
// much does not stop the others' writes for long.
func (d *Dispatcher) reclaim(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := pulse.Get(&d.parts[partLeases], func() (int, error) { return d.cfg.Store.Reclaim(ctx, storeBatch) })
		if !d.warn(ctx, "expired leases not reclaimed", err) || n == 0 {
			return
		}
		d.log.Info("deliveries reclaimed: their leases expired, or the store's clock was set back", slog.Int("deliveries", n))
		d.look()
	}
}

// sweep deletes old history, and bodies before that where they are kept for less, in
// turns: bodies that come faster than they go do not delay the history.
func (d *Dispatcher) sweep(ctx context.Context) {
	bodies, history := d.cfg.BodyRetention < d.cfg.Retention, true
	for bodies || history {
		bodies = bodies && d.sweepWith(ctx, partBodies, d.cfg.Store.DropBodies, d.cfg.BodyRetention, bodyBatch)
		history = history && d.sweepWith(ctx, partHistory, d.cfg.Store.Sweep, d.cfg.Retention, sweepBatch)
	}
	if s, ok := d.cfg.Store.(store.Shrinker); ok {
		d.shrink(ctx, s)
	}
}

// shrink gives back what the sweeps have freed, in steps as small as theirs.
func (d *Dispatcher) shrink(ctx context.Context, s store.Shrinker) {
	for ctx.Err() == nil {
		more, err := pulse.Get(&d.parts[partSpace], func() (bool, error) { return s.Shrink(ctx) })
		if !d.warn(ctx, "free space not released", err) || !more {
			return
		}
		wait.Sleep(ctx, sweepPause)
	}
}

// sweepWith sweeps one small batch and reports whether there is more. A pause at least
// as long follows, in which deliveries have the store for themselves.
func (d *Dispatcher) sweepWith(ctx context.Context, part int, sweep func(context.Context, time.Duration, int) (int, error), age time.Duration, batch int) (more bool) {
	began := time.Now()
	n, err := pulse.Get(&d.parts[part], func() (int, error) { return sweep(ctx, age, batch) })
	if !d.warn(ctx, "history not swept", err) || n < batch {
		return false
	}
	return wait.Sleep(ctx, max(sweepPause, time.Since(began)))
}

// overdue dead-letters what could not be attempted within its total: deliveries
// to endpoints that are disabled or held, for which nothing is claimed.
func (d *Dispatcher) overdue(ctx context.Context) {
	// By endpoint, since each has a total of its own, and only where anything waits.
	heads, err := d.cfg.Store.NextDues(ctx)
	d.warn(ctx, "waiting deliveries not read", err)
	for _, h := range heads {
		if r := d.receiver(h.Endpoint); r != nil {
			d.expireOverdue(ctx, r)
		}
	}
}

// expireOverdue does so with the deliveries to one endpoint. What cannot be read has no
// letter before its key is there. What is too old by the store's clock alone is given
// back: a clock that jumps ahead by a day, for seconds, must not end all that waits. It
// ends when it meets nothing but such as it has met.
func (d *Dispatcher) expireOverdue(ctx context.Context, r *receiver) {
	total := r.endpoint().retryer.Policy().Total
	spec := store.Lane{Endpoint: r.id, Max: overdueBatch}
	met := map[int64]bool{}
	for found := true; found && ctx.Err() == nil && len(met) < overdueUnreadable; {
		list, err := pulse.Get(&d.parts[partOverdue], func() ([]store.Delivery, error) {
			return d.cfg.Store.Overdue(ctx, d.cfg.Owner, time.Duration(d.lease.Load()), total, spec)
		})
		if found = false; !d.warn(ctx, "overdue deliveries not read", err) {
			return
		}
		for i := range list {
			dl := &list[i]
			j := &job{to: r, delivery: dl}
			old := d.now().Sub(j.start()) >= total
			if dl.Unreadable == nil && old {
				j.expire()
				found = true
				continue
			}
			found = found || !met[dl.ID]
			met[dl.ID] = true
			if dl.Unreadable != nil {
				r.postpone(dl)
			} else {
				j.release(j.leftOf(total))
			}
		}
	}
}

// leftOf returns for how long a delivery still waits that is given back, of a total. One that
// is due beyond its total was given back before by a clock that was ahead: that wait would be
// as long as the clock was wrong.
func (j *job) leftOf(total time.Duration) time.Duration {
	if !j.delivery.Due.Before(j.start().Add(total)) {
		return 0
	}
	return max(j.delivery.Due.Sub(j.to.d.now()), 0)
}
