package page

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// herd is a histogram of retries by millisecond, for the picture of the waves that
// clients make when they fail together.
type herd struct {
	Name   string    `json:"name"`
	Counts []float64 `json:"counts"`
}

// herds plays out what q's clients do when all of them fail at one instant,
// without jitter and with it: the first fleet's client against a service that is
// down. Breaker and round trip are left out, as they would blur the waves. There
// is none when no herd is asked for, or one that the page could not draw.
func herds(ctx context.Context, q request) []herd {
	all := []herd{}
	if q.Herd <= 0 || q.Herd > 10_000 || len(q.Scenario.Fleets) == 0 {
		return all
	}
	c := q.Scenario.Fleets[0].Client
	c.Breaker, c.RTT = false, 0
	const milli = storm.Duration(time.Millisecond)
	base := max(cmp.Or(c.Base, 1000*milli), milli)
	for _, b := range []struct{ name, wait string }{{"without jitter", "exponential"}, {"with full jitter", ""}} {
		c.Baseline = storm.Baseline{Wait: b.wait, NoBudget: true, Unchecked: true}
		s := storm.Scenario{
			Duration: min(base*7/2, 8000*milli), Bin: milli, Engine: storm.Exact, Seed: q.Scenario.Seed,
			Fleets:   []storm.Fleet{{Burst: q.Herd, Client: c}},
			Services: []storm.Service{{Name: "s"}},
			Faults:   []storm.Fault{{Kind: storm.Outage, For: storm.Duration(time.Hour)}},
		}
		r, err := storm.Run(ctx, s, storm.Options{})
		if err != nil {
			return []herd{}
		}
		counts := make([]float64, len(r.Series.Retry))
		for i, v := range r.Series.Retry {
			counts[i] = math.Round(v * r.Bin.Seconds())
		}
		all = append(all, herd{b.name, counts})
	}
	return all
}
