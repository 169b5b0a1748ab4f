package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/webhook/store"
)

const (
	// maxClaim bounds the deliveries that are claimed at once: they are in memory,
	// under leases that run.
	maxClaim = 2000
	// A receiver that found less than it wanted, though more is due, is not asked
	// again at once: another process is about to take it.
	breath = 5 * time.Millisecond
	// stumble is the ceiling of the wait after a step that the store refused.
	stumble = 200 * time.Millisecond
)

// claim is what the receivers want of the store: one entry of specs for each.
type claim struct {
	of    []*receiver
	specs []store.Lane
	again time.Time // when to ask again; zero: when something happens
}

// wants asks the receivers on the agenda.
func (d *Dispatcher) wants() (c claim) {
	if d.paused.Load() {
		return claim{}
	}
	now, total := time.Now(), 0
	asked := d.agenda.take()
	for i, id := range asked {
		if total >= maxClaim {
			d.agenda.ask(asked[i:]...)
			c.again = now
			break
		}
		r := d.receiver(id)
		if r == nil {
			continue
		}
		switch n, next := r.want(now); {
		case n > 0:
			total += n
			c.of, c.specs = append(c.of, r), append(c.specs, store.Lane{Endpoint: id, Max: n})
		case !next.IsZero():
			r.askAt(next)
		}
	}
	return c
}

// Pause makes the dispatcher claim nothing more, until it ends: another process has
// taken over. It goes on accepting messages, which that one will find, and sends what
// it has claimed already. It may be called at any time, and more than once.
func (d *Dispatcher) Pause() {
	d.paused.Store(true)
	signal(d.joins) // its part of each rate is the others'
}

// earliest returns the earlier of two times; a zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// step writes outcomes back and claims, in one step of the store. When it fails,
// the receivers may want again, and the outcomes are written apart from the loop,
// which goes on: the next claim may well succeed.
func (d *Dispatcher) step(ctx context.Context, c claim, back []store.WriteBack) {
	part := partClaims
	if len(back) > 0 {
		part = partOutcomes
	}
	done, err := d.inStore(ctx, part, store.Step{WriteBacks: back, Owner: d.cfg.Owner, Lease: time.Duration(d.lease.Load()), Lanes: c.specs})
	if err == nil {
		d.written(back, done.OK)
		d.hand(c, &done)
		return
	}
	back = d.unwritten(back, done.OK)
	for i, r := range c.of {
		r.take(nil, c.specs[i].Max) // gives the rate back
	}
	d.look() // what is due is to be asked again
	if len(back) > 0 {
		d.rewriting.Go(func() { d.rewrite(ctx, back, err) })
	} else {
		d.warn(ctx, "deliveries not claimed", err)
	}
	wait.Sleep(ctx, wait.Jitter(stumble))
}

// inStore makes a step of the store, as that part.
func (d *Dispatcher) inStore(ctx context.Context, part int, s store.Step) (store.StepResult, error) {
	return pulse.Get(&d.parts[part], func() (store.StepResult, error) { return d.cfg.Store.WriteBackAndClaim(ctx, s) })
}

// hand gives the receivers what was claimed for them. Each that wanted gets its
// share, if only an empty one, so that its rate is right.
func (d *Dispatcher) hand(c claim, done *store.StepResult) {
	claimed := make(map[string][]*store.Delivery, len(c.of))
	for i := range done.Claimed {
		dl := &done.Claimed[i]
		claimed[dl.Endpoint] = append(claimed[dl.Endpoint], dl)
	}
	now := time.Now()
	for i, r := range c.of {
		got := claimed[r.id]
		more := len(got) == c.specs[i].Max
		r.take(slices.DeleteFunc(got, func(dl *store.Delivery) bool {
			if dl.Unreadable != nil {
				r.postpone(dl)
			}
			return dl.Unreadable != nil
		}), c.specs[i].Max)
		if more {
			r.dueAt(now) // there may be more
		}
	}
	for _, h := range done.Next {
		d.dueAt(h.Endpoint, now.Add(max(h.In, breath)))
	}
}
