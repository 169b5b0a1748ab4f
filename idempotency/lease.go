package idempotency

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// heartbeat renews the lease of a run every third of it, and ends the run's context by
// lose when the claim has passed to another, or may have. stop ends the beats; a run that
// ends before the first one costs a timer.
func (h *handler) heartbeat(ctx context.Context, u *run, lose context.CancelCauseFunc) (stop func()) {
	renewed := time.Now()
	return wait.Every(h.Lease/3, func() time.Duration {
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, h.Lease/3)
		err := h.store.Renew(limited, u.token, h.Lease)
		cancel()
		if errors.Is(err, ErrFenced) || err != nil && u.claim.Rerun && time.Since(renewed) > h.Lease {
			lose(ErrFenced)
			return 0
		}
		next := time.Until(asked.Add(h.Lease / 3))
		if err == nil {
			renewed = asked
		} else {
			// Sooner than the next beat: when the store is back the lease may be over, and
			// the next claim elsewhere would find the key abandoned.
			next = min(next, wait.Jitter(h.Lease/6))
		}
		return max(next, time.Millisecond)
	})
}
