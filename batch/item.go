package batch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/reason"
)

// item is one item of a run, from its fetch to its end.
type item[T any] struct {
	value T
	id    string // "" without Options.ID

	call  *edge.DurableCall // nil before it was looked at
	end   time.Time         // of its total
	last  forbear.Decision  // the latest
	ended time.Time         // of the latest attempt

	history []deadletter.Attempt // those that failed, when there is a dead-letter queue
	cause   deadletter.Cause     // of the latest of them

	left  bool      // the attempt under way has not returned
	until time.Time // see waiting
	probe bool      // begun while the breaker was not closed
	over  bool
}

// begun reports whether an attempt was let through: the item's total counts from
// there.
func (it *item[T]) begun() bool { return it.call != nil && it.call.State.Attempt > 0 }

// step takes an item as far as one attempt goes. It reports whether that was
// its end.
func (b *run[T]) step(ctx context.Context, it *item[T]) (over bool) {
	if it.call == nil {
		if b.Journal != nil && b.Journal.Finished(it.id) {
			b.tally.count(func(r *Report) { r.Skipped++ })
			return true
		}
		it.call = edge.Durable(ctx, b.r, edge.Progress{})
	}
	fresh := it.last.Retry // a refusal now is a new one
	it.last = it.call.Ask(ctx, time.Now())
	it.end = it.call.State.Start.Add(b.r.Policy().Total)
	if it.last.Retry && it.last.Wait == 0 {
		b.attempt(ctx, it)
		fresh = true
	}
	switch {
	case it.last.Retry:
		return false
	case it.last.Reason.Momentary():
		if fresh {
			it.call.Postpone(ctx, it.last, time.Now()) // counted; the schedule knows when
		}
		return false
	}
	b.conclude(ctx, it)
	return true
}

// attempt calls the function once, and decides what follows.
func (b *run[T]) attempt(ctx context.Context, it *item[T]) {
	ctx, cancel := context.WithDeadline(ctx, it.end)
	defer cancel()
	began := time.Now()
	var err error
	it.left = true
	defer func() {
		if it.left { // fn has ended its goroutine by runtime.Goexit, as a test's FailNow does
			it.last = forbear.Decision{Reason: reason.Terminal, Class: forbear.ClassTerminal}
			err = &edge.PanicError{Value: "runtime.Goexit", Stack: debug.Stack()}
		}
		b.attempted(it, began, err)
	}()
	it.last, err = it.call.Try(ctx, func(ctx context.Context) error { return b.fn(ctx, it.value) })
	it.left = false
}

// attempted keeps what a dead letter would tell of an attempt.
func (b *run[T]) attempted(it *item[T], began time.Time, err error) {
	if it.ended = time.Now(); err == nil || b.DLQ == nil {
		return
	}
	it.cause = deadletter.CauseOf(forbear.Failure{Class: it.last.Class, Type: it.call.Last, Err: err})
	a := it.cause.Failed()
	a.Number, a.Claim, a.At, a.Took, a.Wait = it.call.Attempts, 1, began, it.ended.Sub(began), it.last.Wait
	it.history = deadletter.Append(it.history, a)
}

// leave ends an item whose goroutine is ended from within. Its function is then what has
// failed; or the journal, the dead-letter queue or the payload's function, without which
// the run cannot go on.
func (b *run[T]) leave(ctx context.Context, it *item[T]) {
	if it.over = true; it.left {
		it.left = false
		b.conclude(ctx, it)
		return
	}
	b.stop(fmt.Errorf("batch: what keeps item %q has ended its goroutine", it.id))
}

// conclude says what has become of an item whose call is over. It is postponed
// when the moment was wrong, not the item: the run ends, or the breaker was open
// during its total.
func (b *run[T]) conclude(ctx context.Context, it *item[T]) {
	switch why := it.last.Reason; {
	case why == reason.Success:
		b.finish(it.id, Done)
		b.tally.count(func(r *Report) {
			r.Done++
			r.Retries += it.call.Attempts - 1
		})
	case ctx.Err() != nil, b.cutShort(ctx, it):
		b.postponed(it, reason.Canceled)
	case why == reason.Deadline && b.outageIn(it):
		b.postponed(it, reason.BreakerOpen)
	default:
		b.failed(ctx, it)
	}
}

// cutShort reports whether no time was left because the run ends before the
// item's total does.
func (b *run[T]) cutShort(ctx context.Context, it *item[T]) bool {
	if why := it.last.Reason; why != reason.Deadline && why != reason.HintTooLong {
		return false
	}
	d, ok := ctx.Deadline()
	return ok && (!it.begun() || d.Before(it.end))
}

// postponed counts an item that is for a later run.
func (b *run[T]) postponed(it *item[T], why forbear.Reason) {
	p := Problem{ID: it.id, Reason: why, Postponed: true}
	if it.call != nil {
		p.Attempts, p.ErrorType = it.call.Attempts, it.call.Last
	}
	b.tally.problem(p)
}

// postpone leaves an item that waits to a later run.
func (b *run[T]) postpone(ctx context.Context, it *item[T]) {
	why := reason.Canceled
	if errors.Is(context.Cause(b.feeding), ErrPostponed) {
		why = reason.BreakerOpen
	}
	if it.begun() {
		_ = it.call.GiveUp(ctx, why, time.Now())
	}
	b.postponed(it, why)
}

// failed puts the item into the dead-letter queue and only then into the
// journal.
func (b *run[T]) failed(ctx context.Context, it *item[T]) {
	e := it.call.Err(it.last, time.Now())
	b.tally.problem(Problem{ID: it.id, Reason: e.Reason, ErrorType: e.Type, Attempts: e.Attempts})
	if b.DLQ == nil {
		return
	}
	l, err := b.letter(ctx, it, e)
	if err == nil {
		err = b.DLQ.Put(context.WithoutCancel(ctx), l)
	}
	if err != nil {
		b.stop(fmt.Errorf("batch: dead letter of item %q: %w", it.id, err))
		return
	}
	edge.DeadLettered(ctx, b.r, b.Queue, e.Reason)
	b.finish(it.id, Dead)
}

// finish marks an item in the journal. A journal that does not work ends the
// run: what it does not know would be done twice.
func (b *run[T]) finish(id string, m Mark) {
	if b.Journal == nil {
		return
	}
	if err := b.Journal.Finish(id, m); err != nil {
		b.stop(fmt.Errorf("batch: journal: %w", err))
	}
}

// letter is the dead letter of an item. Its id follows from the item's, so that
// a second one changes nothing.
func (b *run[T]) letter(ctx context.Context, it *item[T], e *forbear.Error) (deadletter.Letter, error) {
	payload, media := b.Payload, ""
	if payload == nil {
		payload, media = func(item T) ([]byte, error) { return json.Marshal(item) }, "application/json"
	}
	body, err := payload(it.value)
	if err != nil {
		return deadletter.Letter{}, err
	}
	now, correlation := time.Now(), edge.CorrelationOf(ctx, b.r)
	l := deadletter.Letter{
		ID: letterID(b.Queue, it.id), Queue: b.Queue, Destination: b.r.Dependency(), EventID: it.id, Payload: body, ContentType: media,
		Reason: e.Reason.String(), ErrorType: e.Type, Policy: b.r.Policy(),
		Attempts: it.call.Attempts, MaxAttempts: b.r.Policy().MaxRetries + 1, Postponed: it.call.Postponed,
		CorrelationID: correlation, TraceID: deadletter.TraceID(nil, correlation), DeadAt: now, State: deadletter.Dead,
	}
	l.SetCause(it.cause)
	l.SetHistory(it.history)
	l.FirstAttempt, l.LastAttempt = now.Add(-e.Elapsed), it.ended
	return l, nil
}

// letterID returns the id of the dead letter of an item.
func letterID(queue, id string) string {
	if id == "" {
		return "dlq_" + rand.Text()
	}
	return "dlq_" + idempotency.Digest(queue, id)
}
