package consume

import (
	"cmp"
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/reason"
)

// run is one claim of an event.
type run struct {
	c       *Consumer
	e       *Event
	claimed idempotency.Claim
	rec     idempotency.Record
	call    *edge.DurableCall // the event, as the engine knows it
	p       progress          // what is stored of it; see stored
	last    bool              // the event cannot come again: what is not done is dead
	rest    func()            // ends the heartbeat: none is on its way afterwards
	over    func()            // ends the run

	canceled <-chan struct{} // of the run's context
	late     chan error      // how a handler ends that was left behind, see leave; nil: none was

	// Of [Options.Transaction].
	tx        *attemptTx // of the attempt that is about to begin
	committed bool       // with the end of the event
	unsure    error      // why it is not known whether the event is done
}

// begin runs the event under a heartbeat. ready returns when the handler may be called.
func (r *run) begin(ctx context.Context, ready func()) Decision {
	ctx, lose := context.WithCancelCause(r.named(ctx))
	r.rest = wait.Every(r.c.Lease/3, func() time.Duration { return r.beat(ctx, lose) })
	r.canceled = ctx.Done()
	r.over = func() { r.rest(); lose(nil) }
	d, ok := r.resume(ctx)
	ready()
	if ok {
		d = r.do(ctx)
	}
	if r.late == nil {
		r.over()
	}
	return d
}

// early is how much too early an event may come.
const early = 50 * time.Millisecond

// resume learns how far the event is. ok is false when that is all there is to
// do now.
func (r *run) resume(ctx context.Context) (d Decision, ok bool) {
	c, st := r.c, &r.p.State
	if r.rec.Attempt > 1 {
		p, found, err := c.load(ctx, r.e, &r.rec)
		if err != nil {
			_ = r.end(ctx, idempotency.Retry)
			return again(soon(), "store", err), false
		}
		if r.p = p; !found {
			st.Start = r.rec.Created
		}
	}
	if st.Start.IsZero() {
		st.Start = time.Now()
	}
	st.Key = r.e.ID // as which it is logged
	r.call = edge.Durable(r.named(ctx), c.Retryer, r.p.Progress)
	crashes := r.crashes()
	if v := r.p.Verdict; v != nil {
		d := r.dead(ctx, v.Reason, v.why(), forbear.Failure{Type: v.Type}, v.Description)
		d.Duplicate = true
		return d, false
	}
	switch {
	case crashes >= c.Crashes:
		return r.crashLoop(ctx, crashes), false
	case time.Until(r.p.Due) > early && !r.last: // after a restart of the broker, say
		d := r.give(ctx, time.Until(r.p.Due), "early", nil)
		d.Duplicate = true
		return d, false
	}
	return d, true
}

// do calls the handler until it succeeds or the event must wait for longer than a
// moment.
func (r *run) do(ctx context.Context) Decision {
	began, inPlace := time.Now(), 0
	for {
		earned := r.call.Earned()
		d, err := r.call.Ask(r.named(ctx), time.Now()), error(nil)
		if d.Retry && d.Wait == 0 {
			if err := r.open(ctx); err != nil {
				return r.unopened(ctx, err)
			}
			d, err = r.attempt(ctx)
		}
		if r.late != nil {
			return r.leave(ctx, d, err)
		}
		if r.unsure != nil { // the record shows it when the event comes again
			return comeAgain(r.c.Lease, "store", r.unsure)
		}
		due := time.Now().Add(d.Wait)
		left := r.c.InPlaceFor - due.Sub(began)
		switch {
		case r.c.InPlace < 0:
		case d.Retry && inPlace < r.c.InPlace && left >= 0 && slots.Wait(ctx, d.Wait, nil):
			inPlace++
			continue
		case !d.Retry && d.Reason.Momentary() && slots.In(ctx) && r.stay(ctx, d.Reason, left, earned):
			if d.Reason == reason.BreakerOpen {
				began = time.Now() // it was not the event that took the time
			}
			continue
		}
		return r.after(ctx, d, err, time.Until(due))
	}
}

// stay waits in a pool for the end of a refusal of the moment, and reports whether
// it is worth asking again.
//
// Behind an open breaker the event keeps its slot, so that the adapter fetches
// nothing that cannot be done; giving it back would cost the store and the broker a
// write for each event, again and again until the outage is over. Other refusals end
// with the dependency's next success, within what is left of the time in place.
func (r *run) stay(ctx context.Context, why forbear.Reason, left time.Duration, earned <-chan struct{}) bool {
	if why == reason.BreakerOpen {
		return r.c.Ready(ctx) == nil
	}
	return left > 0 && slots.Wait(ctx, min(left, time.Second), earned)
}

// attempt calls the handler once, and adds a failure to the history that a dead
// letter shows.
func (r *run) attempt(ctx context.Context) (forbear.Decision, error) {
	ctx = context.WithValue(r.named(ctx), attemptKey{}, attemptInfo{r.call.Attempts + 1, r.rec.Fence})
	began := time.Now()
	d, err := r.call.Try(ctx, r.work)
	if err == nil || d.Reason == reason.Canceled || d.Retry && d.Reason.Momentary() {
		return d, err // a success, or no attempt
	}
	c := deadletter.CauseOf(forbear.Failure{Class: d.Class, Type: r.call.Last, Err: err})
	a, now := c.Failed(), time.Now()
	a.Number, a.Claim, a.At, a.Took, a.Wait = r.call.Attempts, r.p.Claims, now, now.Sub(began), d.Wait
	r.p.History, r.p.Cause = deadletter.Append(r.p.History, a), &c
	return d, err
}

// after ends the claim as the engine's decision demands. No slot is needed for that.
func (r *run) after(ctx context.Context, d forbear.Decision, err error, wait time.Duration) Decision {
	slots.Leave(ctx)
	switch f := (forbear.Failure{Type: r.call.Last, Err: err}); {
	case d.Reason == reason.Success:
		return r.done(ctx)
	case d.Reason == reason.Canceled:
		return r.give(ctx, 0, "canceled", err)
	case d.Retry && d.Reason.Momentary(): // by another dependency, see [edge.DurableCall.Try]
		return r.give(ctx, wait, d.Reason.String(), err)
	case d.Retry:
		return r.give(ctx, wait, f.Type, err)
	case d.Reason.Momentary():
		return r.postpone(ctx, d, f)
	case err == nil && d.Reason == reason.Deadline:
		return r.dead(ctx, d.Reason.String(), d.Reason, f, "delivered again too late")
	default:
		return r.dead(ctx, d.Reason.String(), d.Reason, f, "")
	}
}

// postpone lets the event come again without using up an attempt, up to the total
// duration.
func (r *run) postpone(ctx context.Context, d forbear.Decision, f forbear.Failure) Decision {
	now, why := time.Now(), d.Reason.String()
	away := r.call.Postpone(r.named(ctx), d, now)
	if now.Sub(r.call.State.Start)+away > r.c.Retryer.Policy().Total {
		_ = r.call.GiveUp(r.named(ctx), reason.Deadline, now)
		return r.dead(ctx, reason.Deadline.String(), reason.Deadline, forbear.Failure{Type: cmp.Or(f.Type, why)}, "postponed until its total duration ended: "+why)
	}
	return r.give(ctx, away, why, nil)
}

// named is ctx with the trace of the event and the names under which it is logged.
func (r *run) named(ctx context.Context) context.Context {
	t := edge.TraceContextFrom(ctx)
	if t == (edge.TraceContext{}) {
		if t = r.e.TraceContext(); t != (edge.TraceContext{}) {
			ctx = edge.WithTraceContext(ctx, t)
		}
	}
	if edge.CorrelationID(ctx) == "" {
		ctx = forbear.WithCorrelationID(ctx, cmp.Or(r.e.CorrelationID, t.TraceID(), r.e.ID))
	}
	return ctx
}
