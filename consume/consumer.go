package consume

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/slots"
	"github.com/forbear-go/forbear/internal/wait"
)

// Options say how a [Consumer] works. Group, Store, DLQ and Retryer are
// required.
type Options struct {
	Group string // the consumer group: groups are apart
	Store idempotency.Store
	DLQ   DeadLetters
	Queue string // of the dead letters; default the group
	// Topic gets each letter once DLQ has it, for those who watch a topic or a
	// queue of a broker; the adapters in module brokers have one. An event is over
	// when both have taken it: while Topic fails, the event comes again, without its
	// handler. Topic may then get a letter more than once. Nil: none.
	Topic DeadLetters
	// Retryer decides about retries, with one budget and one breaker for the
	// dependency that the handler works on. Its kind is Event; its limits are
	// R-2's and R-3's.
	Retryer *forbear.Retryer

	// Window is how long an event is remembered. Default 8 days; less than 7
	// is refused.
	Window time.Duration
	// Lease is how long a handler is taken for alive without a heartbeat,
	// which comes every third of it. Default 30 s.
	Lease time.Duration
	// Grace is how long a handler may go on after its context has ended, by the timeout
	// of an attempt, the loss of the lease or a shutdown. After that its place, in the
	// adapters and at a shutdown, is given to others; its event stays under way until it
	// returns. Default 10 s.
	Grace time.Duration
	// InPlace is the number of retries made without giving the event back, those
	// that are due within InPlaceFor of its first attempt. In the adapters such an
	// event waits beside the handlers' slots and holds up no other; elsewhere
	// [Consumer.Consume] returns only then. Default 5 within 5 s; negative: none.
	InPlace    int
	InPlaceFor time.Duration
	// Crashes is the number of processes that may die on an event before it is
	// dead-lettered. Default 5.
	Crashes int
	// Ordered keeps the order of events of one key within this process: while
	// one of them waits for its retry, later ones of its key wait too, and
	// those of other keys pass.
	Ordered bool
	// Backlog keeps the ends of events that the store could not take, until it is
	// back; an event whose end it keeps is acknowledged, and not handled again here.
	// Its Store must be the consumer's. Nil: one of the consumer's own, with the
	// defaults. Give one where it is to be closed, to have a spool, or to be shared.
	Backlog *idempotency.Backlog

	// Transaction runs each attempt in a transaction of its own, which the handler
	// has from [Tx], and completes the event in it: what the handler writes through it
	// happens exactly once. The store must be a [Transactor].
	Transaction bool

	// Logger gets what an operator should see. Nil means slog.Default().
	Logger *slog.Logger
	// Observe receives every decision. It must be quick and safe for
	// concurrent use.
	Observe func(Event, Decision)
}

// MinWindow is what R-6 demands.
const MinWindow = 7 * 24 * time.Hour

// endTimeout bounds each write of an event's end: it goes on after ctx ends,
// and a shutdown must not wait for ever.
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
	if _, ok := o.Store.(Transactor); o.Transaction && o.Store != nil && !ok {
		errs = append(errs, errors.New("this store has no transactions"))
	}
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	if o.Lease < minLease {
		errs = append(errs, fmt.Errorf("lease %v is under %v", o.Lease, minLease))
	}
	if o.Grace = cmp.Or(o.Grace, 10*time.Second); o.Grace < 0 {
		errs = append(errs, fmt.Errorf("grace %v is negative", o.Grace))
	}
	o.InPlace = cmp.Or(o.InPlace, 5)
	o.InPlaceFor = cmp.Or(o.InPlaceFor, 5*time.Second)
	if o.Crashes = cmp.Or(o.Crashes, 5); o.Crashes < 0 {
		errs = append(errs, fmt.Errorf("crashes %d is negative", o.Crashes))
	}
	if o.Backlog == nil {
		o.Backlog = &idempotency.Backlog{Store: o.Store}
	}
	if o.Backlog.Store == nil && o.Store != nil {
		errs = append(errs, errors.New("a backlog without a store"))
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Observe == nil {
		o.Observe = func(Event, Decision) {}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	return &Consumer{Options: o, handle: handle}, nil
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
		return c.poison(ctx, e, deadletter.ReasonInvalid, "event without id or source")
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
func (c *Consumer) Ready(ctx context.Context) error { return c.Retryer.Ready(ctx) }

// Poison puts an event that cannot be processed, such as one that could not be
// decoded, into the dead-letter queue at once. Until that has worked, the
// decision is to come again.
func (c *Consumer) Poison(ctx context.Context, e Event, reason, description string) Decision {
	d := c.poison(ctx, &e, reason, description)
	c.Observe(e, d)
	return d
}

func (c *Consumer) poison(ctx context.Context, e *Event, reason, description string) Decision {
	l := c.letter(e, progress{}, reason, forbear.Failure{Type: reason}, description)
	if err := c.deadLetter(ctx, e, l, forbear.ReasonTerminal); err != nil {
		return again(soon(), "dead_letter_queue", err)
	}
	return Decision{Action: DeadLettered, Reason: reason, Duplicate: true}
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
