package consume

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
	"github.com/forbear-go/forbear/reason"
)

// endTimeout bounds each write of an event's end: it goes on after ctx ends,
// and a shutdown must not wait forever.
const (
	endTimeout   = 2 * time.Second
	topicTimeout = 5 * time.Second // a broker confirms what its disks have
	minLease     = 100 * time.Millisecond
)

// Consumer processes events. Make it with [New]. It is safe for concurrent use.
type Consumer struct {
	Options
	handle Handler
	keys   keys
	left   atomic.Int32 // handlers that were left behind
	full   atomic.Int32 // sources that bring nothing
}

// Consume processes one event. It returns when the event is done, or must wait
// for longer than a moment. Nothing that it decides is lost when ctx ends: the
// event comes again, and the store knows how far it was.
func (c *Consumer) Consume(ctx context.Context, e Event) Decision {
	d := c.consume(ctx, &e)
	c.Observe(e, d)
	return d
}

func (c *Consumer) consume(ctx context.Context, e *Event) Decision {
	if e.ID == "" || e.Source == "" {
		return c.poison(ctx, e, deadletter.ReasonInvalid, "the event has no id or no source")
	}
	if !c.Ordered || e.Key == "" {
		return c.claim(ctx, e, false)
	}
	d, free := c.turn(ctx, e)
	if !free {
		return d
	}
	d = c.claim(ctx, e, false)
	c.keys.leave(e.Key, d)
	return d
}

// Ready waits while the circuit breaker of the handler's dependency is open. An
// adapter asks before it takes up an event, so that its broker keeps what cannot
// be done. The error is that of ctx.
func (c *Consumer) Ready(ctx context.Context) error { return edge.Ready(ctx, c.Retryer) }

// Poison puts an event that cannot be processed, such as one that could not be
// decoded, into the dead-letter queue at once. Until that has worked, the
// decision is to come again.
func (c *Consumer) Poison(ctx context.Context, e Event, why, description string) Decision {
	d := c.poison(ctx, &e, why, description)
	c.Observe(e, d)
	return d
}

func (c *Consumer) poison(ctx context.Context, e *Event, why, description string) Decision {
	l := c.letter(e, progress{}, why, forbear.Failure{Type: why}, description)
	if err := c.deadLetter(ctx, e, l, reason.Terminal); err != nil {
		return again(soon(), "dead_letter_queue", err)
	}
	return Decision{Action: DeadLettered, Reason: why, Duplicate: true}
}

func (c *Consumer) id(e *Event) idempotency.ID {
	return idempotency.ID{Scope: idempotency.EventScope + c.Group, Key: idempotency.Digest(e.Source, e.ID)}
}

// claim takes the event up, unless another run has it. last says that it
// cannot come again.
func (c *Consumer) claim(ctx context.Context, e *Event, last bool) Decision {
	id := c.id(e)
	if e.Redrive {
		if rec, err := c.Store.Get(ctx, id); err == nil && rec.State == idempotency.Held && rec.Note == idempotency.DeadLetterNote {
			if err := c.Store.Resolve(ctx, id, idempotency.Resolution{By: "redrive", Why: idempotency.DeadLetterNote}); err != nil && !errors.Is(err, idempotency.ErrNotHeld) {
				return again(soon(), "store", err)
			}
		}
	}
	claim := idempotency.Claim{
		ID: id, Fingerprint: "event", Operation: c.Group, Owner: rand.Text(), Lease: c.Lease, Retention: c.Window, Rerun: true,
	}
	ready := slots.Beside(ctx)
	v, known := c.Backlog.Known(claim)
	var err error
	switch {
	case !known:
		v, err = c.Store.Claim(ctx, claim)
	case e.Redrive && v.Outcome == idempotency.Unknown:
		ready()
		return again(soon(), "store", nil) // the store does not know yet what is to be resolved
	}
	if err == nil && v.Outcome == idempotency.Acquired {
		r := &run{c: c, e: e, rec: v.Record, last: last, claimed: claim}
		return r.begin(ctx, ready)
	}
	ready()
	switch {
	case err != nil:
		return again(soon(), "store", err)
	case v.Outcome == idempotency.Replay:
		c.redriven(ctx, e, deadletter.RedriveDelivered)
		return Decision{Action: Ack, Reason: "duplicate", Duplicate: true}
	case v.Outcome == idempotency.InProgress:
		return again(v.LeaseLeft, "in_progress", nil)
	case v.Outcome == idempotency.Unknown && v.Record.Note == idempotency.DeadLetterNote:
		return Decision{Action: DeadLettered, Reason: "duplicate", Duplicate: true}
	default:
		return Decision{Action: Hold, Reason: v.Record.Note, Duplicate: true}
	}
}

// again is a RetryAt of an event whose handler was not called.
func again(wait time.Duration, why string, err error) Decision {
	return Decision{Action: RetryAt, At: time.Now().Add(wait), Reason: why, Duplicate: true, Err: err}
}

// soon is when an event comes again because a store or the queue is down: at
// random within 10 s, so that a crowd of events spreads.
func soon() time.Duration { return wait.Jitter(10 * time.Second) }
