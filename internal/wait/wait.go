// Package wait is how everything waits that is not a retry decided by the engine:
// polls, reconnects, alerts, the next try of a write. There is one way, so that no
// loop has a fixed interval by mistake and no two processes wait in step.
//
// The waits between the attempts of a call are not its business: the engine draws
// those, and the root package's wait.go keeps them.
package wait

import (
	"context"
	"time"
)

// Sleep waits for d and reports whether it could: false when ctx ended first, or
// had ended before.
func Sleep(ctx context.Context, d time.Duration) bool {
	Woken(ctx, d, nil)
	return ctx.Err() == nil
}

// Woken waits for d, for the end of ctx, or until wake is closed or sends, and
// reports whether it was woken. A nil wake never wakes.
func Woken(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-wake:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

const (
	persistTries = 3
	persistStep  = 50 * time.Millisecond
)

// Persist calls write until it succeeds, at most three times and about a tenth of
// a second in all. It is for the record of what has happened already: giving up
// early means doing it again. done says which errors are final. write bounds each
// try with a context of its own, since the caller's may be over.
func Persist(write func() error, done func(error) bool) (err error) {
	for try := range persistTries {
		time.Sleep(Jitter(time.Duration(try) * persistStep))
		if err = write(); err == nil || done(err) {
			return err
		}
	}
	return err
}
