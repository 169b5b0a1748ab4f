package batch

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
)

// run is one call of [Run].
type run[T any] struct {
	Options[T]
	r       *forbear.Retryer
	fn      func(context.Context, T) error
	feeding context.Context // ends when no further item is to be begun
	stop    context.CancelCauseFunc
	tally   *tally
	pause   pause

	mu   sync.Mutex
	busy map[string]bool // items under way
}

// item brings one item to its end.
func (b *run[T]) item(ctx context.Context, item T) {
	id := ""
	if b.ID != nil {
		id = b.ID(item)
		if !b.take(id) {
			b.tally.skipped()
			return
		}
		defer b.leave(id)
	}
	why := forbear.ReasonCanceled
	for {
		if !b.pause.wait(b.feeding) {
			b.tally.postponed(id, why, "", 0)
			return
		}
		attempts, err := b.try(ctx, item)
		e, _ := errors.AsType[*forbear.Error](err)
		switch {
		case err == nil:
			b.pause.over()
			b.finish(id, Done)
			b.tally.done(attempts)
			return
		case ctx.Err() != nil || e == nil:
			b.tally.postponed(id, forbear.ReasonCanceled, "", attempts)
			return
		case attempts == 0 && moment(e.Reason):
			why = e.Reason
			if !b.pause.begin(time.Now(), b.Patience) {
				b.stop(ErrPostponed)
			}
		case moment(e.Reason):
			b.tally.postponed(id, e.Reason, e.Type, attempts)
			return
		default:
			b.failed(ctx, item, id, e, attempts)
			return
		}
	}
}

// moment reports whether a refusal is one of the moment, and not the item's.
func moment(r forbear.Reason) bool {
	switch r {
	case forbear.ReasonBreakerOpen, forbear.ReasonBudget, forbear.ReasonUnhealthy, forbear.ReasonBulkheadFull:
		return true
	default:
		return false
	}
}

// take reports whether an item is to run: it is neither finished nor under way.
func (b *run[T]) take(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[id] || b.Journal != nil && b.Journal.Finished(id) {
		return false
	}
	b.busy[id] = true
	return true
}

func (b *run[T]) leave(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, id)
}

// try is one logical call, within the policy's total.
func (b *run[T]) try(ctx context.Context, item T) (attempts int, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.r.Policy().Total)
	defer cancel()
	err = b.r.Do(ctx, func(ctx context.Context) (err error) {
		attempts++
		defer func() {
			if v := recover(); v != nil {
				err = forbear.Terminal(fmt.Errorf("panicked: %T", v))
			}
		}()
		return b.fn(ctx, item)
	})
	return attempts, err
}

// failed puts the item into the dead-letter queue and only then into the
// journal.
func (b *run[T]) failed(ctx context.Context, item T, id string, e *forbear.Error, attempts int) {
	b.tally.failed(id, e.Reason, e.Type, attempts)
	if b.DLQ == nil {
		return
	}
	l, err := b.letter(item, id, e, attempts)
	if err == nil {
		err = b.DLQ.Put(context.WithoutCancel(ctx), l)
	}
	if err != nil {
		b.stop(fmt.Errorf("batch: dead letter of item %q: %w", id, err))
		return
	}
	b.r.DeadLettered(ctx, b.Queue, e.Reason)
	b.finish(id, Dead)
}

// finish marks an item in the journal. A journal that does not work ends the
// run: what it does not know would be done twice.
func (b *run[T]) finish(id string, f Fate) {
	if b.Journal == nil {
		return
	}
	if err := b.Journal.Finish(id, f); err != nil {
		b.stop(fmt.Errorf("batch: journal: %w", err))
	}
}

// letter is the dead letter of an item. Its id follows from the item's, so that
// a second one changes nothing.
func (b *run[T]) letter(item T, id string, e *forbear.Error, attempts int) (deadletter.Letter, error) {
	payload, media := b.Payload, ""
	if payload == nil {
		payload, media = func(item T) ([]byte, error) { return json.Marshal(item) }, "application/json"
	}
	body, err := payload(item)
	if err != nil {
		return deadletter.Letter{}, err
	}
	now := time.Now()
	return deadletter.Letter{
		ID: letterID(b.Queue, id), Queue: b.Queue, Destination: b.r.Dependency(), EventID: id, Payload: body, ContentType: media,
		Reason: e.Reason.String(), ErrorType: e.Type, Policy: b.r.Policy(), Attempts: attempts, MaxAttempts: b.r.Policy().MaxRetries + 1,
		FirstAttempt: now.Add(-e.Elapsed), LastAttempt: now, DeadAt: now, State: deadletter.Dead,
	}, nil
}

// pause holds all workers while the dependency refuses calls.
type pause struct {
	mu    sync.Mutex
	since time.Time // of the first refusal after a success
	until time.Time
	times int
}

// begin prolongs the pause: up to 1 s, 2 s, 4 s ... 30 s. It reports whether
// that is within the run's patience.
func (p *pause) begin(now time.Time, patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	if now.Before(p.until) { // another worker was faster
		return true
	}
	p.until = now.Add(100*time.Millisecond + mathrand.N(min(time.Second<<min(p.times, 5), 30*time.Second)))
	p.times++
	return p.until.Sub(p.since) <= patience
}

// over ends the pause after a success.
func (p *pause) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.until, p.times = time.Time{}, time.Time{}, 0
}

// wait waits for the end of the pause. It reports whether the run goes on.
func (p *pause) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		wait := time.Until(p.until)
		p.mu.Unlock()
		if wait <= 0 {
			return true
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	return false
}

// letterID returns the id of the dead letter of an item.
func letterID(queue, id string) string {
	if id == "" {
		return "dlq_" + rand.Text()
	}
	return "dlq_" + idempotency.Digest(queue, id)
}
