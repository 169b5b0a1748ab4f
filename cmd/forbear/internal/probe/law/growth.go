package law

import (
	"math"
	"slices"
	"time"
)

// Growth is how ceilings grow from one retry to the next.
type Growth struct {
	// Factor is 0 where the ceilings follow none of those that are tried.
	Factor float64 `json:"factor"`
	// Base is the first ceiling, which is in 99.9 % of samples within Low and High.
	Base time.Duration `json:"base_ns"`
	Low  time.Duration `json:"low_ns"`
	High time.Duration `json:"high_ns"`
	// Cap is the ceiling that later ones do not pass; 0 where none was seen.
	Cap time.Duration `json:"cap_ns,omitempty"`
}

// factors are those that are tried, the commonest first.
var factors = []float64{2, 1, 1.5, 3}

// unlikely is by how much a logarithm of a likelihood may be below the greatest: half of the
// quantile of chi squared for 99.9 % with two degrees of freedom, for the edge of a uniform
// law counts twice, and with four.
const unlikely, unlikely2 = 6.91, 9.23

// grow finds the growth of what was found. Below a jitter of a fixed size grows what it is
// added to.
func (f *Found) grow(waits [][]float64) Growth {
	if f.Law.Size == 0 {
		return grow(f.Law, waits, f.fit, 0)
	}
	unseen := f.Law.Size / 4 // 24 waits are all above that in one of a thousand samples
	g := grow(None, waits, fit(None, waits), unseen)
	g.Low -= time.Duration(unseen * float64(time.Second))
	return g
}

// grow finds the growth that explains the waits as well as ceilings of their own do, or
// follows these to within slack seconds.
func grow(law Law, waits [][]float64, free fitted, slack float64) Growth {
	n := len(waits)
	for capped := n; capped > 0 && capped >= n-2; capped-- { // from which retry on the cap holds
		for _, factor := range factors {
			if factor == 1 && capped < n {
				continue
			}
			shape := make([]float64, n)
			for i := range shape {
				shape[i] = math.Pow(factor, float64(min(i, capped)))
			}
			base, low, high, likelihood := first(law, waits, shape)
			if free.likelihood-likelihood > unlikely2 && !follows(free.ceilings, base, shape, slack) {
				continue
			}
			g := Growth{Factor: factor, Base: duration(base) + early, Low: duration(low) + early, High: duration(high) + early}
			if capped < n-1 && factor > 1 {
				g.Cap = duration(base*shape[n-1]) + early
			}
			return g
		}
	}
	c, _ := ceiling(law, waits[0], free.late)
	return Growth{Base: duration(c), Low: duration(c), High: duration(c)}
}

// follows reports whether ceilings are those of a shape, but for what a client does between
// its waits.
func follows(ceilings []float64, base float64, shape []float64, slack float64) bool {
	for i, c := range ceilings {
		want := base * shape[i]
		if math.Abs(c-early.Seconds()-want) > max(0.01, want/50, slack) {
			return false
		}
	}
	return true
}

func duration(seconds float64) time.Duration {
	return max(0, time.Duration(seconds*float64(time.Second))-early)
}

// first finds the first of ceilings that have a shape, with the interval that it is in.
func first(law Law, waits [][]float64, shape []float64) (base, low, high, likelihood float64) {
	from, to := math.Inf(1), math.Inf(1)
	for i, of := range waits {
		least := (slices.Min(of) - early.Seconds()) / shape[i]
		from = min(from, least)
		if law.From > 0 {
			to = min(to, least/law.From)
		}
	}
	if law.From == 0 {
		to = 0
		for i, of := range waits {
			to = max(to, 1.5*slices.Max(of)/shape[i])
		}
	}
	const steps = 200
	var list [steps + 1]float64
	likelihood = math.Inf(-1)
	at := func(i int) float64 { return from + (to-from)*float64(i)/steps }
	for i := range list {
		list[i] = math.Inf(-1)
		for _, late := range lateness { // each base with the lateness that suits it
			sum := 0.
			for k, of := range waits {
				sum += loglikelihood(law, of, at(i)*shape[k]+early.Seconds(), late)
			}
			list[i] = max(list[i], sum)
		}
		if list[i] > likelihood {
			base, likelihood = at(i), list[i]
		}
	}
	low, high = base, base
	for i, l := range list {
		if l > likelihood-unlikely {
			low, high = min(low, at(i)), max(high, at(i))
		}
	}
	return base, low, high, likelihood
}
