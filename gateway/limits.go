package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// Limits bounds the calls of one route. The zero value sets no bound of its own.
type Limits struct {
	// Timeout bounds a call up to the end of its response; 0 leaves that to the policy,
	// which bounds it up to the headers.
	Timeout time.Duration
	// MaxBody bounds the body of a request, in bytes. A longer one is refused with 413.
	MaxBody int64
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
	case l.Timeout < 0 || l.MaxBody < 0 || l.MaxConcurrent < 0:
		return errors.New("a limit is negative")
	case l.Stream && l.Timeout > 0:
		return errors.New("a stream has no time-out: it would end in the middle")
	}
	return nil
}

// enter lets a call of a route begin under its limits: with the context to go on with
// and what ends it, or the problem of a call that may not begin.
func (rt *route) enter(ctx context.Context, x *incoming, w http.ResponseWriter) (_ context.Context, leave func(), ok bool) {
	if rt.MaxBody > 0 && x.in.ContentLength > rt.MaxBody {
		w.Header().Set("Connection", "close") // the body is not read
		x.problem(w, bodyTooLarge)
		return ctx, nil, false
	}
	if rt.places != nil && !rt.places.Enter() {
		w.Header().Set("Retry-After", "1")
		x.problem(w, rt.full())
		return ctx, nil, false
	}
	if rt.places == nil && rt.Timeout == 0 {
		return ctx, func() {}, true
	}
	cancel := context.CancelFunc(func() {})
	if rt.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, rt.Timeout)
	}
	return ctx, func() {
		cancel()
		if rt.places != nil {
			rt.places.Leave()
		}
	}, true
}

// newPlaces returns the places of a route, nil for any number.
func newPlaces(n int) *breaker.Bulkhead {
	if n == 0 {
		return nil
	}
	return breaker.NewBulkhead(n)
}
