package law

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

//forbear:plain arithmetic, which one goroutine does

// sample draws what calls with three retries wait by a law, late by an exponential time.
func sample(r *rand.Rand, law Law, calls int, base time.Duration, growth float64, late time.Duration) Sample {
	s := make(Sample, 3)
	for range calls {
		c := float64(base)
		for i := range s {
			w := 0.
			if law != Immediate {
				w = c*law.From + (c*(1-law.From)+law.Size*float64(time.Second))*r.Float64()
			}
			s[i] = append(s[i], time.Duration(w+r.ExpFloat64()*float64(late)))
			c *= growth
		}
	}
	return s
}

// TestLawIsToldRight: each law is found in at least 95 of 100 samples of 24 calls, on a
// quiet machine and on a busy one, which hides a jitter that is added.
func TestLawIsToldRight(t *testing.T) {
	added := Added
	added.Size = 0.1
	const quiet, busy = 2 * time.Millisecond, 40 * time.Millisecond
	for _, law := range []Law{Full, Equal, Proportional, added, None, Immediate} {
		for _, late := range []time.Duration{quiet, busy} {
			for _, base := range []time.Duration{200 * time.Millisecond, time.Second} {
				if law == added && late == busy {
					continue
				}
				toldRight(t, law, base, 2, late)
			}
		}
	}
	toldRight(t, None, time.Second, 1, quiet)
	toldRight(t, None, time.Second, 1, busy)
}

// toldRight finds a law, and whether its waits grow, in samples.
func toldRight(t *testing.T, law Law, base time.Duration, factor float64, late time.Duration) {
	t.Run(fmt.Sprint(law.Name, base, factor, late), func(t *testing.T) {
		t.Parallel()
		r, right, wrong := rand.New(rand.NewPCG(1, 2)), 0, map[string]int{}
		samples := ringtest.Size(10, 100)
		for range samples {
			waits := seconds(sample(r, law, 24, base, factor, late))
			got := best(waits)
			grown := got.grow(waits).Factor
			if got.Law.Name == law.Name && (law == Immediate || law == Added || (grown == 1) == (factor == 1)) {
				right++
			} else {
				wrong[fmt.Sprint(got.Law.Name, grown)]++
			}
		}
		if right < samples-max(1, samples/20) {
			t.Errorf("right in %d of %d, else %v", right, samples, wrong)
		}
	})
}
