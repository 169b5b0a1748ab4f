package consume

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// Options say how a [Consumer] works. Group, Store, DLQ and Retryer are
// required.
type Options struct {
	Group string // the consumer group: groups are apart
	Store idempotency.Store
	DLQ   DeadLetters
	Queue string // of the dead letters; default the group
	// Retryer decides about retries. Its kind is Event; its limits are R-2's.
	Retryer *forbear.Retryer

	// Window is how long an event is remembered. Default 8 days; less than 7
	// is refused.
	Window time.Duration
	// Lease is how long a handler is taken for alive without a heartbeat.
	// Default 30 s.
	Lease time.Duration
	// InPlace is the number of retries made at once, without giving the event
	// back, within InPlaceFor. Default 2 within 5 s; negative: none.
	InPlace    int
	InPlaceFor time.Duration
	// Crashes is the number of handlers that may die on an event before it is
	// dead-lettered. Default 5. It needs adapters that keep [Progress].
	Crashes int
	// Ordered keeps the order of events of one key within this process: while
	// one of them waits for its retry, later ones of its key wait too, and
	// those of other keys pass.
	Ordered bool
}

// MinWindow is what R-6 demands.
const MinWindow = 7 * 24 * time.Hour

const (
	endTimeout = 2 * time.Second
	endTries   = 3
	soon       = 5 * time.Second  // when a store or the queue is down
	postpone   = 30 * time.Second // when the budget or the breaker says no
)

// Consumer processes events. Make it with [New]. It is safe for concurrent use.
type Consumer struct {
	Options
	handle Handler
	keys   keys
}

// New returns a Consumer, or all faults of its options.
func New(handle Handler, o Options) (*Consumer, error) {
	var errs []error
	for _, need := range []struct {
		name string
		ok   bool
	}{{"handler", handle != nil}, {"group", o.Group != ""}, {"store", o.Store != nil}, {"dead-letter queue", o.DLQ != nil}, {"retryer", o.Retryer != nil}} {
		if !need.ok {
			errs = append(errs, fmt.Errorf("no %s", need.name))
		}
	}
	o.Queue = cmp.Or(o.Queue, o.Group)
	o.Window = cmp.Or(o.Window, 8*24*time.Hour)
	if o.Window < MinWindow {
		errs = append(errs, fmt.Errorf("window %v is under 7 days (R-6)", o.Window))
	}
	if o.Retryer != nil && o.Retryer.Policy().Kind != forbear.Event {
		errs = append(errs, fmt.Errorf("retryer %q is of kind %v, want event", o.Retryer.Dependency(), o.Retryer.Policy().Kind))
	}
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.InPlace = cmp.Or(o.InPlace, 2)
	o.InPlaceFor = cmp.Or(o.InPlaceFor, 5*time.Second)
	o.Crashes = cmp.Or(o.Crashes, 5)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return &Consumer{Options: o, handle: handle}, nil
}

// Consume processes one event, as p says how far it is. It returns when the
// event is done, or must wait for longer than a moment. Nothing that it decides
// is lost when ctx ends: the event comes again.
func (c *Consumer) Consume(ctx context.Context, e Event, p Progress) Decision {
	if e.ID == "" || e.Source == "" {
		return c.Poison(ctx, e, deadletter.ReasonInvalid, "event without id or source")
	}
	if c.Ordered && e.Key != "" {
		at, free := c.keys.enter(e.Key, e.Source+"\n"+e.ID, time.Now())
		if !free {
			return Decision{Action: RetryAt, At: at, Reason: "order", Duplicate: true, Progress: p}
		}
		d := c.claim(ctx, e, p)
		c.keys.leave(e.Key, d)
		return d
	}
	return c.claim(ctx, e, p)
}

func (c *Consumer) id(e *Event) idempotency.ID {
	return idempotency.ID{Scope: "event:" + c.Group, Key: idempotency.Digest(e.Source, e.ID)}
}

// buried is the note of a record whose event is a dead letter: duplicates of it
// are dropped, a redrive is not.
const buried = "dead letter"

// claim takes the event up, unless somebody has.
func (c *Consumer) claim(ctx context.Context, e Event, p Progress) Decision {
	id := c.id(&e)
	if e.Redrive {
		if rec, err := c.Store.Get(ctx, id); err == nil && rec.State == idempotency.Held && rec.Note == buried {
			if err := c.Store.Resolve(ctx, id, idempotency.Resolution{By: "redrive", Why: buried}); err != nil && !errors.Is(err, idempotency.ErrNotHeld) {
				return again(p, soon, "store", err)
			}
		}
	}
	v, err := c.Store.Claim(ctx, idempotency.Claim{
		ID: id, Fingerprint: "event", Operation: c.Group, Owner: rand.Text(), Lease: c.Lease, Retention: c.Window, Rerun: true,
	})
	switch {
	case err != nil:
		return again(p, soon, "store", err)
	case v.Outcome == idempotency.Acquired:
		r := &run{c: c, e: e, p: p, token: idempotency.Token{ID: id, Owner: v.Record.Owner, Fence: v.Record.Fence}}
		return r.do(ctx, v.Record)
	case v.Outcome == idempotency.Replay:
		return Decision{Action: Ack, Reason: "duplicate", Duplicate: true}
	case v.Outcome == idempotency.InProgress:
		return again(p, v.LeaseLeft, "in_progress", nil)
	case v.Outcome == idempotency.Unknown && v.Record.Note == buried:
		return Decision{Action: DeadLettered, Reason: "duplicate", Duplicate: true}
	default:
		return Decision{Action: Hold, Reason: v.Record.Note, Duplicate: true}
	}
}

// again is a RetryAt.
func again(p Progress, wait time.Duration, why string, err error) Decision {
	return Decision{Action: RetryAt, At: time.Now().Add(wait), Reason: why, Duplicate: true, Progress: p, Err: err}
}

// Poison puts an event that cannot be processed, such as one that could not be
// decoded, into the dead-letter queue at once. Until that has worked, the
// decision is to come again.
func (c *Consumer) Poison(ctx context.Context, e Event, reason, description string) Decision {
	if err := c.bury(ctx, &e, Progress{}, reason, forbear.ReasonTerminal, forbear.Failure{Type: reason}, description); err != nil {
		return again(Progress{}, soon, "dead_letter_queue", err)
	}
	return Decision{Action: DeadLettered, Reason: reason}
}
