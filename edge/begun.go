package edge

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// Begun is a response that has begun, of a call that is over: what breaker and health
// gate make of it is still open. It is for protocols that say at the end of a response
// what came of the call, as gRPC does in trailers. It is not safe for concurrent use.
type Begun struct {
	r      *forbear.Retryer
	permit breaker.Permit
	took   time.Duration
	tried  time.Time
}

// Begun ends the call as [Call.Succeed] does, except that breaker and health gate do
// not count the attempt yet: [Begun.Ended] is to be called once.
func (c *Call) Begun(ctx context.Context) Begun {
	l := c.live.Call(key)
	permit, took, tried := l.Begin(ctx)
	return Begun{l.Retryer(), permit, took, tried}
}

// Probe reports whether the attempt was one of those by which a breaker finds out whether
// the dependency is well again: they wait for it.
func (b *Begun) Probe() bool { return b.permit.Probe }

// Ended records how the attempt ended. A failure counts as that of an attempt does; one of
// [forbear.ClassSuccess] counts as a success.
func (b *Begun) Ended(f forbear.Failure) {
	if f.Class == forbear.ClassSuccess {
		b.r.Edge(key).Good(b.permit, b.took, b.tried)
		return
	}
	b.r.Edge(key).Failed(b.permit, &f, time.Now())
}
