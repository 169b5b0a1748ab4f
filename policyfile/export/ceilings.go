package export

import (
	"math"
	"strings"
	"time"
)

// ceilings writes the longest waits of n retries, "1s, 2s and 4s". growth is by how many times
// the base each of them exceeds it, before the cap.
func ceilings(base, most time.Duration, n int, growth func(retry int) float64) string {
	all := make([]string, n)
	for i := range all {
		all[i] = time.Duration(min(float64(base)*growth(i+1), float64(most))).String()
	}
	if n < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
}

// doubled is R-1's growth: 1, 2, 4.
func doubled(retry int) float64 { return math.Exp2(float64(retry - 1)) }

// documented is the growth in the documentation of Envoy's router: 1, 3, 7.
func documented(retry int) float64 { return math.Exp2(float64(retry)) - 1 }

// steps are the ceilings of the policy for n retries.
func (t *target) steps(n int) string {
	return ceilings(t.p.Backoff.Base, t.p.Backoff.Cap, n, doubled)
}

// envoyWaits names what becomes of the ceilings in Envoy, which has none over most. Its
// documentation and its code differ: the code of 1.38 (backoff_strategy.cc) doubles, as R-1
// does.
func (w *writer) envoyWaits(t *target, most time.Duration) {
	policy, written := t.steps(t.retries), ceilings(t.p.Backoff.Base, most, t.retries, documented)
	if policy == written {
		return
	}
	w.lose("R-1", "Envoy's documentation has waits of up to "+written+", not "+policy,
		"full jitter from the policy's base; the code of Envoy 1.38 stays below "+ceilings(t.p.Backoff.Base, most, t.retries, doubled))
}
