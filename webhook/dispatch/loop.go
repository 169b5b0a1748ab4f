package dispatch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

const (
	maxClaim  = 2000 // deliveries at once
	maxFinish = 1024 // outcomes at once
	// An outcome waits this long for company, unless there are enough: what
	// shares a turn shares its wait for the disk.
	lull   = 4 * time.Millisecond
	enough = 64
	// A lane that found less than it wanted, though more is due, is not asked
	// again at once: another process is about to take it.
	breath = 5 * time.Millisecond
)

// maxBack is how many turns may be writing outcomes back at a time.
const maxBack = 2

// turns is the main loop. Each turn writes back the outcomes that there are and
// takes due work for the lanes that want some. The loop does not wait for its
// turns: a claim may be under way, and a few that write back, while the next
// outcomes gather. When ctx ends it takes nothing more and, once nothing is
// being taken, closes quiet; when there are no more outcomes to come it returns.
func (d *Dispatcher) turns(ctx context.Context, quiet chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	background := context.WithoutCancel(ctx)
	var claiming atomic.Bool
	var writing atomic.Int32
	var under sync.WaitGroup
	defer under.Wait()
	var first time.Time // when the first of back came
	var back []webhook.Outcome
	for open := true; open || len(back) > 0; {
		over := ctx.Err() != nil // asked once: it may end at any moment
		if back, open = d.gather(back, open); !open && len(back) == 0 {
			break
		}
		if len(back) > 0 && first.IsZero() {
			first = time.Now()
		}
		var w wanted
		switch {
		case claiming.Load():
		case !over:
			w = d.wants()
		case quiet != nil:
			close(quiet)
			quiet = nil
		}
		var now []webhook.Outcome // of this turn
		if free := writing.Load() < maxBack; free && (ripe(back, first) || !open) {
			now, back, first = back, nil, time.Time{}
		} else if free && len(back) > 0 && (w.again.IsZero() || first.Add(lull).Before(w.again)) {
			w.again = first.Add(lull)
		}
		if len(w.lanes) == 0 && len(now) == 0 {
			ended := ctx.Done()
			if over {
				ended = nil
			}
			back, open = d.await(ended, timer, w.again, back, open)
			continue
		}
		if len(w.lanes) > 0 {
			claiming.Store(true)
		}
		if len(now) > 0 {
			writing.Add(1)
		}
		under.Go(func() {
			d.turn(background, w, now)
			if len(w.lanes) > 0 {
				claiming.Store(false)
			}
			if len(now) > 0 {
				writing.Add(-1)
			}
			d.wake()
		})
	}
}

// gather takes the outcomes that are there. open is false when no more will
// come.
func (d *Dispatcher) gather(back []webhook.Outcome, open bool) ([]webhook.Outcome, bool) {
	for open && len(back) < maxFinish {
		select {
		case o, ok := <-d.outcomes:
			if !ok {
				return back, false
			}
			back = append(back, o)
		default:
			return back, true
		}
	}
	return back, open
}

// ripe reports whether outcomes are worth a turn.
func ripe(back []webhook.Outcome, first time.Time) bool {
	// Others wait behind one whose key they share.
	return len(back) >= enough || len(back) > 0 && time.Since(first) >= lull ||
		slices.ContainsFunc(back, func(o webhook.Outcome) bool { return o.OrderKey != "" })
}

// await waits for something to do: an outcome, a wake, the time again, the end.
func (d *Dispatcher) await(ended <-chan struct{}, timer *time.Timer, again time.Time, back []webhook.Outcome, open bool) ([]webhook.Outcome, bool) {
	var late <-chan time.Time
	if !again.IsZero() {
		timer.Reset(max(time.Until(again), 0))
		late = timer.C
	}
	outcomes := d.outcomes
	if !open || len(back) >= maxFinish {
		outcomes = nil
	}
	for {
		select {
		case o, ok := <-outcomes:
			if !ok {
				return back, false
			}
			if back = append(back, o); len(back) == 1 || len(back) == enough || len(back) >= maxFinish || o.OrderKey != "" {
				return back, true
			}
		case <-late:
			return back, open
		case <-d.wakes:
			return back, open
		case <-ended:
			return back, open
		}
	}
}

// wanted is what the lanes can take.
type wanted struct {
	lanes []*lane
	specs []webhook.Lane
	again time.Time // when to ask again at the latest; zero: when something happens
}

// wants asks the lanes.
func (d *Dispatcher) wants() (w wanted) {
	now := time.Now()
	total := 0
	for _, l := range d.all() { // in the random order of a map: nobody is first each time
		if total >= maxClaim {
			w.again = now
			break
		}
		n, next := l.want(now)
		if n > 0 {
			total += n
			w.lanes, w.specs = append(w.lanes, l), append(w.specs, webhook.Lane{Endpoint: l.endpointID(), Max: n})
		} else if !next.IsZero() && (w.again.IsZero() || next.Before(w.again)) {
			w.again = next
		}
	}
	return w
}

// turn makes one turn. When it fails, the outcomes belong to somebody else.
func (d *Dispatcher) turn(ctx context.Context, w wanted, back []webhook.Outcome) {
	done, err := d.cfg.Store.Turn(ctx, webhook.Turn{Outcomes: back, Owner: d.cfg.Owner, Lease: time.Duration(d.lease.Load()), Lanes: w.specs})
	if err == nil {
		d.written(back, done.OK)
		d.hand(w, &done)
		return
	}
	for i, l := range w.lanes {
		l.take(nil, w.specs[i].Max)
	}
	d.look() // what is due is to be asked again
	if len(back) > 0 {
		d.behind.Go(func() { d.writeBack(ctx, back, err) })
	} else {
		d.warn(ctx, "deliveries not claimed", err)
	}
	pause(ctx, 100*time.Millisecond)
}

// hand gives the lanes what was claimed for them.
func (d *Dispatcher) hand(w wanted, done *webhook.Turned) {
	claimed := make(map[string][]*webhook.Delivery, len(w.lanes))
	for i := range done.Claimed {
		dl := &done.Claimed[i]
		claimed[dl.Endpoint] = append(claimed[dl.Endpoint], dl)
	}
	now := time.Now()
	for i, l := range w.lanes {
		got := claimed[w.specs[i].Endpoint]
		if l.take(got, w.specs[i].Max); len(got) == w.specs[i].Max {
			l.dueAt(now) // there may be more
		}
	}
	for _, h := range done.Next {
		if l := d.lane(h.Endpoint); l != nil {
			l.dueAt(now.Add(max(h.In, breath)))
		}
	}
}

// writeBack tries again what failed. It does not give up early: what was sent
// would be sent again. After a while the lease has ended, and another process
// sees to it.
func (d *Dispatcher) writeBack(ctx context.Context, back []webhook.Outcome, err error) {
	deadline := time.Now().Add(5 * time.Minute)
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		d.log.Warn("outcomes not written back", slog.Int("deliveries", len(back)), slog.String("error", err.Error()))
		if time.Now().After(deadline) || d.stopping() && wait > time.Second {
			d.log.Error("outcomes given up: the deliveries will be made again", slog.Int("deliveries", len(back)))
			return
		}
		pause(ctx, jitter(wait))
		var done webhook.Turned
		if done, err = d.cfg.Store.Turn(ctx, webhook.Turn{Outcomes: back}); err == nil {
			d.written(back, done.OK)
			return
		}
	}
}
