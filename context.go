package forbear

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear/internal/layer"
)

// keyMaxRetries is the context key of [WithMaxRetries].
type keyMaxRetries struct{}

// WithMaxRetries sets the number of retries of the calls made under the
// returned context, 0 included. It may exceed the policy's number but never the
// allowed range of the policy's kind. A negative n counts as 0.
func WithMaxRetries(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, keyMaxRetries{}, max(n, 0))
}

// WithCorrelationID names the logical operation that calls under the returned
// context belong to. It is logged with every retry.
func WithCorrelationID(ctx context.Context, id string) context.Context {
	return layer.WithCorrelation(ctx, id)
}

// WithIdempotencyKey names the key that the operation under the returned
// context carries, so that it is logged with every retry. The HTTP edge
// sends it with requests that need a key and bring none.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return layer.WithKey(ctx, key)
}

// Idempotent says of the calls made under the returned context that they are safe
// to repeat as they are, even when they may have been done: a read that goes
// out as a POST, a write that the server knows by its content. [Retryer.Do] then
// retries resets and time-outs by itself, and the HTTP edge asks for no key.
func Idempotent(ctx context.Context) context.Context { return layer.WithIdempotent(ctx) }

// readContext copies into s what the caller's context says about the call.
func readContext(ctx context.Context, s *State) {
	if d, ok := ctx.Deadline(); ok {
		s.Deadline = earlier(s.Deadline, d)
	}
	if n, ok := ctx.Value(keyMaxRetries{}).(int); ok {
		s.Limit, s.Limited = n, true
	}
	if n, _ := AttemptFrom(ctx); n > 1 {
		s.Inner = true
	}
	// Where safety hangs on the key, the edge knows whether it was sent.
	if s.Key == "" && !s.NeedsKey {
		s.Key = layer.Key(ctx)
	}
}

// earlier returns the earlier of two deadlines, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// newID returns a random correlation id of 32 hex digits, in one allocation.
// math/rand/v2's own source is seeded by the system and hard to guess; an id is
// no secret.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	var digits [32]byte
	hex.Encode(digits[:], b[:])
	return string(digits[:])
}

// AttemptFrom returns the number of the innermost attempt that ctx belongs to, the
// first being 1. ok is false in first attempts, whose contexts carry no number.
func AttemptFrom(ctx context.Context) (number int, ok bool) {
	if a := layer.Of(ctx); a != nil {
		return a.Number, true
	}
	return 0, false
}

// One layer retries: the one right above the dependency. This file is how the
// layers learn of each other; what follows from it is decided in Decide.

// noteExhaustion passes the end of a call on to the request it was made for.
func noteExhaustion(ctx context.Context, d Decision) {
	if d.Reason.Binding() {
		layer.Exhausted(ctx)
	}
}

// watcher is a Retryer as its attempts' contexts know it.
type watcher Retryer

// Repeated implements [layer.Reporter]: it is reported once for each dependency.
func (w *watcher) Repeated(ctx context.Context, attempt, sends int) {
	(*Retryer)(w).layered(ctx, LayeredRetry{Info: Info{Attempt: attempt}, Sends: sends})
}

// retryContext returns the context of attempt number of r's, a retry.
func (r *Retryer) retryContext(ctx context.Context, number int) context.Context {
	a := new(layer.Attempt)
	r.number(ctx, a, number)
	return a
}

// number makes a the context of attempt number of r's.
func (r *Retryer) number(ctx context.Context, a *layer.Attempt, number int) {
	a.Context, a.Dependency, a.Number, a.Reporter = ctx, r.dependency, number, (*watcher)(r)
}
