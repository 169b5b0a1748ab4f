package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/wait"
)

// run is one claim of an event.
type run struct {
	c     *Consumer
	e     *Event
	rec   idempotency.Record
	token idempotency.Token
	p     progress
	last  bool // the event cannot come again: what is not done is dead
}

// begin runs the event under a heartbeat.
func (r *run) begin(ctx context.Context) Decision {
	ctx, lose := context.WithCancelCause(ctx)
	var beat sync.WaitGroup
	defer beat.Wait()
	defer lose(nil)
	beat.Go(func() { r.heartbeat(ctx, lose) })
	if d, ok := r.resume(ctx); !ok {
		return d
	}
	return r.do(ctx)
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
			_ = r.end(ctx, func(ctx context.Context) error { return c.Store.Release(ctx, r.token) })
			return again(soon(), "store", err), false
		}
		if r.p = p; !found {
			st.Start = r.rec.Created
		}
	}
	if st.Start.IsZero() {
		st.Start = time.Now()
	}
	crashes := r.rec.Attempt - 1 - r.p.Claims
	r.p.Claims = r.rec.Attempt
	if v := r.p.Verdict; v != nil {
		d := r.dead(ctx, v.Reason, v.why(), forbear.Failure{Type: v.Type}, v.Description)
		d.Duplicate = true
		return d, false
	}
	switch {
	case crashes >= c.Crashes:
		r.p.Made += crashes
		return r.dead(ctx, deadletter.ReasonCrashLoop, forbear.ReasonTerminal, forbear.Failure{Type: deadletter.ReasonCrashLoop}, fmt.Sprintf("%d processes died on it", crashes)), false
	case r.rec.Attempt > 1 && time.Since(st.Start) >= c.Retryer.Policy().Total:
		return r.dead(ctx, forbear.ReasonDeadline.String(), forbear.ReasonDeadline, forbear.Failure{Type: r.lastError()}, "came again too late"), false
	case time.Until(r.p.Due) > early && !r.last: // after a restart of the broker, say
		d := r.give(ctx, time.Until(r.p.Due), "early", nil)
		d.Duplicate = true
		return d, false
	}
	return d, true
}

func (r *run) lastError() string {
	if n := len(r.p.History); n > 0 {
		return r.p.History[n-1].ErrorType
	}
	return ""
}

// do calls the handler until it succeeds or the event must wait.
func (r *run) do(ctx context.Context) Decision {
	c, st := r.c, &r.p.State
	began := time.Now()
	for inPlace := 0; ; inPlace++ {
		if why := c.Retryer.Admit(st, time.Now()); why != forbear.ReasonNone {
			return r.putOff(ctx, why, 0)
		}
		if r.p.Pending != nil {
			if d, ok := r.reconsider(ctx); !ok {
				return d
			}
		}
		if st.Attempt == 0 {
			st.Attempt = 1
			c.Retryer.Requested(time.Now())
		}
		took, err := r.attempt(ctx)
		if err == nil {
			return r.done(ctx, took)
		}
		f := c.Retryer.Classify(ctx, err)
		if f.Class == forbear.ClassCanceled || errors.Is(context.Cause(ctx), idempotency.ErrFenced) {
			c.Retryer.Withdraw(st)
			return r.give(ctx, 0, "canceled", err)
		}
		now := time.Now()
		d := c.Retryer.Next(st, f, now)
		r.note(ctx, f, d, took, now)
		if !d.Retry || inPlace >= c.InPlace || now.Add(d.Wait).Sub(began) > c.InPlaceFor || !wait.Sleep(ctx, d.Wait) {
			return r.after(ctx, d, f, time.Until(now.Add(d.Wait)))
		}
	}
}

// reconsider asks again about a failure whose decision was put off. ok means
// that the attempt may be made now.
func (r *run) reconsider(ctx context.Context) (_ Decision, ok bool) {
	now := time.Now()
	w := r.p.Pending
	f := w.failure(now)
	d := r.c.Retryer.Reconsider(&r.p.State, f, now)
	wait := max(w.At.Add(d.Wait).Sub(now), w.Until.Sub(now)) // the backoff counts from the failure
	if d.Retry {
		r.decided(ctx, d, f, now)
	}
	if d.Retry && wait <= 0 {
		r.p.Pending = nil
		return Decision{}, true
	}
	r.c.Retryer.Withdraw(&r.p.State)
	return r.after(ctx, d, f, wait), false
}

// after ends the claim as the decision about a failure demands.
func (r *run) after(ctx context.Context, d forbear.Decision, f forbear.Failure, wait time.Duration) Decision {
	switch {
	case d.Retry:
		r.p.Pending = nil
		return r.give(ctx, wait, f.Type, f.Err)
	case d.Reason.Momentary():
		now := time.Now()
		if r.p.Pending == nil {
			r.p.Pending = &pending{Class: f.Class, Type: f.Type, At: now, Until: now.Add(f.Hint.Floor)}
		}
		return r.putOff(ctx, d.Reason, f.Hint.Floor)
	default:
		return r.dead(ctx, d.Reason.String(), d.Reason, f, "")
	}
}

// named is ctx with the names under which the event is logged.
func (r *run) named(ctx context.Context) context.Context {
	if forbear.CorrelationID(ctx) == "" {
		ctx = forbear.WithCorrelationID(ctx, cmp.Or(r.e.CorrelationID, r.e.ID))
	}
	return ctx
}

// attempt calls the handler once, within the attempt's timeout. A panic is an
// error that is final.
func (r *run) attempt(ctx context.Context) (took time.Duration, err error) {
	policy := r.c.Retryer.Policy()
	limit := min(policy.AttemptTimeout(), max(policy.Total-time.Since(r.p.State.Start), 1)) // the total is hard
	if r.p.State.Probe() {
		limit /= 2 // INTG-STD-033
	}
	parent := ctx
	r.p.Made++
	ctx = context.WithValue(r.named(ctx), attemptKey{}, attemptInfo{r.p.Made, r.rec.Fence})
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	defer func() {
		took = time.Since(began)
		if v := recover(); v != nil {
			err = forbear.Terminal(fmt.Errorf("handler panicked: %T", v))
		}
		switch {
		case err == nil:
			r.c.Retryer.Succeeded(&r.p.State, took, time.Now())
		case parent.Err() == nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
			err = forbear.Retryable(err, forbear.Hint{}) // the attempt's timeout, not the caller's
		}
	}()
	return 0, r.c.handle(ctx, *r.e)
}

func (r *run) heartbeat(ctx context.Context, lose func(error)) {
	tick := time.NewTicker(r.c.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		limited, cancel := context.WithTimeout(ctx, r.c.Lease/3)
		err := r.c.Store.Renew(limited, r.token, r.c.Lease)
		cancel()
		if errors.Is(err, idempotency.ErrFenced) && ctx.Err() == nil {
			lose(idempotency.ErrFenced)
			return
		}
	}
}

// note tells of a failed attempt and of what follows it, and adds it to the
// history that a dead letter tells.
func (r *run) note(ctx context.Context, f forbear.Failure, d forbear.Decision, took time.Duration, now time.Time) {
	r.c.Retryer.Attempted(r.named(ctx), r.info(ctx), f, took)
	r.decided(ctx, d, f, now)
	const most = 20
	if len(r.p.History) == most {
		r.p.History = r.p.History[1:]
	}
	r.p.History = append(r.p.History, deadletter.Attempt{Number: r.p.Made, Claim: r.p.Claims, At: now, Took: took, Wait: d.Wait, ErrorType: f.Type})
}

// decided tells what follows the latest failed attempt. A retry that is
// put off does not end the event.
func (r *run) decided(ctx context.Context, d forbear.Decision, f forbear.Failure, now time.Time) {
	attempts := r.p.Made
	if d.Reason.Momentary() {
		attempts = 0
	}
	r.c.Retryer.Decided(r.named(ctx), r.info(ctx), d, f, now.Sub(r.p.State.Start), attempts, now)
}

// info names the latest attempt.
func (r *run) info(ctx context.Context) forbear.Info {
	i := r.c.Retryer.Info(&r.p.State, forbear.CorrelationID(r.named(ctx)))
	i.Attempt, i.IdempotencyKey = r.p.Made, r.e.ID
	return i
}
