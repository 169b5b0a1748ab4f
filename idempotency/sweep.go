package idempotency

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

const (
	sweepEvery = 5 * time.Minute
	sweepBatch = 1000
)

// RunSweeper deletes expired records until ctx ends, in small batches, every
// five minutes or so. Any number of processes may run it on one store.
func RunSweeper(ctx context.Context, store Store, log *slog.Logger) {
	log = cmp.Or(log, slog.Default())
	for {
		if !wait.Sleep(ctx, wait.Jitter(2*sweepEvery)) {
			return
		}
		for n := sweepBatch; n == sweepBatch && ctx.Err() == nil; {
			var err error
			if n, err = store.Sweep(ctx, sweepBatch); err != nil {
				log.LogAttrs(ctx, slog.LevelWarn, "idempotency: sweep failed", slog.String("error", err.Error()))
			}
		}
	}
}
