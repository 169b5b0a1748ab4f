package consume

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/reason"
)

// write writes progress to the store on a context of its own: what an attempt came
// to must be recorded even while the process is being stopped. A lost fence
// ends it, since another run holds the event.
func (r *run) write(ctx context.Context, write func(ctx context.Context) error) error {
	return wait.Persist(func() error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		return write(limited)
	}, func(err error) bool { return errors.Is(err, idempotency.ErrFenced) })
}

// processed is what the record of an event says that is done.
var processed = idempotency.Response{Status: 200}

// ends is the end of the claim that the run is under.
func (r *run) ends(d idempotency.Disposition) idempotency.Ending { return r.claimed.Ends(r.rec, d) }

// end ends the claim. One that the store does not take the backlog keeps.
func (r *run) end(ctx context.Context, d idempotency.Disposition) error {
	e := r.ends(d)
	switch d {
	case idempotency.Keep:
		e.Response = processed
	case idempotency.Hold:
		e.Note = idempotency.DeadLetterNote
	case idempotency.Retry:
	}
	_, err := r.c.Backlog.End(ctx, e)
	return err
}

// done marks the event as processed; only then may it be acknowledged. A mark that
// waits in the backlog will do: the event has had its effect, and to handle it again
// would be worse than to forget, with this process, that it was handled.
func (r *run) done(ctx context.Context) Decision {
	if !r.committed {
		if err := r.end(ctx, idempotency.Keep); err != nil {
			return comeAgain(r.c.Lease, "store", err)
		}
	}
	r.c.redriven(ctx, r.e, deadletter.RedriveDelivered)
	return Decision{Action: Ack, Reason: "done"}
}

// comeAgain is a RetryAt of an event whose handler was called.
func comeAgain(wait time.Duration, why string, err error) Decision {
	d := again(max(wait, 0), why, err)
	d.Duplicate = false
	return d
}

// give lets the event come again.
func (r *run) give(ctx context.Context, wait time.Duration, why string, cause error) Decision {
	if r.last && ctx.Err() == nil {
		return r.dead(ctx, reason.Exhausted.String(), reason.Exhausted, forbear.Failure{Type: why, Err: cause}, "the redrive failed")
	}
	// First what the next claim has to know, then the leave for it.
	if r.p.Due = time.Now().Add(wait); r.p.Verdict != nil {
		r.p.Due = time.Time{}
	}
	err := r.write(ctx, func(ctx context.Context) error { return r.c.keep(ctx, r.e, &r.rec, r.stored()) })
	err = errors.Join(err, r.end(ctx, idempotency.Retry))
	d := comeAgain(wait, why, cause)
	if err != nil && !errors.Is(err, idempotency.ErrFenced) {
		d.Err = errors.Join(cause, err)
	}
	return d
}

// stored returns what the next claim has to know.
func (r *run) stored() progress {
	r.p.Progress = r.call.Progress
	return r.p
}

// dead puts the event into the dead-letter queue, and only then lets the source
// forget it.
func (r *run) dead(ctx context.Context, reason string, why forbear.Reason, f forbear.Failure, description string) Decision {
	r.last = false
	if err := r.c.deadLetter(ctx, r.e, r.c.letter(r.e, r.stored(), reason, f, description), why); err != nil {
		r.p.Verdict = &verdict{Reason: reason, Type: f.Type, Description: description}
		return r.give(ctx, soon(), "dead_letter_queue", errors.Join(f.Err, err))
	}
	r.rest() // a heartbeat behind the hold would take it back
	// A redrive begins with a fresh count.
	err := r.write(ctx, func(ctx context.Context) error { return r.c.keep(ctx, r.e, &r.rec, progress{Claims: r.rec.Attempt}) })
	err = errors.Join(err, r.end(ctx, idempotency.Hold))
	return Decision{Action: DeadLettered, Reason: reason, Err: errors.Join(f.Err, err)}
}
