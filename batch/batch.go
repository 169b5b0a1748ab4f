package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

var (
	// ErrFailed is in the error of a run some of whose items have failed for
	// good.
	ErrFailed = errors.New("items failed")
	// ErrPostponed is in the error of a run that has left items to a later one.
	ErrPostponed = errors.New("items postponed")
)

// Options say how [Run] works. The zero value runs eight items at once, keeps
// no journal and no dead letters.
type Options[T any] struct {
	// Concurrency is the number of attempts at once. Default 8; a policy's
	// MaxConcurrent lowers it.
	Concurrency int
	// Waiting is how many items may wait for a retry meanwhile; with more, no new
	// one is fetched. It bounds the memory. Default 128 times Concurrency.
	Waiting int
	// ID names an item. Journal and DLQ need it. The ids of a run are unique;
	// an item whose id is done or under way is skipped.
	ID func(T) string
	// Journal remembers across runs which items are finished.
	Journal Journal
	// DLQ takes the items that have failed. Without it they are only in the
	// report, and a later run with the same journal tries them again.
	DLQ DeadLetters
	// Queue names the dead letters. Default the Retryer's dependency.
	Queue string
	// Payload is what a dead letter keeps of an item. Nil means JSON.
	Payload func(T) ([]byte, error)
	// Patience is how long the run waits for a dependency whose breaker is
	// open, since it opened after the latest success. Default 5 min; negative:
	// not at all.
	Patience time.Duration
	// Progress observes how far the run is, at most once a second and at the end.
	// Calls do not overlap.
	Progress func(Report)
}

// DeadLetters takes what cannot be done; a queue.Store does.
type DeadLetters interface {
	Put(ctx context.Context, l deadletter.Letter) error
}

// Run calls fn for each item until all are done, and retries as r says; r is of
// kind [forbear.Batch] and has no dead-letter sink of its own. fn marks its errors as the operations of
// [forbear.Retryer.Do] do, and may be called from several goroutines. A panic
// of fn is a final failure of its item, and so is runtime.Goexit, which a test's FailNow calls.
//
// The error is nil when every item is done, now or before. Otherwise it holds
// [ErrFailed], [ErrPostponed], or both; or what ended the run: the end of ctx,
// a journal or a dead-letter queue that does not take what it must. Attempts
// under way are always brought to their end first; the items that wait for one
// are postponed then.
func Run[T any](ctx context.Context, r *forbear.Retryer, items iter.Seq[T], fn func(context.Context, T) error, o Options[T]) (Report, error) {
	if err := o.complete(r, items, fn); err != nil {
		return Report{}, fmt.Errorf("batch: %w", err)
	}
	b := newRun(ctx, r, fn, o)
	defer b.stop(nil)
	b.do(ctx, items)
	report := b.tally.finish()
	return report, b.verdict(ctx, &report)
}

// run is one call of [Run]: what its goroutines share.
type run[T any] struct {
	Options[T]
	r       *forbear.Retryer
	fn      func(context.Context, T) error
	feeding context.Context // ends when nothing is to be begun any more
	stop    context.CancelCauseFunc
	tally   *tally
	began   time.Time
	outage  atomic.Int64 // how long after that the breaker was last seen not to be closed; negative: never

	fresh chan *item[T] // from the feeder, which has the next one at hand
	back  chan *item[T] // from the attempts
}

// newRun wires the channels. back has room for every attempt, so that none
// of them waits for the schedule in order to end.
func newRun[T any](ctx context.Context, r *forbear.Retryer, fn func(context.Context, T) error, o Options[T]) *run[T] {
	b := &run[T]{
		Options: o, r: r, fn: fn, tally: newTally(o.Progress), began: time.Now(),
		fresh: make(chan *item[T]), back: make(chan *item[T], o.Concurrency),
	}
	b.feeding, b.stop = context.WithCancelCause(ctx)
	b.outage.Store(-1)
	return b
}

// do hands the items to the schedule and waits for their end.
func (b *run[T]) do(ctx context.Context, items iter.Seq[T]) {
	var working sync.WaitGroup
	defer working.Wait()
	defer close(b.fresh)
	s := &schedule[T]{run: b, more: true, busy: map[string]bool{}}
	working.Go(func() { s.work(ctx) })
	b.feed(items)
}

// feed hands over an item whenever one is wanted. It runs in the caller's
// goroutine, as the caller's iterator may expect.
func (b *run[T]) feed(items iter.Seq[T]) {
	for value := range items {
		it := &item[T]{value: value}
		if b.ID != nil {
			it.id = b.ID(value)
		}
		select {
		case b.fresh <- it:
		case <-b.feeding.Done():
			b.tally.count(func(r *Report) { r.Cut = true })
			return
		}
	}
}

// verdict is the error of the run. An ended context and an impatient run are
// both in it, because callers branch on either.
func (b *run[T]) verdict(ctx context.Context, report *Report) error {
	var errs []error
	if report.Cut || report.Postponed > 0 {
		errs = append(errs, context.Cause(ctx))
	}
	if cause := context.Cause(b.feeding); ctx.Err() == nil && !errors.Is(cause, ErrPostponed) {
		errs = append(errs, cause)
	}
	if report.Failed > 0 {
		errs = append(errs, fmt.Errorf("%w: %d", ErrFailed, report.Failed))
	}
	switch {
	case report.Cut:
		errs = append(errs, fmt.Errorf("%w: %d, and all that were not looked at", ErrPostponed, report.Postponed))
	case report.Postponed > 0:
		errs = append(errs, fmt.Errorf("%w: %d", ErrPostponed, report.Postponed))
	}
	return errors.Join(errs...)
}

// complete fills in the defaults and returns all faults at once. A retryer
// of another kind is refused: its limits would not be those of a batch.
func (o *Options[T]) complete(r *forbear.Retryer, items iter.Seq[T], fn func(context.Context, T) error) error {
	var errs []error
	for _, need := range []struct {
		name string
		ok   bool
	}{{"retryer", r != nil}, {"items", items != nil}, {"function", fn != nil}} {
		if !need.ok {
			errs = append(errs, fmt.Errorf("no %s", need.name))
		}
	}
	if r != nil {
		if kind := r.Policy().Kind; kind != forbear.Batch {
			errs = append(errs, fmt.Errorf("retryer %q is of kind %v, want batch", r.Dependency(), kind))
		}
		o.Queue = cmp.Or(o.Queue, r.Dependency())
	}
	if o.ID == nil && (o.Journal != nil || o.DLQ != nil) {
		errs = append(errs, errors.New("a journal and a dead-letter queue need the ids of the items"))
	}
	if o.Concurrency = cmp.Or(o.Concurrency, 8); o.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("concurrency %d is negative", o.Concurrency))
	}
	if r != nil && r.Bulkhead() != nil {
		o.Concurrency = min(o.Concurrency, r.Bulkhead().Limit())
	}
	if o.Waiting = cmp.Or(o.Waiting, 128*o.Concurrency); o.Waiting < 0 {
		errs = append(errs, fmt.Errorf("waiting %d is negative", o.Waiting))
	}
	o.Patience = cmp.Or(o.Patience, 5*time.Minute)
	return errors.Join(errs...)
}
