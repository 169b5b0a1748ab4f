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
				w = c * (law.From + (1-law.From)*r.Float64())
			}
			s[i] = append(s[i], time.Duration(w+r.ExpFloat64()*float64(late)))
			c *= growth
		}
	}
	return s
}

// TestLawIsToldRight: each law is found in at least 95 of 100 samples of 24 calls, on a
// quiet machine and on a busy one.
func TestLawIsToldRight(t *testing.T) {
	for _, law := range []Law{Full, Equal, Proportional, None, Immediate} {
		for _, late := range []time.Duration{2 * time.Millisecond, 40 * time.Millisecond} {
			for _, base := range []time.Duration{200 * time.Millisecond, time.Second} {
				t.Run(fmt.Sprint(law.Name, base, late), func(t *testing.T) {
					t.Parallel()
					r, right, wrong := rand.New(rand.NewPCG(1, 2)), 0, map[string]int{}
					samples := ringtest.Size(40, 100)
					for range samples {
						waits := seconds(sample(r, law, 24, base, 2, late))
						if got := best(waits).Law; got == law {
							right++
						} else {
							wrong[got.Name]++
						}
					}
					if right*100 < 95*samples {
						t.Errorf("right in %d of %d, else %v", right, samples, wrong)
					}
				})
			}
		}
	}
}
