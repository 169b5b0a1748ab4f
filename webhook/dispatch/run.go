package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
)

const (
	reloadEvery  = 5 * time.Second  // look at the endpoints
	overdueEvery = 30 * time.Second // look for what waits for too long
	sweepEvery   = 30 * time.Second
	headsEvery   = 25 * time.Millisecond  // at most
	headsRetry   = 100 * time.Millisecond // when the store could not be read
	relayBatch   = 500
	overdueBatch = 256
	choresGrace  = 5 * time.Second // for alerts that cannot be stored, at the end
)

// Run delivers until ctx ends. Then it takes nothing more, lets the attempts
// under way finish and be written back, and returns what it holds to the store.
// Attempts that outlast their timeout are cut off.
func (d *Dispatcher) Run(ctx context.Context) error {
	if err := d.Load(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	background := context.WithoutCancel(ctx)
	var turns, helpers, loops sync.WaitGroup
	quiet := make(chan struct{})
	turns.Go(func() { d.turns(ctx, quiet) })
	chores, endChores := context.WithCancel(background)
	defer endChores()
	for range 2 {
		helpers.Go(func() {
			for f := range d.chores {
				f(chores)
			}
		})
	}
	loops.Go(func() { d.scout(ctx) })
	loops.Go(func() { d.every(ctx, d.cfg.Poll/4, d.relay) })
	loops.Go(func() { d.every(ctx, time.Duration(d.lease.Load())/4, d.reclaim) })
	loops.Go(func() { d.every(ctx, sweepEvery, d.sweep) })
	loops.Go(func() { d.every(ctx, overdueEvery, d.overdue) })
	if w, ok := d.cfg.Store.(webhook.Waker); ok {
		loops.Go(func() {
			w.Wakes(ctx, func() {
				d.reload.Store(true)
				d.look()
			})
		})
	}
	<-ctx.Done()
	close(d.stop)
	loops.Wait()
	<-quiet
	for _, l := range d.all() {
		for _, dl := range l.drain() {
			d.finish(release(dl, 0))
		}
	}
	d.workers.Wait()
	close(d.outcomes)
	turns.Wait()
	d.behind.Wait()
	time.AfterFunc(choresGrace, endChores)
	close(d.chores)
	helpers.Wait()
	d.abort()
	return nil
}

// every runs f at once and then at the interval.
func (d *Dispatcher) every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	for ctx.Err() == nil {
		f(ctx)
		pause(ctx, interval)
	}
}

// scout reads the endpoints and looks for work that the lanes do not know of,
// apart from the turns, which do not wait for it.
func (d *Dispatcher) scout(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	loaded := time.Now()
	for ctx.Err() == nil {
		if d.reload.Load() || time.Since(loaded) > reloadEvery {
			d.warn(ctx, "endpoints not read", d.Load(ctx))
			loaded = time.Now()
		}
		if d.warn(ctx, "due deliveries not read", d.heads(ctx)) {
			timer.Reset(d.cfg.Poll)
		} else {
			timer.Reset(headsRetry)
		}
		d.wake()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.looks:
		}
		pause(ctx, headsEvery)
	}
}

// look makes the scout look soon.
func (d *Dispatcher) look() {
	select {
	case d.looks <- struct{}{}:
	default:
	}
}

// heads learns from the store which lanes have work, and when.
func (d *Dispatcher) heads(ctx context.Context) error {
	list, err := d.cfg.Store.Heads(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, h := range list {
		if l := d.lane(h.Endpoint); l != nil {
			l.dueAt(now.Add(h.In))
		}
	}
	return nil
}

// warn logs an error that will pass, and reports whether there was none.
func (d *Dispatcher) warn(ctx context.Context, what string, err error) bool {
	if err != nil && ctx.Err() == nil {
		d.log.Warn(what, slog.String("error", err.Error()))
	}
	return err == nil
}

// written notes when what was put off is due.
func (d *Dispatcher) written(batch []webhook.Outcome, ok []bool) {
	now := time.Now()
	for i := range batch {
		o := &batch[i]
		if !ok[i] {
			d.log.Warn("lease lost: another process has the delivery", slog.String("endpoint", o.Endpoint))
			continue
		}
		l := d.lane(o.Endpoint)
		if l == nil {
			continue
		}
		if o.Kind == webhook.Dead {
			l.retryer.DeadLettered(context.Background(), o.Dead.Queue, o.Why)
		}
		switch o.Kind {
		case webhook.Retried, webhook.Postponed, webhook.Released:
			l.dueAt(now.Add(o.After))
		default:
			if o.OrderKey != "" {
				l.dueAt(now)
			}
		}
	}
	d.wake()
}

// relay empties the outbox.
func (d *Dispatcher) relay(ctx context.Context) {
	for ctx.Err() == nil {
		admit := d.admitter(ctx)
		done, err := d.cfg.Store.Relay(ctx, relayBatch, func(m *webhook.Message) (bool, error) {
			err := admit(m)
			return d.keepsOrder(m.Endpoints[0]), err
		})
		for _, l := range done.Dead {
			d.outbox.DeadLettered(ctx, l.Queue, forbear.ReasonTerminal)
		}
		d.stats.accepted.Add(int64(done.Accepted))
		if done.Rows > 0 {
			d.look()
		}
		if !d.warn(ctx, "outbox not read", err) || done.Rows == 0 {
			return
		}
	}
}

// reclaim takes back what dead processes held.
func (d *Dispatcher) reclaim(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.cfg.Store.Reclaim(ctx, relayBatch)
		if !d.warn(ctx, "lost leases not reclaimed", err) || n == 0 {
			return
		}
		d.log.Info("leases ran out", slog.Int("deliveries", n))
		d.look()
	}
}

// sweep deletes old history in small batches.
func (d *Dispatcher) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := d.cfg.Store.Sweep(ctx, d.cfg.Retention, relayBatch)
		if !d.warn(ctx, "history not swept", err) || n < relayBatch {
			return
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// overdue buries what could not be attempted within its total: deliveries to
// endpoints that are disabled or slowed.
func (d *Dispatcher) overdue(ctx context.Context) {
	for _, l := range d.all() {
		p := l.retryer.Policy()
		for ctx.Err() == nil {
			list, err := d.cfg.Store.Overdue(ctx, d.cfg.Owner, time.Duration(d.lease.Load()), cmp.Or(p.Total, 24*time.Hour), webhook.Lane{Endpoint: l.endpointID(), Max: overdueBatch})
			if !d.warn(ctx, "overdue deliveries not read", err) || len(list) == 0 {
				break
			}
			for i := range list {
				d.finish(d.expire(l, &list[i]))
			}
		}
	}
}
