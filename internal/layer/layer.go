// Package layer is how the layers of a call learn of each other, inside one
// process: which attempt a context belongs to, whether a call made under a request
// has used up its retries, and whether something in between repeats requests by
// itself. One layer retries, the one right above the dependency; what follows from
// what is learned here is decided by the engine.
package layer

import (
	"context"
	"sync"
	"sync/atomic"
)

type key uint8

const (
	keyAttempt key = iota
	keyExhaustion
	keyIdempotency
	keyIdempotent
	keyCorrelation
)

// Attempt is a context that belongs to one attempt of a call: the context and what
// it carries in one allocation.
type Attempt struct {
	context.Context
	Dependency string
	Number     int // the first is 1
	// Reporter hears of requests that are sent more than once; nil when the
	// number came from the wire.
	Reporter Reporter

	sends sends
}

// Reporter is the layer whose attempt it is.
type Reporter interface {
	// Repeated is called when a request was sent so often within one attempt.
	Repeated(ctx context.Context, attempt, sends int)
}

// Value implements [context.Context].
func (a *Attempt) Value(k any) any {
	if k == keyAttempt {
		return a
	}
	return a.Context.Value(k)
}

// Of returns the innermost attempt that ctx belongs to, or nil: the contexts of first
// attempts carry no number.
func Of(ctx context.Context) *Attempt {
	a, _ := ctx.Value(keyAttempt).(*Attempt)
	return a
}

// NoteSend notes that the request identified by id is being sent under ctx.
// Protocol edges call it for each logical send. The same request twice within one
// attempt means that something in between, such as an SDK, retries by itself: the
// layers multiply.
func NoteSend(ctx context.Context, id uint64) {
	a := Of(ctx)
	if a == nil || a.Reporter == nil {
		return
	}
	if n := a.sends.note(id); n > 1 {
		a.Reporter.Repeated(ctx, a.Number, n)
	}
}

// sends counts the requests of one attempt by their identity. The zero value
// has seen none, and takes hardly any room: most attempts never use it.
type sends struct {
	mu   sync.Mutex
	seen []sent
}

type sent struct {
	id uint64
	n  int
}

// maxSends bounds how many different requests one attempt is watched for.
const maxSends = 8

func (s *sends) note(id uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.seen {
		if s.seen[i].id == id {
			s.seen[i].n++
			return s.seen[i].n
		}
	}
	if len(s.seen) < maxSends {
		s.seen = append(s.seen, sent{id, 1})
	}
	return 1
}

// Exhaustion says whether the calls made on behalf of one request have used up
// their retries below it. The layer above should then not begin its own. It is safe
// for concurrent use.
type Exhaustion struct{ below atomic.Bool }

// Below reports whether a call under the watched context ended exhausted.
func (e *Exhaustion) Below() bool { return e.below.Load() }

// Watch returns a context for the work on one inbound request, and what becomes
// known of the calls made under it.
func Watch(ctx context.Context) (context.Context, *Exhaustion) {
	e := &Exhaustion{}
	return context.WithValue(ctx, keyExhaustion, e), e
}

// Exhausted notes that a call made under ctx has used up its retries.
func Exhausted(ctx context.Context) {
	if e, ok := ctx.Value(keyExhaustion).(*Exhaustion); ok {
		e.below.Store(true)
	}
}

// MaxKeyLen is the longest idempotency key that the standard allows.
const MaxKeyLen = 64

// WithKey names the idempotency key that the operation under the returned context
// carries.
func WithKey(ctx context.Context, idempotencyKey string) context.Context {
	return context.WithValue(ctx, keyIdempotency, idempotencyKey)
}

// Key returns the key that [WithKey] put into ctx, or "".
func Key(ctx context.Context) string {
	k, _ := ctx.Value(keyIdempotency).(string)
	return k
}

// WithIdempotent says of the operation under the returned context that it is safe
// to repeat as it is.
func WithIdempotent(ctx context.Context) context.Context {
	return context.WithValue(ctx, keyIdempotent, true)
}

// Idempotent reports whether [WithIdempotent] has said so.
func Idempotent(ctx context.Context) bool { return ctx.Value(keyIdempotent) != nil }

// WithCorrelation names the logical operation that calls under the returned context
// belong to.
func WithCorrelation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyCorrelation, id)
}

// Correlation returns the name that [WithCorrelation] put into ctx, or "".
func Correlation(ctx context.Context) string {
	id, _ := ctx.Value(keyCorrelation).(string)
	return id
}
