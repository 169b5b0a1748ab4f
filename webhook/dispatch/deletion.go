package dispatch

import (
	"context"
	"errors"
	"log/slog"

	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/webhook"
)

// DeleteEndpoint removes an endpoint, if its version is the given one; 0 is any.
// What waits for it becomes dead letters, in batches, by any process that works on
// the store; attempts under way finish. The error matches
// [webhook.ErrVersion] or [webhook.ErrNotFound].
func (d *Dispatcher) DeleteEndpoint(ctx context.Context, id string, version int64) error {
	if err := d.cfg.Store.DeleteEndpoint(ctx, id, version); err != nil {
		return err
	}
	if r := d.receiver(id); r != nil {
		r.retire()
	}
	if err := d.reread(ctx); err != nil {
		return err
	}
	// A short backlog is done before the caller hears of it. A long one, or what
	// fails here, is left to the next look.
	_, _ = d.cfg.Store.Abandon(ctx, abandonBatch)
	return nil
}

// abandonBatch is how many deliveries become dead letters at once: all of them are in
// the memory, with bodies of up to 1 MiB, and their keys are locked.
const abandonBatch = 32

// abandon makes dead letters of what waits for endpoints that are no more.
func (d *Dispatcher) abandon(ctx context.Context) {
	total := 0
	for ctx.Err() == nil {
		n, err := pulse.Get(&d.parts[partDeletions], func() (int, error) { return d.cfg.Store.Abandon(ctx, abandonBatch) })
		if errors.Is(err, webhook.ErrUnreadable) && !d.seldom("deletions that cannot be read", unreadableAgain) {
			break // it was said
		}
		if total += n; !d.warn(ctx, "deliveries to deleted endpoints not dead-lettered", err) || n == 0 {
			break
		}
	}
	if total > 0 {
		d.log.Info("deliveries to deleted endpoints dead-lettered", slog.Int("deliveries", total))
	}
}
