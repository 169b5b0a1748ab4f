// Package law tells by which law a client draws its waits.
//
// It compares the likelihoods of a few laws: a wait is uniform between a share of its
// ceiling and the ceiling, and the client comes late by an exponential time, for it shares
// the machine with others. A wait that comes late is common and one that comes early is
// not, so that the lower edge decides, and a busy machine changes little.
package law

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Law is how waits are spread below their ceiling.
type Law struct {
	Name string  `json:"name"`
	From float64 `json:"from"` // the lower edge, as a share of the ceiling
}

// The laws that are told apart.
var (
	Full         = Law{"full jitter", 0}
	Half         = Law{"jitter of 50 % around the mean", 1. / 3}
	Equal        = Law{"equal jitter", 1. / 2}
	Proportional = Law{"jitter of 20 % around the mean", 2. / 3}
	Narrow       = Law{"narrow jitter", 0.87}
	None         = Law{"no jitter", 1}
	Immediate    = Law{"no wait", 1}
)

var laws = []Law{Full, Half, Equal, Proportional, Narrow, None}

// Sample are the waits before the first retry, before the second and so on, each of
// several calls.
type Sample [][]time.Duration

// Found is the law that fits best.
type Found struct {
	Law  Law `json:"law"`
	Next Law `json:"next"` // the second best
	// Odds are how much likelier the waits are by Law than by Next, as a power of ten.
	Odds float64 `json:"odds"`
	// Power is how often this test finds the law again, in waits that were drawn by it.
	Power float64 `json:"power"`
	// Waits are how many there were, of so many calls.
	Waits int `json:"waits"`
	Calls int `json:"calls"`
	// Ceilings are those of the waits before each retry.
	Ceilings []time.Duration `json:"ceilings_ns"`
	Growth   Growth          `json:"growth"`
	// Late is how late the client came, on average.
	Late time.Duration `json:"late_ns"`

	likelihood float64
}

const (
	// early is how much before its time a timer may fire.
	early = 2 * time.Millisecond
	// noWait is longer than it takes to send again at once.
	noWait = 20 * time.Millisecond
	// noGrowth is longer than that takes the first time, in a language that compiles while it
	// runs; it takes less and less then.
	noGrowth = 100 * time.Millisecond
	// leastWaits are needed of a retry for it to count.
	leastWaits = 8
)

// lateness are the means of it that are tried.
var lateness = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}

// Find returns the law of a sample; ok is false when there are too few waits.
func Find(s Sample) (f Found, ok bool) {
	waits := seconds(s)
	if len(waits) == 0 {
		return f, false
	}
	f = best(waits)
	f.Growth = grow(f.Law, waits, f.Late.Seconds(), f.likelihood, f.Ceilings)
	const again = 40
	r := rand.New(rand.NewPCG(1, 2))
	for range again {
		if best(draw(r, f, waits)).Law == f.Law {
			f.Power += 1. / again
		}
	}
	return f, true
}

// seconds returns the waits of those retries that many calls have made.
func seconds(s Sample) (waits [][]float64) {
	for _, of := range s {
		if len(of) < leastWaits {
			break
		}
		list := make([]float64, len(of))
		for i, w := range of {
			list[i] = (w + early).Seconds()
		}
		waits = append(waits, list)
	}
	return waits
}

// best finds the law that makes waits likeliest. Each has as much to fit, so that the
// likelihoods compare as they are.
func best(waits [][]float64) (f Found) {
	f.Odds = math.Inf(-1)
	first, second := math.Inf(-1), math.Inf(-1)
	consider := func(law Law, fit fitted) {
		switch {
		case fit.likelihood > first:
			f.Next, second = f.Law, first
			f.Law, first = law, fit.likelihood
			f.Ceilings, f.Late = nil, time.Duration(fit.late*float64(time.Second))
			for _, c := range fit.ceilings {
				f.Ceilings = append(f.Ceilings, max(0, time.Duration(c*float64(time.Second))-early))
			}
		case fit.likelihood > second:
			f.Next, second = law, fit.likelihood
		}
	}
	for _, law := range laws {
		consider(law, fit(law, waits))
	}
	if first, most := f.Ceilings[0], slices.Max(f.Ceilings); f.Law.From >= Equal.From && (most < noWait || most < noGrowth && most == first) {
		f.Law = Immediate
	}
	for _, of := range waits {
		f.Waits += len(of)
	}
	f.likelihood = first
	f.Calls, f.Odds = len(waits[0]), (first-second)/math.Ln10
	return f
}

type fitted struct {
	likelihood float64 // its logarithm
	ceilings   []float64
	late       float64
}

// fit finds the ceilings and the lateness that make waits likeliest by a law.
func fit(law Law, waits [][]float64) fitted {
	top := fitted{likelihood: math.Inf(-1)}
	for _, late := range lateness {
		sum, ceilings := 0., make([]float64, len(waits))
		for i, of := range waits {
			c, l := ceiling(law, of, late)
			ceilings[i] = c
			sum += l
		}
		if sum > top.likelihood {
			top = fitted{sum, ceilings, late}
		}
	}
	return top
}

// ceiling finds the likeliest ceiling of waits before one retry.
func ceiling(law Law, waits []float64, late float64) (c, likelihood float64) {
	least, most := slices.Min(waits), slices.Max(waits)
	low, high := least, most
	if law.From > 0 {
		high = least / law.From // no wait is below the lower edge
	}
	likelihood = math.Inf(-1)
	const steps = 20
	for range 2 { // around the best of the first round once more
		step := (high - low) / steps
		for i := range steps + 1 {
			at := low + float64(i)*step
			if l := loglikelihood(law, waits, at, late); l > likelihood {
				c, likelihood = at, l
			}
		}
		low, high = max(c-step, low), min(c+step, high)
	}
	return c, likelihood
}

// loglikelihood is that of waits with a ceiling, each between its edges and then late.
func loglikelihood(law Law, waits []float64, ceiling, late float64) (sum float64) {
	edge := law.From * ceiling
	for _, w := range waits {
		if law.From == 1 {
			sum -= math.Log(late) + (w-edge)/late
			continue
		}
		p := (math.Exp(-max(0, w-ceiling)/late) - math.Exp(-(w-edge)/late)) / (ceiling - edge)
		if !(p > 1e-300) {
			return math.Inf(-1)
		}
		sum += math.Log(p)
	}
	return sum
}

// draw makes waits of the same number by a law that was found.
func draw(r *rand.Rand, f Found, like [][]float64) [][]float64 {
	waits := make([][]float64, len(like))
	for i := range waits {
		c := (f.Ceilings[i] + early).Seconds()
		from := f.Law.From * c
		for range like[i] {
			waits[i] = append(waits[i], from+(c-from)*r.Float64()+r.ExpFloat64()*f.Late.Seconds())
		}
	}
	return waits
}
