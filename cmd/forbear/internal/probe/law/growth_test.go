package law

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// TestBaseIsWithinItsInterval: of a hundred clients with a base of a second at most a few
// have another one by the interval.
func TestBaseIsWithinItsInterval(t *testing.T) {
	added := Added
	added.Size = 0.1
	for _, law := range []Law{Full, Equal, Proportional, None, added} {
		r, outside := rand.New(rand.NewPCG(3, 4)), 0
		samples := ringtest.Size(20, 100)
		for range samples {
			waits := seconds(sample(r, law, 24, time.Second, 2, 20*time.Millisecond))
			f := best(waits)
			f.Law, f.fit = law, fit(law, waits)
			g := f.grow(waits)
			if g.Factor != 2 || g.Low > time.Second+2*time.Millisecond || g.High < time.Second-2*time.Millisecond || g.High-g.Low > time.Second/2 {
				outside++
				t.Logf("%s: %+v", law.Name, g)
			}
		}
		if outside*100 > 5*samples {
			t.Errorf("%s: %d of %d are outside", law.Name, outside, samples)
		}
	}
}
