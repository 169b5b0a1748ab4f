package idempotency

import (
	"context"
	"errors"
	"sync"
	"time"
)

// heartbeat renews the lease of a run every third of it, and ends the run when
// it is known to have passed to another, or may have. Most runs end before the
// first beat, and cost a timer.
type heartbeat struct {
	h     *handler
	ctx   context.Context // the run's
	token Token
	rerun bool
	lose  context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer // nil: stopped
	renewed time.Time
}

func (h *handler) heartbeat(ctx context.Context, t Token, rerun bool, lose context.CancelCauseFunc) *heartbeat {
	b := &heartbeat{h: h, ctx: ctx, token: t, rerun: rerun, lose: lose, renewed: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(h.Lease/3, b.beat)
	return b
}

// stop ends the beats. One under way ends with the run's context.
func (b *heartbeat) stop() {
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
	ctx, cancel := context.WithTimeout(b.ctx, b.h.Lease/3)
	err := b.h.store.Renew(ctx, b.token, b.h.Lease)
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil || b.ctx.Err() != nil {
		return
	}
	switch {
	case err == nil:
		b.renewed = asked
	case errors.Is(err, ErrFenced), b.rerun && time.Since(b.renewed) > b.h.Lease:
		b.lose(ErrFenced)
		return
	}
	b.timer.Reset(max(b.h.Lease/3-time.Since(asked), time.Millisecond))
}
