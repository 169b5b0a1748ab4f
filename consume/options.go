package consume

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/idempotency"
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

// New returns a Consumer, or all faults of its options.
func New(handle Handler, o Options) (*Consumer, error) {
	var errs []error
	for _, need := range []struct {
		name string
		ok   bool
	}{{"handler", handle != nil}, {"group", o.Group != ""}, {"store", o.Store != nil}, {"dead-letter queue", o.DLQ != nil}, {"retryer", o.Retryer != nil}} {
		if !need.ok {
			errs = append(errs, fmt.Errorf("%s is missing", need.name))
		}
	}
	o.Queue = cmp.Or(o.Queue, o.Group)
	o.Window = cmp.Or(o.Window, 8*24*time.Hour)
	if o.Window < MinWindow {
		errs = append(errs, fmt.Errorf("window %v is below 7 days (R-6)", o.Window))
	}
	if o.Retryer != nil && o.Retryer.Policy().Kind != forbear.Event {
		errs = append(errs, fmt.Errorf("retryer %q is of kind %v, want event", o.Retryer.Dependency(), o.Retryer.Policy().Kind))
	}
	if _, ok := o.Store.(Transactor); o.Transaction && o.Store != nil && !ok {
		errs = append(errs, errors.New("option Transaction is set, but this store has none: use sqlstore with PostgreSQL"))
	}
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	if o.Lease < minLease {
		errs = append(errs, fmt.Errorf("lease %v is below %v", o.Lease, minLease))
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
		errs = append(errs, errors.New("Backlog.Store is nil"))
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
