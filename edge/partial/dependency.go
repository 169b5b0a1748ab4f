package partial

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// Sent is one send, as a dependency sees it. Luck belongs to the call and not to the
// dependency, so a policy that sends less often does not shift the luck of later
// calls.
type Sent struct {
	At     time.Duration // since the warm-up
	Caller int           // 0 to Callers-1
	Luck   *rand.Rand    // of the call
}

// Response is what a dependency responds, and how long it takes.
type Response struct {
	Status int
	After  time.Duration
}

// Dependency makes what responds to the sends of one run. It is asked for one
// send at a time, and never during the warm-up, when all goes well.
type Dependency func() func(Sent) Response

// good is a success after 1 to 9 ms. Luck is drawn once for every response, good or
// bad: two policies stay comparable.
func good(luck *rand.Rand) Response {
	return Response{http.StatusOK, time.Millisecond + time.Duration(luck.Int64N(int64(8*time.Millisecond)))}
}

// failing responds with status where bad says so. Failures take as long as
// successes, which keeps the time out of the comparison.
func failing(status int, bad func(Sent) bool) Dependency {
	return func() func(Sent) Response {
		return func(s Sent) Response {
			r := good(s.Luck)
			if bad(s) {
				r.Status = status
			}
			return r
		}
	}
}

// Random fails this share of the sends, 0 to 1, with 503. It is the plainest case:
// no send tells anything about the next.
func Random(share float64) Dependency {
	return failing(http.StatusServiceUnavailable, func(s Sent) bool { return s.Luck.Float64() < share })
}

// InBursts fails everything for so long at the end of each period. They are short
// outages, which a breaker sees and an average over minutes does not.
func InBursts(lasts, period time.Duration) Dependency {
	return failing(http.StatusServiceUnavailable, func(s Sent) bool { return s.At%period >= period-lasts })
}

// Flapping is down for one half of the time, with 503, and up for the other, by
// turns. It begins down or up: the waits of a breaker may keep in step with it.
func Flapping(half time.Duration, down bool) Dependency {
	return failing(http.StatusServiceUnavailable, func(s Sent) bool { return (s.At/half%2 == 0) == down })
}

// OneOfFive is five instances behind one name, of which one fails everything.
// Each send reaches one of them by chance, or, when sticky, each caller always
// the same. Sticky is the harder case for a breaker: a fifth of the callers see an
// outage and the rest see nothing.
func OneOfFive(sticky bool) Dependency {
	return failing(http.StatusServiceUnavailable, func(s Sent) bool {
		if sticky {
			return s.Caller%5 == 0
		}
		return s.Luck.IntN(5) == 0
	})
}

// Slow takes so long for a tenth of the sends. Where that is longer than the
// attempt's timeout, the send counts as failed.
func Slow(after time.Duration) Dependency {
	return func() func(Sent) Response {
		return func(s Sent) Response {
			r := good(s.Luck)
			if s.Luck.IntN(10) == 0 {
				r.After = after
			}
			return r
		}
	}
}

// Limited lets so many sends a second through and responds to the rest with 429:
// a bucket that holds the tokens of one second.
func Limited(perSecond float64) Dependency {
	return func() func(Sent) Response {
		tokens, last := perSecond, time.Duration(0)
		return func(s Sent) Response {
			tokens = min(tokens+perSecond*(s.At-last).Seconds(), perSecond)
			last = s.At
			r := good(s.Luck)
			if tokens < 1 {
				r.Status = http.StatusTooManyRequests
				return r
			}
			tokens--
			return r
		}
	}
}

// LimitedBySecond lets the first so many sends of each second through and
// responds to the rest of that second with 429. Many real limiters work so, and
// reject in one block at the end of each second.
func LimitedBySecond(perSecond float64) Dependency {
	return func() func(Sent) Response {
		second, taken := time.Duration(-1), 0.0
		return func(s Sent) Response {
			if now := s.At / time.Second; now != second {
				second, taken = now, 0
			}
			r := good(s.Luck)
			if taken++; taken > perSecond {
				r.Status = http.StatusTooManyRequests
			}
			return r
		}
	}
}
