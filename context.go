package forbear

import (
	"context"
	"time"
)

type ctxKey uint8

const (
	keyMaxRetries ctxKey = iota
	keyAttempt
	keyCorrelation
	keyIdempotency
	keyExhaustion
)

// WithMaxRetries sets the number of retries of the calls made under the
// returned context, 0 included. It may exceed the policy's number but never the
// allowed range of the policy's kind. A negative n counts as 0.
func WithMaxRetries(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, keyMaxRetries, max(n, 0))
}

// WithCorrelationID names the logical operation that calls under the returned
// context belong to. It is logged with every retry.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyCorrelation, id)
}

// CorrelationID returns the correlation id of ctx, or "".
func CorrelationID(ctx context.Context) string {
	id, _ := ctx.Value(keyCorrelation).(string)
	return id
}

// WithIdempotencyKey names the key that the operation under the returned
// context carries, so that it is logged with every retry. The HTTP edge
// sends it with requests that need a key and bring none.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyIdempotency, key)
}

// IdempotencyKey returns the key that [WithIdempotencyKey] put into ctx, or "".
func IdempotencyKey(ctx context.Context) string {
	key, _ := ctx.Value(keyIdempotency).(string)
	return key
}

// Attempt is the attempt that a context belongs to.
type Attempt struct {
	Dependency string
	Number     int // the first is 1
}

// AttemptFrom returns the innermost retry that ctx runs under. ok is false in
// first attempts, which run under the caller's own context, untouched.
func AttemptFrom(ctx context.Context) (a Attempt, ok bool) {
	c, ok := ctx.Value(keyAttempt).(*attemptCtx)
	if !ok {
		return Attempt{}, false
	}
	return Attempt{Dependency: c.dependency, Number: c.number}, true
}

// ContextWithAttempt returns a context for the given attempt of a call to
// dependency. Edges that learn the number from the wire use it; forbear's own
// loops mark their retries by themselves.
func ContextWithAttempt(ctx context.Context, a Attempt) context.Context {
	return &attemptCtx{Context: ctx, dependency: a.Dependency, number: a.Number}
}

// attemptCtx carries its attempt without a second allocation.
type attemptCtx struct {
	context.Context
	dependency string
	number     int

	retryer *Retryer // whose retry it is; nil when it came from the wire
	sends   sends
}

func (c *attemptCtx) Value(key any) any {
	if key == keyAttempt {
		return c
	}
	return c.Context.Value(key)
}

// readContext copies into s and known what the caller's context says about the
// call.
func readContext(ctx context.Context, s *State, known *Facts) {
	if d, ok := ctx.Deadline(); ok {
		s.Deadline = earlier(s.Deadline, d)
	}
	if n, ok := ctx.Value(keyMaxRetries).(int); ok {
		s.Limit, s.Limited = n, true
	}
	if a, ok := AttemptFrom(ctx); ok && a.Number > 1 {
		known.Inner = true
	}
	// Where safety hangs on the key, the edge knows whether it was sent.
	if s.Key == "" && !s.NeedsKey {
		s.Key = IdempotencyKey(ctx)
	}
}

// earlier returns the earlier of two deadlines, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
