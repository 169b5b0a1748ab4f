package breaker

import (
	"time"

	"github.com/forbear-go/forbear/internal/enum"
)

// This file says when a rate is too high: the arithmetic of the circuit breaker.

// Cause is why a circuit breaker moved.
type Cause uint8

const (
	CauseNone      Cause = iota
	CauseFailures        // opened: too many attempts failed
	CauseSlow            // opened: too many were slow
	CauseBudget          // opened: the retry budget is spent, and the policy says immediate
	CauseProbe           // opened again: a probe failed
	CauseWaited          // half-open: its wait is over
	CauseRecovered       // closed: all probes succeeded
	CauseOperator        // moved by hand
)

var causeNames = []string{"", "failures", "slow_calls", "budget", "probe_failed", "waited", "recovered", "operator"}

// String returns the name that logs and metrics use.
func (c Cause) String() string { return enum.Name(causeNames, uint8(c)) }

// MarshalText implements [encoding.TextMarshaler].
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A rate that was counted is not the rate itself: of a hundred calls to a
// dependency that fails 40 %, fifty fail every few seconds. So a rate opens the
// breaker only when chance would hardly explain it.
const (
	// certain is the square of the quantile at 99.9 %, one-sided: Wilson's
	// lower bound of that confidence lies above a threshold p when the rate
	// exceeds p by more than that many variances p(1-p)/n (the score test).
	certain = 3.0902323 * 3.0902323
	// striking is the square of five standard deviations.
	striking = 5 * 5
)

// exceeds reports whether n calls of which bad are bad show that their rate is
// above p, where z2 is the square of the standard deviations demanded.
func exceeds(bad, n int64, p, z2 float64) bool {
	over := float64(bad) - p*float64(n)
	return over > 0 && over*over > z2*p*(1-p)*float64(n)
}

// verdict is what the windows show.
type verdict struct {
	cause Cause // why the breaker is to open, or CauseNone
	calm  bool  // the latest rates are below their thresholds: what a minute holds is over
	sure  bool  // a busy minute shows it, which no moment does
	// limited says that most of the latest failures are a limit's, and that
	// the limit lets something through.
	limited bool
}

func (p *Policy) verdict(w *outcomes, now time.Time) verdict {
	latest := w.latest()
	failures := float64(latest.failed) > p.FailureRate*float64(latest.calls)
	slowness := float64(latest.slow) > p.SlowRate*float64(latest.calls)
	if !failures && !slowness {
		return verdict{calm: true}
	}
	lately := w.lately(now)
	if failures {
		if many, sure := p.tooMany(latest.failed, lately.failed, latest.calls, lately.calls, p.FailureRate); many {
			return verdict{cause: CauseFailures, sure: sure, limited: 2*latest.limited > latest.failed && lately.failed < lately.calls}
		}
	}
	if slowness {
		if many, sure := p.tooMany(latest.slow, lately.slow, latest.calls, lately.calls, p.SlowRate); many {
			return verdict{cause: CauseSlow, sure: sure}
		}
	}
	return verdict{}
}

// tooMany judges one kind of bad outcome: bad of the latest n calls, and
// badLately of those nLately that came lately.
func (p *Policy) tooMany(bad, badLately, n, nLately int64, limit float64) (many, sure bool) {
	const busy = 10
	least := int64(p.MinCalls)
	if nLately >= least && exceeds(badLately, nLately, limit, certain) {
		return true, nLately >= busy*n
	}
	if n < least || !exceeds(bad, n, limit, certain) {
		return false, false
	}
	// Who looks at thousands of hundreds finds a bad one among them: in a busy
	// time the latest must strike even beside the others.
	return nLately < busy*n || exceeds(bad, n, float64(badLately)/float64(nLately), striking), false
}
