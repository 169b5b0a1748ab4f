package forbeartest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
)

// Recorder is an observer that keeps what a Retryer did. Pass it to
// [forbear.WithObserver]. It is safe for concurrent use; the zero value is
// ready.
type Recorder struct {
	mu       sync.Mutex
	attempts []forbear.AttemptEnded
	retries  []forbear.RetryScheduled
	stops    []forbear.Stopped
	events   []string
}

// Observer returns what to pass to [forbear.WithObserver].
func (r *Recorder) Observer() *forbear.Observer {
	return &forbear.Observer{
		AttemptStarted: r.attemptStarted,
		AttemptEnded:   r.attemptEnded,
		RetryScheduled: r.retryScheduled,
		Stopped:        r.stopped,
	}
}

func (r *Recorder) attemptStarted(_ context.Context, e forbear.Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("attempt %d", e.Attempt))
}

func (r *Recorder) attemptEnded(_ context.Context, e forbear.AttemptEnded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, e)
	if e.Failure.Class == forbear.ClassSuccess {
		r.events = append(r.events, "success")
		return
	}
	r.events = append(r.events, "failed: "+e.Failure.Type)
}

func (r *Recorder) retryScheduled(_ context.Context, e forbear.RetryScheduled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retries = append(r.retries, e)
	r.events = append(r.events, fmt.Sprintf("retry in %v", e.Backoff))
}

func (r *Recorder) stopped(_ context.Context, e forbear.Stopped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, e)
	r.events = append(r.events, "stopped: "+e.Reason.String())
}

// Attempts returns the attempts that have ended, in order, the successful ones
// too.
func (r *Recorder) Attempts() []forbear.AttemptEnded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attempts)
}

// Retries returns the retries that were granted, in order.
func (r *Recorder) Retries() []forbear.RetryScheduled {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.retries)
}

// Stops returns the ends of the calls that failed, in order.
func (r *Recorder) Stops() []forbear.Stopped {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stops)
}

// Waits returns the wait before each retry, in order.
func (r *Recorder) Waits() []time.Duration {
	var waits []time.Duration
	for _, e := range r.Retries() {
		waits = append(waits, e.Backoff)
	}
	return waits
}

// Events returns the course of a call in words: "attempt 1", "failed: http_503",
// "retry in 412ms", "attempt 2", "success", "stopped: exhausted".
func (r *Recorder) Events() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Reset forgets everything.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts, r.retries, r.stops, r.events = nil, nil, nil, nil
}
