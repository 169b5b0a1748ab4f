package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/inbound"
)

// Limits bounds the calls of one route. The zero value sets no bound of its own.
type Limits struct {
	// Timeout bounds a call up to the end of its response; 0 leaves that to the policy,
	// which bounds it up to the headers.
	Timeout time.Duration
	// MaxBody bounds the body of a request, in bytes. A longer one is refused with 413.
	MaxBody int64
	// BodyLimit is how many bytes of a request's body are kept to send it again; 0 means
	// 64 KiB, or what [Config.Options] say. A longer body is sent once. All bodies
	// together are bounded by 256 MiB for each Gateway, unless
	// [httpretry.WithBodyMemory] is among those options.
	BodyLimit int64
	// MaxConcurrent is how many calls of the route may be under way. Further ones are
	// refused with 503; those of other routes are not affected.
	MaxConcurrent int
	// Stream says that bodies are streams: each part goes on at once, in both
	// directions, and they may stand still for any time.
	Stream bool
}

// check says what is wrong with the limits.
func (l Limits) check() error {
	switch {
	case l.Timeout < 0 || l.MaxBody < 0 || l.BodyLimit < 0 || l.MaxConcurrent < 0:
		return errors.New("a limit is negative: leave it out for none")
	case l.Stream && l.Timeout > 0:
		return errors.New("a route for streams cannot have a timeout, which would cut streams off: drop one of the two")
	}
	return nil
}

// enter lets a call begin: it returns the call's context, which ends when the time runs
// out that the caller and the route leave it, and what is called at its end. It responds
// to a call that may not begin.
func (x *request) enter(w http.ResponseWriter) (_ context.Context, leave func(), ok bool) {
	rt, h := x.route, x.in.Header
	var due time.Time // zero for never
	bound := func(end time.Time) {
		if due.IsZero() || end.Before(due) {
			due = end
		}
	}
	if timeout, ok := grpcwire.ParseTimeout(h[grpcwire.HeaderTimeout]); ok && x.rpc != nil {
		bound(time.Now().Add(timeout - margin(timeout)))
	}
	if deadline, ok := inbound.Deadline(h[httpretry.HeaderDeadline]); ok {
		left := time.Until(deadline)
		if left <= httpretry.SafetyMargin {
			w.Header().Set(httpretry.HeaderNoRetry, httpretry.NoRetryDeadline)
			x.problem(w, newProblem(http.StatusGatewayTimeout, "deadline", "No time left", inbound.Lateness(left)))
			return nil, nil, false
		}
		// What is kept is for the gateway's own response. The transport takes as
		// much off again for the dependency's.
		bound(deadline.Add(-httpretry.SafetyMargin))
	}
	if rt.Timeout > 0 {
		bound(time.Now().Add(rt.Timeout))
	}
	if rt.MaxBody > 0 && x.in.ContentLength > rt.MaxBody {
		w.Header().Set("Connection", "close") // the body is not read
		x.problem(w, bodyTooLarge)
		return nil, nil, false
	}
	if rt.places != nil && !rt.places.Enter() {
		w.Header().Set("Retry-After", "1")
		x.problem(w, rt.full())
		return nil, nil, false
	}
	ctx := inbound.Retry(x, rt.Retryer.Dependency(), h)
	if due.IsZero() && rt.places == nil {
		return ctx, func() {}, true
	}
	cancel := context.CancelFunc(func() {})
	if !due.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, due)
	}
	return ctx, func() {
		cancel()
		if rt.places != nil {
			rt.places.Leave()
		}
	}, true
}
