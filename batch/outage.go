package batch

import (
	"math"
	"time"

	"github.com/forbear-go/forbear/breaker"
)

// untilProven is for as long as the first probe is under way: one send is enough
// to learn that the dependency is still down.
const untilProven time.Duration = math.MaxInt64

// closed reports whether the breaker, if there is one, lets everything
// through.
func (s *schedule[T]) closed() bool {
	b := s.r.Breaker()
	return b == nil || b.State() == breaker.Closed
}

// shut returns how long nothing is to be sent because the breaker lets nothing
// through. When that outlasts the run's patience, it ends the run.
func (s *schedule[T]) shut(now time.Time) time.Duration {
	if s.closed() {
		return 0
	}
	s.outage.Store(int64(now.Sub(s.began)))
	if s.probing > 0 && !s.proven {
		return untilProven
	}
	wait := s.r.Breaker().Wait(now)
	if wait == 0 {
		return 0
	}
	s.proven = false
	if s.since.IsZero() {
		s.since = now
	}
	if now.Add(wait).Sub(s.since) > s.Patience {
		s.stop(ErrPostponed)
	}
	return wait
}

// outageIn reports whether the breaker has let nothing through at some time since
// the item's first attempt.
func (b *run[T]) outageIn(it *item[T]) bool {
	return time.Duration(b.outage.Load()) >= it.call.State.Start.Sub(b.began)
}
