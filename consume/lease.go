package consume

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/wait"
)

// beat renews the lease while the handler runs, also one that goes on after its
// context has ended, and returns when to do so again. A lost fence cancels the
// handler: another run may already be doing the same work. Any other failure is tried
// again before the next beat, so that a store that is back does not give the event to
// another process.
func (r *run) beat(ctx context.Context, lose func(error)) time.Duration {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.c.Lease/3)
	defer cancel()
	err := r.c.Store.Renew(limited, r.ends(idempotency.Keep).Token, r.c.Lease)
	switch {
	case err == nil:
		return r.c.Lease / 3
	case errors.Is(err, idempotency.ErrFenced):
		lose(idempotency.ErrFenced)
		return 0
	}
	return max(wait.Jitter(r.c.Lease/6), time.Millisecond)
}
