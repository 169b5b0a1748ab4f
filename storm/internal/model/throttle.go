package model

import (
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// Throttle is the client-side throttle of the SRE book, chapter 21: the fewer requests
// the dependency accepts, the more the client refuses itself. A request that it refuses
// counts as a request all the same.
type Throttle struct {
	k                 float64
	requests, accepts *window.Exact
}

// NewThrottle returns a throttle with multiplier k over a rolling window. The book has
// 2 and two minutes; a smaller k refuses sooner.
func NewThrottle(k float64, over time.Duration) *Throttle {
	return &Throttle{k: k, requests: window.NewExact(over), accepts: window.NewExact(over)}
}

// Request records a request, sent or refused.
func (t *Throttle) Request(now time.Time) { t.requests.Add(now, 1) }

// Accepted records that the dependency took a request, whatever its response.
func (t *Throttle) Accepted(now time.Time) { t.accepts.Add(now, 1) }

// RejectProbability returns the chance that a request made now should be refused
// without being sent: (requests - k x accepts) / (requests + 1), and not below 0.
func (t *Throttle) RejectProbability(now time.Time) float64 {
	requests := float64(t.requests.Sum(now))
	return max(0, (requests-t.k*float64(t.accepts.Sum(now)))/(requests+1))
}
