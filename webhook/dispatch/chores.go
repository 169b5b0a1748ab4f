package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook"
)

const (
	storeBatch   = 500 // rows that a poll asks of the store at once
	overdueBatch = 256
	choresGrace  = 5 * time.Second // for alerts that cannot be stored, at the end
)

// startChores starts those who write alerts and states. A store that is away
// must not hold up the workers, who may raise one with each attempt. The
// returned function lets the chores that there are finish.
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

// chore runs f outside of the workers.
func (d *Dispatcher) chore(f func(context.Context)) { d.chores <- f }

// raise stores an alert. It must not be lost, so that it is tried again.
func (d *Dispatcher) raise(a deadletter.Alert) {
	d.chore(func(ctx context.Context) {
		backoff := wait.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second}
		for ctx.Err() == nil {
			err := d.cfg.Alerts.Raise(ctx, a)
			if err == nil {
				return
			}
			d.log.Error("alert not stored", slog.String("reason", a.Reason), slog.String("error", err.Error()))
			wait.Sleep(ctx, backoff.Next())
		}
	})
}

// setState stores how an endpoint fares. A write that fails is not repeated: the
// next change brings another.
func (d *Dispatcher) setState(id string, s webhook.EndpointState, why string, failing time.Time) {
	d.chore(func(ctx context.Context) {
		if err := d.cfg.Store.SetEndpointState(ctx, id, s, why, failing); err != nil {
			d.log.Error("endpoint state not stored", slog.String("endpoint", id), slog.String("error", err.Error()))
		}
	})
}

// reclaim takes back what dead processes held.
func (d *Dispatcher) reclaim(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.cfg.Store.Reclaim(ctx, storeBatch)
		if !d.warn(ctx, "lost leases not reclaimed", err) || n == 0 {
			return
		}
		d.log.Info("leases ran out", slog.Int("deliveries", n))
		d.look()
	}
}

// sweep deletes old history in small batches, with pauses in which deliveries
// have the store for themselves.
func (d *Dispatcher) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.cfg.Store.Sweep(ctx, d.cfg.Retention, storeBatch)
		if !d.warn(ctx, "history not swept", err) || n < storeBatch {
			return
		}
		wait.Sleep(ctx, 50*time.Millisecond)
	}
}

// overdue dead-letters what could not be attempted within its total: deliveries
// to endpoints that are disabled, held or slowed, whose lanes claim nothing.
func (d *Dispatcher) overdue(ctx context.Context) {
	for id, l := range *d.lanes.Load() {
		total := cmp.Or(l.retryer.Policy().Total, 24*time.Hour)
		spec := webhook.Lane{Endpoint: id, Max: overdueBatch}
		for ctx.Err() == nil {
			list, err := d.cfg.Store.Overdue(ctx, d.cfg.Owner, time.Duration(d.lease.Load()), total, spec)
			if !d.warn(ctx, "overdue deliveries not read", err) || len(list) == 0 {
				break
			}
			for i := range list {
				(&job{lane: l, delivery: &list[i]}).expire()
			}
		}
	}
}
