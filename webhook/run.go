package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	reloadEvery  = 5 * time.Second  // look at the endpoints
	overdueEvery = 30 * time.Second // look for what waits for too long
	sweepEvery   = 30 * time.Second
	headsEvery   = 25 * time.Millisecond // at most
	maxClaim     = 2000                  // deliveries at once
	relayBatch   = 500
	maxFinish    = 256
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
	var finishers, helpers, loops sync.WaitGroup
	for range 2 {
		finishers.Go(func() { d.finisher(background) })
	}
	chores, endChores := context.WithCancel(background)
	defer endChores()
	for range 2 {
		helpers.Go(func() {
			for f := range d.chores {
				f(chores)
			}
		})
	}
	loops.Go(func() { d.claimLoop(ctx) })
	loops.Go(func() { d.every(ctx, d.cfg.Poll/4, d.relay) })
	loops.Go(func() { d.every(ctx, d.leaseTime()/4, d.reclaim) })
	loops.Go(func() { d.every(ctx, sweepEvery, d.sweep) })
	loops.Go(func() { d.every(ctx, overdueEvery, d.overdue) })
	if w, ok := d.cfg.Store.(Waker); ok {
		loops.Go(func() {
			w.Wakes(ctx, func() {
				d.stale.Store(true)
				d.reload.Store(true)
				d.wake()
			})
		})
	}
	<-ctx.Done()
	close(d.stop)
	loops.Wait()
	for _, l := range d.all() {
		for _, dl := range l.drain() {
			d.finish(release(&dl, 0))
		}
	}
	d.workers.Wait()
	close(d.outcomes)
	finishers.Wait()
	time.AfterFunc(choresGrace, endChores)
	close(d.chores)
	helpers.Wait()
	d.abort()
	return nil
}

// leaseTime covers the longest attempt, the wait for a slot and the writing
// back.
func (d *Dispatcher) leaseTime() time.Duration {
	longest := 10 * time.Second
	for _, l := range d.all() {
		p := l.retryer.Policy()
		longest = max(longest, p.AttemptTimeout())
	}
	return longest + 10*time.Second
}

// every runs f at once and then at the interval.
func (d *Dispatcher) every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	for ctx.Err() == nil {
		f(ctx)
		pause(ctx, interval)
	}
}

// claimLoop takes due work for the lanes.
func (d *Dispatcher) claimLoop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked time.Time
	loaded := time.Now()
	for ctx.Err() == nil {
		if d.reload.Load() || time.Since(loaded) > reloadEvery {
			d.warn(ctx, "endpoints not read", d.Load(ctx))
			loaded = time.Now()
		}
		next := looked.Add(d.cfg.Poll)
		if d.stale.Load() {
			next = looked.Add(headsEvery)
		}
		if now := time.Now(); !now.Before(next) {
			d.stale.Store(false)
			if !d.warn(ctx, "due deliveries not read", d.heads(ctx)) {
				d.stale.Store(true)
			}
			looked = time.Now()
			next = looked.Add(d.cfg.Poll)
		}
		again, ok := d.claim(ctx)
		if !ok {
			pause(ctx, 100*time.Millisecond)
		}
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		if d.stale.Load() {
			next = earliest(next, looked.Add(headsEvery))
		}
		timer.Reset(max(time.Until(next), 0))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.wakes:
		}
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
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

// claim asks the lanes what they want, and takes it. It returns when it should
// be called again at the latest.
func (d *Dispatcher) claim(ctx context.Context) (again time.Time, ok bool) {
	now := time.Now()
	var lanes []*lane
	var wants []Lane
	total := 0
	for _, l := range d.all() { // in the random order of a map: nobody is first each time
		if total >= maxClaim {
			again = now
			break
		}
		n, next := l.want(now)
		if n > 0 {
			total += n
			lanes, wants = append(lanes, l), append(wants, Lane{l.ep.ID, n})
		} else if !next.IsZero() && (again.IsZero() || next.Before(again)) {
			again = next
		}
	}
	if len(wants) == 0 {
		return again, true
	}
	list, err := d.cfg.Store.Claim(ctx, d.cfg.Owner, d.leaseTime(), wants)
	if err != nil {
		for i, l := range lanes {
			l.take(nil, wants[i].Max)
		}
		d.stale.Store(true)
		return again, d.warn(ctx, "deliveries not claimed", err)
	}
	byEndpoint := make(map[string][]Delivery, len(lanes))
	for _, dl := range list {
		byEndpoint[dl.Endpoint] = append(byEndpoint[dl.Endpoint], dl)
	}
	for i, l := range lanes {
		got := byEndpoint[wants[i].Endpoint]
		l.take(got, wants[i].Max)
		if len(got) < wants[i].Max {
			d.stale.Store(true) // when is the next one due?
		}
	}
	return again, true
}

// warn logs an error that will pass, and reports whether there was none.
func (d *Dispatcher) warn(ctx context.Context, what string, err error) bool {
	if err != nil && ctx.Err() == nil {
		d.log.Warn(what, slog.String("error", err.Error()))
	}
	return err == nil
}

// finisher writes outcomes back, as many at once as there are.
func (d *Dispatcher) finisher(ctx context.Context) {
	for o := range d.outcomes {
		batch := []Outcome{o}
	gather:
		for len(batch) < maxFinish {
			select {
			case o, ok := <-d.outcomes:
				if !ok {
					break gather
				}
				batch = append(batch, o)
			default:
				break gather
			}
		}
		d.writeBack(ctx, batch)
	}
}

// writeBack does not give up early: what was sent would be sent again. After a
// while the lease has ended, and another process sees to it.
func (d *Dispatcher) writeBack(ctx context.Context, batch []Outcome) {
	deadline := time.Now().Add(5 * time.Minute)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		ok, err := d.cfg.Store.Finish(ctx, batch)
		if err == nil {
			d.written(batch, ok)
			return
		}
		d.log.Warn("outcomes not written back", slog.Int("deliveries", len(batch)), slog.String("error", err.Error()))
		if time.Now().After(deadline) || d.stopping() && wait > time.Second {
			d.log.Error("outcomes given up: the deliveries will be made again", slog.Int("deliveries", len(batch)))
			return
		}
		pause(ctx, wait)
	}
}

func (d *Dispatcher) written(batch []Outcome, ok []bool) {
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
		if o.Kind == Dead {
			l.retryer.DeadLettered(context.Background(), o.Dead.Queue, o.why)
		}
		switch o.Kind {
		case Retried, Postponed, Released:
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
		n, err := d.cfg.Store.Relay(ctx, relayBatch, d.order(), d.admit)
		if !d.warn(ctx, "outbox not read", err) || n == 0 {
			return
		}
		d.stats.accepted.Add(int64(n))
		d.stale.Store(true)
		d.wake()
		if n < relayBatch {
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
		d.stale.Store(true)
		d.wake()
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
			list, err := d.cfg.Store.Overdue(ctx, d.cfg.Owner, d.leaseTime(), cmp.Or(p.Total, 24*time.Hour), Lane{l.endpoint().ID, maxFinish})
			if !d.warn(ctx, "overdue deliveries not read", err) || len(list) == 0 {
				break
			}
			for i := range list {
				d.finish(d.expire(l, &list[i]))
			}
		}
	}
}
