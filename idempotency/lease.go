package idempotency

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// heartbeat renews the lease of a run every third of it. It ends the run when
// that is known to have passed to another, or may have, and at its deadline.
// Most runs end before the first beat, and cost one timer.
type heartbeat struct {
	h     *handler
	run   *run
	rerun bool
	end   context.CancelCauseFunc // of the run's context

	mu      sync.Mutex
	timer   *time.Timer // nil: stopped
	renewed time.Time
}

// heartbeat starts the beats of a run. The caller stops them when it is over.
func (h *handler) heartbeat(r *run, rerun bool, end context.CancelCauseFunc) *heartbeat {
	b := &heartbeat{h: h, run: r, rerun: rerun, end: end, renewed: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(b.next(b.renewed), b.beat)
	return b
}

// next is how long it is from now until there is something to do, when the
// latest beat was at last.
func (b *heartbeat) next(last time.Time) time.Duration {
	return max(min(time.Until(last.Add(b.h.Lease/3)), time.Until(b.run.deadline)), 0)
}

// stop ends the run's context, and the beats with it.
func (b *heartbeat) stop() {
	b.end(nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// beat runs on the timer's goroutine.
func (b *heartbeat) beat() {
	asked := time.Now()
	if !asked.Before(b.run.deadline) {
		b.end(context.DeadlineExceeded)
		return
	}
	ctx, cancel := context.WithTimeout(b.run, b.h.Lease/3)
	err := b.h.store.Renew(ctx, b.run.token, b.h.Lease)
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil {
		return
	}
	switch {
	case err == nil:
		b.renewed = asked
	case errors.Is(err, ErrFenced), b.rerun && time.Since(b.renewed) > b.h.Lease:
		b.end(ErrFenced)
		return
	}
	next := b.next(asked)
	if err != nil {
		// Sooner than the next beat: when the store is back the lease may be over, and
		// the next claim elsewhere would find the key abandoned.
		next = min(next, wait.Jitter(b.h.Lease/6))
	}
	b.timer.Reset(next)
}
