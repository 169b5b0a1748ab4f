// Package law tells by which law a client draws its waits.
//
// It compares the likelihoods of a few laws: a wait is uniform between a share of its
// ceiling and the ceiling, and the client comes late by an exponential time, for it shares
// the machine with others. A wait that comes late is common and one that comes early is
// not, so that the lower edge decides, and a busy machine changes little.
package law

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Law is how waits are spread below their ceiling.
type Law struct {
	Name string  `json:"name"`
	From float64 `json:"from"` // the lower edge, as a share of the ceiling
	// Size is how much lower the edge is, in seconds, whatever the ceiling.
	Size float64 `json:"size,omitempty"`
}

// String is the name of the law, with the size that it has.
func (l Law) String() string {
	if l.Size == 0 {
		return l.Name
	}
	return fmt.Sprintf("%s (about %.0fms)", l.Name, 1000*l.Size)
}

// Edge is the lower edge below a ceiling, both in seconds.
func (l Law) Edge(ceiling float64) float64 { return l.From*ceiling - l.Size }

// The laws that are told apart.
var (
	Full         = Law{Name: "full jitter", From: 0}
	Half         = Law{Name: "jitter of 50 % around the mean", From: 1. / 3}
	Equal        = Law{Name: "equal jitter", From: 1. / 2}
	Proportional = Law{Name: "jitter of 20 % around the mean", From: 2. / 3}
	Narrow       = Law{Name: "narrow jitter", From: 0.87}
	None         = Law{Name: "no jitter", From: 1}
	Added        = Law{Name: "jitter of a fixed size", From: 1}
	Immediate    = Law{Name: "no wait", From: 1}
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
	// ToFull are those by which the waits are likelier than by [Full]; 0 when that is Law.
	ToFull float64 `json:"odds_to_full"`
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

	fit fitted
}

const (
	// early is how much before its time a timer may fire.
	early = 2 * time.Millisecond
	// noWait is longer than it takes to send again at once.
	noWait = 20 * time.Millisecond
	// noGrowth is longer than that takes the first time, in a language that compiles while it
	// runs; it takes less and less then.
	noGrowth = 100 * time.Millisecond
	// oneMore is by how much a law with one thing more to fit has to be likelier.
	oneMore = 3
	// leastSize is that of an added jitter, in seconds, which a client's own work does not hide.
	leastSize = 0.08
	// leastWaits are needed of a retry for it to count.
	leastWaits = 8
)

// A few come much later, since a machine that is busy is so by bursts.
const strays, stray = 0.1, 0.3

// lateness are the means of it that are tried.
var lateness = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64}

// Find returns the law of a sample; ok is false when there are too few waits.
func Find(s Sample) (f Found, ok bool) {
	waits := seconds(s)
	if len(waits) == 0 {
		return f, false
	}
	f = best(waits)
	f.Growth = f.grow(waits)
	f.Power = power(f, waits)
	return f, true
}

// power draws samples by a law that was found, and returns in what share of them it is
// found again.
func power(f Found, waits [][]float64) float64 {
	const draws = 20
	var right atomic.Int64
	var wg sync.WaitGroup
	for i := range draws {
		wg.Go(func() {
			if best(draw(rand.New(rand.NewPCG(1, uint64(i))), f, waits)).Law.Name == f.Law.Name {
				right.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(right.Load()) / draws
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
	first, second, full := math.Inf(-1), math.Inf(-1), math.Inf(-1)
	consider := func(law Law, fit fitted) {
		switch {
		case fit.likelihood > first:
			f.Next, second = f.Law, first
			f.Law, f.fit, first = law, fit, fit.likelihood
			f.Ceilings, f.Late = nil, time.Duration(fit.late*float64(time.Second))
			for _, c := range fit.ceilings {
				f.Ceilings = append(f.Ceilings, max(0, time.Duration(c*float64(time.Second))-early))
			}
		case fit.likelihood > second:
			f.Next, second = law, fit.likelihood
		}
	}
	for _, law := range laws {
		fit := fit(law, waits)
		if consider(law, fit); law == Full {
			full = fit.likelihood
		}
	}
	if law, fit := added(waits); fit.likelihood > first+oneMore {
		consider(law, fit)
	}
	if first, most := f.Ceilings[0], slices.Max(f.Ceilings); most < noWait || f.Law != Full && most < noGrowth && most == first {
		f.Law = Immediate
	}
	for _, of := range waits {
		f.Waits += len(of)
	}
	f.Calls, f.Odds = len(waits[0]), (first-second)/math.Ln10
	f.ToFull = (first - full) / math.Ln10
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

// added finds the size of a jitter that is the same before each retry, and fits it. One
// retry does not show it: any law could be that. Nor is what is mostly jitter one that is
// added to something.
func added(waits [][]float64) (law Law, top fitted) {
	top.likelihood = math.Inf(-1)
	if len(waits) < 2 {
		return law, top
	}
	try := func(size float64) {
		l := Added
		l.Size = size
		fit := fit(l, waits)
		if least := slices.Min(fit.ceilings) - size; least > size/2 && fit.likelihood > top.likelihood {
			law, top = l, fit
		}
	}
	for size := leastSize; size < 2; size *= 1.5 {
		try(size)
	}
	for around, i := law.Size, -2; i <= 2; i++ {
		try(max(leastSize, around*math.Pow(1.15, float64(i))))
	}
	return law, top
}

// ceiling finds the likeliest ceiling of waits before one retry.
func ceiling(law Law, waits []float64, late float64) (c, likelihood float64) {
	least, most := slices.Min(waits), slices.Max(waits)
	low, high := least, most
	if law.From > 0 {
		high = (least + law.Size) / law.From // no wait is below the lower edge
	}
	likelihood = math.Inf(-1)
	const steps = 14
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
	edge := law.Edge(ceiling)
	product := 1. // of a few: logarithms cost more
	for _, w := range waits {
		p := (1-strays)*density(w, edge, ceiling, late) + strays*density(w, edge, ceiling, stray)
		p = max(p, 1e-100)
		if product *= p; product < 1e-100 || product > 1e100 {
			sum, product = sum+math.Log(product), 1
		}
	}
	return sum + math.Log(product)
}

// density is that of a wait between two edges with an exponential lateness.
func density(w, edge, ceiling, late float64) float64 {
	switch {
	case w < edge:
		return 0
	case edge == ceiling:
		return math.Exp(-(w-edge)/late) / late
	case w <= ceiling:
		return (1 - math.Exp(-(w-edge)/late)) / (ceiling - edge)
	}
	return (math.Exp(-(w-ceiling)/late) - math.Exp(-(w-edge)/late)) / (ceiling - edge)
}

// draw makes waits of the same number by a law that was found.
func draw(r *rand.Rand, f Found, like [][]float64) [][]float64 {
	waits := make([][]float64, len(like))
	for i := range waits {
		c := (f.Ceilings[i] + early).Seconds()
		from := f.Law.Edge(c)
		for range like[i] {
			late := f.Late.Seconds()
			if r.Float64() < strays {
				late = stray
			}
			waits[i] = append(waits[i], from+(c-from)*r.Float64()+r.ExpFloat64()*late)
		}
	}
	return waits
}
