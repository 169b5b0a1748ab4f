// Package tick lets background work wait for its next turn. It is not for the
// waits between attempts: those belong to the root package's wait.go.
package tick

import (
	"context"
	"time"
)

// Wait waits for d and reports whether it could: false when ctx ended first.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
