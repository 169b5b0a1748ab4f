package health

import (
	"time"

	"github.com/forbear-go/forbear/internal/finite"
	"github.com/forbear-go/forbear/internal/score"
	"github.com/forbear-go/forbear/internal/window"
)

// Gate counts good and failed attempts and says whether retries may go on. It
// reads no clock, takes no lock and allocates nothing once made. It is safe for
// concurrent use.
type Gate struct {
	policy Policy
	// Good attempts are counted all the time, failed ones now and then: only the
	// former are spread over the processors.
	good, failed *window.Sharded
}

// New returns a gate that has seen nothing, and is healthy. Zero fields of p are
// taken as they are; [Policy.WithDefaults] fills them in. It panics when MinSuccess is
// NaN or infinite.
func New(p Policy) *Gate {
	finite.Must("health: min_success", p.MinSuccess)
	return &Gate{policy: p, good: window.NewSharded(p.Window), failed: window.NewSingle(p.Window)}
}

// Record counts the end of an attempt, first or later. What says nothing about the
// dependency, such as a caller's own cancellation, is not to be counted.
func (g *Gate) Record(good bool, now time.Time) {
	if good {
		g.good.Add(now, 1)
	} else {
		g.failed.Add(now, 1)
	}
}

// RecordGoodAt is Record for a good attempt that began so long after the windows'
// epoch: the engine's success path reads no clock for it.
func (g *Gate) RecordGoodAt(began time.Duration) { g.good.AddAt(began, 1) }

// Healthy reports whether retries may go on: the window holds too few attempts, or
// chance explains that so many of them failed. A limit that is merely passed would
// stop, every few seconds, the retries of a partial failure that they cure.
func (g *Gate) Healthy(now time.Time) bool {
	failed := g.failed.Sum(now)
	if failed == 0 {
		return true
	}
	// Read last: what is added in between speaks for the dependency.
	n := failed + g.good.Sum(now)
	return n < int64(g.policy.MinCalls) || !score.Exceeds(failed, n, 1-g.policy.MinSuccess, score.Certain)
}

// Rate returns the share of good attempts in the window, 0 to 1, and 1 for a
// window without any: the plain rate, whatever can be concluded from it.
func (g *Gate) Rate(now time.Time) float64 {
	failed := g.failed.Sum(now)
	n := failed + g.good.Sum(now)
	if n == 0 {
		return 1
	}
	return 1 - float64(failed)/float64(n)
}

// Reading is what the health gates of one Retryer say at one moment.
type Reading struct {
	// Healthy says that retries may go on.
	Healthy bool
	// Rate is the share of good attempts in the gate's window, 0 to 1. It is
	// there only where the policy sets a limit, which Counted says: a gate of the
	// caller's counts nothing.
	Rate    float64
	Counted bool
}
