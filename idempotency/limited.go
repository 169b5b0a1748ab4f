package idempotency

import (
	"context"
	"sync"
	"time"
)

// limited is context.WithTimeout for calls of a store, which mostly end at once:
// there is no timer before a caller waits for it. Make it with [limit].
type limited struct {
	context.Context // the parent, which never ends
	deadline        time.Time

	mu     sync.Mutex
	armed  context.Context // nil: no caller has waited yet
	cancel context.CancelFunc
	over   bool
}

// limit returns a context that ends after d, and before with its end. ctx is one
// that never ends.
func limit(ctx context.Context, d time.Duration) *limited {
	return &limited{Context: ctx, deadline: time.Now().Add(d)}
}

// end ends the context and releases its timer, if there is one. It may be called
// more than once.
func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.cancel != nil {
		l.cancel()
	}
}

// arm returns the context that has a timer. l.mu is held.
func (l *limited) arm() context.Context {
	switch {
	case l.armed != nil:
	case l.over:
		l.armed, l.cancel = context.WithCancel(l.Context)
		l.cancel()
	default:
		l.armed, l.cancel = context.WithDeadline(l.Context, l.deadline)
	}
	return l.armed
}

// Deadline implements [context.Context].
func (l *limited) Deadline() (time.Time, bool) { return l.deadline, true }

// Done implements [context.Context].
func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.arm().Done()
}

// Err implements [context.Context].
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed == nil && !l.over && time.Now().Before(l.deadline) {
		return nil
	}
	return l.arm().Err()
}

// Value implements [context.Context]. The armed context speaks for itself, so
// that those made from l are its children.
func (l *limited) Value(key any) any {
	l.mu.Lock()
	ctx := l.Context
	if l.armed != nil {
		ctx = l.armed
	}
	l.mu.Unlock()
	return ctx.Value(key)
}
