package forbeartest

import (
	"math"
	"slices"
	"time"
)

// Fault is what is wrong with the waits of a retry loop.
type Fault string

const (
	FaultNone   Fault = "none"                   // nothing, as far as these waits show
	FaultFixed  Fault = "fixed"                  // all waits are alike
	FaultExact  Fault = "no_jitter"              // the waits follow a formula, without chance
	FaultEqual  Fault = "equal_jitter_suspected" // none is below half of the ceiling
	FaultNarrow Fault = "narrow_jitter"          // a little chance around one value
)

const (
	// minSample waits are needed for a verdict about their spread: full
	// jitter keeps ten draws above half of the ceiling once in 1,024 times.
	minSample = 10
	// narrow is the fraction of the ceiling above which no wait of plus or
	// minus 20 % falls, and only one in fifty samples of ten of equal jitter.
	narrow = 0.66
	// noise is what clocks and schedulers add to a wait.
	noise = 0.01
)

// JitterFault judges waits that were drawn under the same ceiling, one for each
// of many calls: the first wait of each, for example. R-1 wants full jitter,
// uniform in [0, ceiling]; fixed waits and equal jitter are forbidden. Fewer
// than ten waits say nothing but whether they are fixed.
func JitterFault(waits []time.Duration, ceiling time.Duration) Fault {
	if len(waits) < 2 || ceiling <= 0 {
		return FaultNone
	}
	low, high := slices.Min(waits), slices.Max(waits)
	switch lowest := float64(low) / float64(ceiling); {
	case float64(high-low) <= noise*float64(ceiling):
		return FaultFixed
	case len(waits) < minSample:
		return FaultNone
	case lowest >= narrow:
		return FaultNarrow
	case lowest >= 0.5:
		return FaultEqual
	}
	return FaultNone
}

// SequenceFault judges the consecutive waits of one call: three or more that
// are alike, or that grow by one factor or by one step up to a cap, have no
// jitter.
func SequenceFault(waits []time.Duration) Fault {
	if len(waits) < 3 {
		return FaultNone
	}
	first, second := float64(waits[0]), float64(waits[1])
	if same(waits, func(int) float64 { return first }) {
		return FaultFixed
	}
	limit := float64(slices.Max(waits))
	factor, step := second/max(first, 1), second-first
	// Two waits fit any factor: a third one must confirm it before the cap.
	if float64(waits[2]) >= limit*(1+noise) || second >= limit*(1-noise) && len(waits) < 4 {
		return FaultNone
	}
	grows := func(i int) float64 { return min(first*math.Pow(factor, float64(i)), limit) }
	climbs := func(i int) float64 { return min(first+step*float64(i), limit) }
	if factor > 1 && (same(waits, grows) || same(waits, climbs)) {
		return FaultExact
	}
	return FaultNone
}

// same reports whether each wait is what formula says, but for noise.
func same(waits []time.Duration, formula func(i int) float64) bool {
	for i, w := range waits {
		want := formula(i)
		if math.Abs(float64(w)-want) > noise*max(want, float64(time.Millisecond)) {
			return false
		}
	}
	return true
}
