package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// run is one event that this consumer has taken up.
type run struct {
	c     *Consumer
	e     Event
	p     Progress
	token idempotency.Token
}

// do calls the handler until it succeeds or the event must wait.
func (r *run) do(ctx context.Context, rec idempotency.Record) Decision {
	c, st := r.c, &r.p.State
	first := st.Attempt == 0
	if st.Start.IsZero() {
		st.Start = time.Now()
		if rec.Attempt > 1 {
			st.Start = rec.Created
		}
	}
	if first && r.p.Claims == 0 {
		st.Attempt = rec.Attempt // nobody kept count but the store
	}
	if crashes := rec.Attempt - 1 - r.p.Claims; !first && crashes >= c.Crashes {
		return r.dead(ctx, deadletter.ReasonCrashLoop, forbear.ReasonTerminal, forbear.Failure{Type: deadletter.ReasonCrashLoop}, fmt.Sprintf("%d handlers died on it", crashes))
	}
	if st.Attempt <= 1 {
		c.Retryer.Requested(time.Now())
	}
	r.p.Claims++
	if w := r.p.Pending; w != nil {
		f := forbear.Failure{Class: w.Class, Type: w.Type}
		d := c.Retryer.Next(st, f, time.Now())
		return r.after(ctx, d, f, d.Wait)
	}
	began := time.Now()
	for inPlace := 0; ; inPlace++ {
		if why := c.Retryer.Admit(st, time.Now()); why != forbear.ReasonNone {
			return r.putOff(ctx, why)
		}
		err := r.attempt(ctx)
		if err == nil {
			return r.done(ctx)
		}
		f := c.Retryer.Classify(ctx, err)
		if f.Class == forbear.ClassCanceled || errors.Is(err, idempotency.ErrFenced) {
			c.Retryer.Withdraw(st)
			return r.give(ctx, 0, "canceled", err)
		}
		now := time.Now()
		d := c.Retryer.Next(st, f, now)
		r.note(f, d)
		if !d.Retry || inPlace >= c.InPlace || now.Add(d.Wait).Sub(began) > c.InPlaceFor || !sleep(ctx, d.Wait) {
			return r.after(ctx, d, f, time.Until(now.Add(d.Wait)))
		}
	}
}

// after ends the claim as the decision about a failure demands.
func (r *run) after(ctx context.Context, d forbear.Decision, f forbear.Failure, wait time.Duration) Decision {
	r.p.Pending = nil
	switch {
	case d.Retry:
		return r.give(ctx, wait, f.Type, f.Err)
	case d.Reason == forbear.ReasonBudget, d.Reason == forbear.ReasonBreakerOpen, d.Reason == forbear.ReasonUnhealthy:
		r.p.Pending = &Pending{Class: f.Class, Type: f.Type}
		return r.putOff(ctx, d.Reason)
	default:
		return r.dead(ctx, d.Reason.String(), d.Reason, f, "")
	}
}

// sleep waits in place; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt calls the handler once, under a heartbeat and the attempt's timeout.
// A panic is an error that nobody knows.
func (r *run) attempt(ctx context.Context) (err error) {
	limit := r.c.Retryer.Policy().PerAttempt
	parent := ctx
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	go r.heartbeat(ctx, lose)
	began := time.Now()
	defer func() {
		if v := recover(); v != nil {
			err = forbear.Terminal(fmt.Errorf("handler panicked: %T", v))
		}
		switch {
		case err == nil:
			r.c.Retryer.Succeeded(&r.p.State, time.Since(began), time.Now())
		case errors.Is(context.Cause(ctx), idempotency.ErrFenced):
			err = errors.Join(idempotency.ErrFenced, err)
		case parent.Err() == nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
			err = forbear.Retryable(err, forbear.Hint{}) // the attempt's timeout, not the caller's
		}
	}()
	return r.c.handle(ctx, r.e)
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

// note adds the failed attempt to the history that a dead letter tells.
func (r *run) note(f forbear.Failure, d forbear.Decision) {
	const most = 20
	if len(r.p.History) == most {
		r.p.History = r.p.History[1:]
	}
	number := r.p.State.Attempt
	if d.Retry {
		number-- // the state is the next attempt's
	}
	r.p.History = append(r.p.History, deadletter.Attempt{Number: number, Claim: r.p.Claims, At: time.Now(), Wait: d.Wait, ErrorType: f.Type})
}

// end writes to the store on a context of its own.
func (r *run) end(ctx context.Context, write func(ctx context.Context) error) (err error) {
	for try := range endTries {
		time.Sleep(time.Duration(try) * 50 * time.Millisecond)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		err = write(limited)
		cancel()
		if err == nil || errors.Is(err, idempotency.ErrFenced) {
			return err
		}
	}
	return err
}

// done marks the event as processed; only then may it be acknowledged.
func (r *run) done(ctx context.Context) Decision {
	err := r.end(ctx, func(ctx context.Context) error {
		return r.c.Store.Complete(ctx, r.token, idempotency.Answer{Status: 200}, r.c.Window)
	})
	if err != nil {
		d := again(r.p, r.c.Lease, "store", err)
		d.Duplicate = false
		return d
	}
	return Decision{Action: Ack, Reason: "done"}
}

// give lets the event come again.
func (r *run) give(ctx context.Context, wait time.Duration, why string, cause error) Decision {
	err := r.end(ctx, func(ctx context.Context) error { return r.c.Store.Release(ctx, r.token) })
	d := again(r.p, max(wait, 0), why, cause)
	d.Duplicate = false
	if err != nil && !errors.Is(err, idempotency.ErrFenced) {
		d.Err = errors.Join(cause, err)
	}
	return d
}

// putOff lets the event come again without using up an attempt, up to the total
// duration.
func (r *run) putOff(ctx context.Context, why forbear.Reason) Decision {
	total := r.c.Retryer.Policy().Total
	if time.Since(r.p.State.Start)+postpone > total {
		return r.dead(ctx, forbear.ReasonDeadline.String(), forbear.ReasonDeadline, forbear.Failure{Type: why.String()}, "put off until its time ran out: "+why.String())
	}
	return r.give(ctx, postpone, why.String(), nil)
}

// dead puts the event into the dead-letter queue, and only then lets the source
// forget it.
func (r *run) dead(ctx context.Context, reason string, why forbear.Reason, f forbear.Failure, description string) Decision {
	if err := r.c.bury(ctx, &r.e, r.p, reason, why, f, description); err != nil {
		return r.give(ctx, soon, "dead_letter_queue", err)
	}
	err := r.end(ctx, func(ctx context.Context) error { return r.c.Store.Hold(ctx, r.token, buried) })
	return Decision{Action: DeadLettered, Reason: reason, Err: errors.Join(f.Err, err)}
}

// bury writes the letter. Its id follows from the event, so that a second time
// changes nothing.
func (c *Consumer) bury(ctx context.Context, e *Event, p Progress, reason string, why forbear.Reason, f forbear.Failure, description string) error {
	now := time.Now()
	l := deadletter.Letter{
		ID:    "dlq_" + idempotency.Digest(c.Group, e.Source, e.ID),
		Queue: c.Queue, Destination: c.Group, EventID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject, PartitionKey: e.Key, CorrelationID: e.CorrelationID,
		Payload: e.Data, ContentType: e.ContentType, Headers: e.Headers, Reason: reason, ErrorType: f.Type, Description: description,
		Policy: c.Retryer.Policy(), Attempts: max(p.State.Attempt, 0), MaxAttempts: c.Retryer.Policy().MaxRetries + 1, History: p.History,
		EnqueuedAt: cmp.Or(e.Time, now), DeadAt: now, State: deadletter.Dead,
	}
	if e.ID == "" || e.Source == "" {
		l.ID = "dlq_" + idempotency.Digest(c.Group, e.Source, e.ID, string(e.Data))
	}
	if n := len(p.History); n > 0 {
		l.FirstAttempt, l.LastAttempt = p.History[0].At, p.History[n-1].At
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := c.DLQ.Put(limited, l); err != nil {
		return err
	}
	c.Retryer.DeadLettered(ctx, c.Queue, why)
	return nil
}
