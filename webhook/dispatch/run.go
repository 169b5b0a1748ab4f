package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

const (
	abandonEvery = 5 * time.Second        // look for what waits for a deleted endpoint
	overdueEvery = 30 * time.Second       // look for what waits for too long
	sweepEvery   = 30 * time.Second       // delete old history
	headsEvery   = 25 * time.Millisecond  // read what is due, at most
	headsRetry   = 100 * time.Millisecond // when the store could not be read
)

// Run delivers until ctx ends. Then it takes nothing more, lets the attempts
// under way finish and be written back, and returns what it holds to the store.
// Attempts that outlast their timeout are cut off. It runs once: a dispatcher that
// has ended does not start again. The error is that of its first look at the endpoints,
// where [Dispatcher.Load] has not read them before: a store that is away for a moment
// later on is asked again.
//
// The order of the end matters. Polls end first, since they make work. Then the
// last claim has to be with its receivers, the buffers are emptied, and the workers
// finish; only then is no outcome to come any more, and the loop ends when it has
// written the last. Alerts may be raised until then, so that chores end last.
func (d *Dispatcher) Run(ctx context.Context) error {
	err := d.parts[partEndpoints].Do(func() error { return d.Load(ctx) })
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil
	case !d.loaded():
		return err
	default:
		d.warn(ctx, "endpoints not read", err) // the scout reads them again
	}
	d.warn(ctx, "state of endpoints not read from other processes", d.learn(ctx))
	d.members.Store(&members{began: true})
	d.beat(ctx)
	var main, polls sync.WaitGroup
	quiet := make(chan struct{})
	main.Go(func() { (&loop{d: d}).run(ctx, quiet) })
	endChores := d.startChores(context.WithoutCancel(ctx))
	polls.Go(func() { d.scout(ctx) })
	polls.Go(func() { d.beats(ctx) })
	polls.Go(func() { d.shares(ctx) })
	polls.Go(func() { d.watchOutbox(ctx) })
	polls.Go(func() { every(ctx, time.Duration(d.lease.Load())/4, d.reclaim) })
	polls.Go(func() { every(ctx, sweepEvery, d.sweep) })
	polls.Go(func() { every(ctx, sweepEvery, d.forgetSecrets) })
	polls.Go(func() { every(ctx, overdueEvery, d.overdue) })
	polls.Go(func() { every(ctx, abandonEvery, d.abandon) })
	polls.Go(func() { every(ctx, tallyEvery, d.storeTallies) })
	if w, ok := d.cfg.Store.(store.Waker); ok {
		polls.Go(func() {
			w.Wakes(ctx, d.look)
		})
	}
	<-ctx.Done()
	close(d.stop)
	polls.Wait()
	<-quiet // the last claim is with the receivers
	for _, r := range d.receivers.all() {
		for _, j := range r.drain() {
			j.release(0)
		}
	}
	d.workers.Wait()
	close(d.outcomes)
	main.Wait()
	d.rewriting.Wait()
	d.chore(d.shareAll)
	d.chore(d.storeTallies)
	d.chore(d.leave)
	endChores()
	d.abort()
	return nil
}

// every runs f at once and then at the interval, which counts from the end of f: a
// slow store is not asked more often than it can say.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	for ctx.Err() == nil {
		f(ctx)
		wait.Sleep(ctx, interval)
	}
}

// scout reads what other processes have changed of the endpoints and looks for
// work that the receivers do not know of, apart from the main loop, which does not wait
// for it. It reads when something has hinted at work, and now and then without:
// hints from other processes may be lost.
func (d *Dispatcher) scout(ctx context.Context) {
	for ctx.Err() == nil {
		d.do(ctx, partEndpoints, "endpoints not read", func() error { return d.Load(ctx) })
		d.do(ctx, partHolds, "state of endpoints not read from other processes", func() error { return d.learn(ctx) })
		pause := headsRetry
		if d.do(ctx, partDue, "due deliveries not read", func() error { return d.heads(ctx) }) {
			pause = d.cfg.Poll
		}
		d.wake()
		wait.Woken(ctx, pause, d.looks)
		wait.Sleep(ctx, headsEvery)
	}
}

// heads learns from the store which endpoints have work, and when.
func (d *Dispatcher) heads(ctx context.Context) error {
	list, err := d.cfg.Store.NextDues(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, h := range list {
		d.dueAt(h.Endpoint, now.Add(h.In))
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
