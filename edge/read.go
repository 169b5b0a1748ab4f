package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/health"
	"github.com/forbear-go/forbear/pace"
)

// This file is what metrics, admin pages and sources of work read of a Retryer.

// Ready waits until r's circuit breaker would let an attempt through, and returns
// within a second of that. It is for sources of work, which fetch nothing meanwhile
// instead of postponing piece by piece; the attempt itself is still asked for. The
// error is that of ctx and its cause.
func Ready(ctx context.Context, r *forbear.Retryer) error { return r.Edge(key).Ready(ctx) }

// Health reads the health gates, the policy's and the caller's; ok is false where
// there is none.
func Health(r *forbear.Retryer, now time.Time) (reading health.Reading, ok bool) {
	return r.Edge(key).Health(now)
}

// Pacer returns what paces the sends of r, or nil: see forbear.WithPacer.
func Pacer(r *forbear.Retryer) *pace.Pacer { return r.Edge(key).Pacer() }

// Earned returns how many retries beyond the budget's share the dependency has earned by
// its successes; always 0 for work that is not durable.
func Earned(r *forbear.Retryer, now time.Time) int { return r.Edge(key).Earned(now) }

// LayeredSends returns how many sends other layers have added by themselves so far, as
// far as it was noticed.
func LayeredSends(r *forbear.Retryer) int64 { return r.Edge(key).LayeredSends() }

// Refund gives back a retry that forbear.Retryer.Next has granted and that was not sent.
func Refund(r *forbear.Retryer, d forbear.Decision, now time.Time) { r.Edge(key).Refund(d, now) }

// ClassifyNet recognizes the network failures of through any wrapping, by type
// and never by message, but for those of net/http that have no type of their own. ok is
// false for an error that it does not know. It fits forbear.WithClassifier for operations
// that are safe to repeat; the HTTP and gRPC edges use it by themselves. A context error
// is taken for the attempt's own timeout: whether the caller has ended is for the edge to
// know.
func ClassifyNet(err error) (f forbear.Failure, ok bool) { return none.Edge(key).Net(err) }

// Outcome returns how a circuit breaker counts f; counts is false for a failure that
// says nothing about the dependency.
func Outcome(f *forbear.Failure) (o breaker.Outcome, counts bool) { return none.Edge(key).Outcome(f) }

// none is the Retryer of what asks none.
var none *forbear.Retryer

// Sentinel returns what errors.Is finds in the error of a call that ended for the given
// reason, such as forbear.ErrExhausted, or nil.
func Sentinel(why forbear.Reason) error { return none.Edge(key).Sentinel(why) }
