package breaker

import (
	"time"

	"github.com/forbear-go/forbear/internal/enum"
	"github.com/forbear-go/forbear/internal/score"
)

// This file says whether what the windows show is too much: the arithmetic of the
// circuit breaker.

// Cause is why a circuit breaker moved.
type Cause uint8

const (
	CauseNone         Cause = iota
	CauseFailures           // opened: too many attempts failed
	CauseSlow               // opened: too many were slow
	CauseBudget             // opened: the retry budget is spent, and the policy says immediate
	CauseProbe              // opened again: a probe failed
	CauseWaited             // half-open: its wait is over
	CauseRecovered          // closed: all probes succeeded
	CauseOperator           // moved by hand
	CauseOtherProcess       // opened: another process found the dependency down
)

var causeNames = []string{"", "failures", "slow_calls", "budget", "probe_failed", "waited", "recovered", "operator", "other_process"}

// String returns the name that logs and metrics use.
func (c Cause) String() string { return enum.Name(causeNames, uint8(c)) }

// MarshalText implements [encoding.TextMarshaler].
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// striking is the square of five standard deviations: what the latest calls must
// show beside a busy minute.
const striking = 5 * 5

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
	if nLately >= least && score.Exceeds(badLately, nLately, limit, score.Certain) {
		return true, nLately >= busy*n
	}
	if n < least || !score.Exceeds(bad, n, limit, score.Certain) {
		return false, false
	}
	// Among thousands of hundreds there is a bad one by chance: in a busy
	// time the latest must strike even beside the others.
	return nLately < busy*n || score.Exceeds(bad, n, float64(badLately)/float64(nLately), striking), false
}
