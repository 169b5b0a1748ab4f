package page

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/storm"
)

// response is what the page gets: a result for each variant, and the herds.
type response struct {
	Took    float64  `json:"took_ms"`
	Results []result `json:"results"`
	Herds   []herd   `json:"herds"`
	// Dependencies are those of the policy file, in order.
	Dependencies []string `json:"dependencies,omitempty"`
}

// result is one variant: what its curves are called, its numbers, and the curves.
type result struct {
	Name     string        `json:"name"`
	Title    string        `json:"title"`
	Headline string        `json:"headline"`
	Scale    float64       `json:"scale,omitzero"`
	Duration float64       `json:"duration_s"`
	Faults   [][2]float64  `json:"faults,omitempty"` // when each begins and ends, in seconds
	Notes    []string      `json:"notes,omitempty"`
	Summary  storm.Summary `json:"summary"`
	Services []service     `json:"services"`
	storm.Series
}

// service is a service's name and its requests for each call.
type service struct {
	Name    string  `json:"name"`
	PerCall float64 `json:"per_call"`
}

// resultOf returns what the page shows of one run, whose series it rounds. There may be
// a hundred of them in a response.
func resultOf(v storm.Variant, r *storm.Result) result {
	s := &r.Series
	for _, curve := range [][]float64{s.Offered, s.Fresh, s.Retry, s.Good, s.Failed, s.Multiplier, s.P50, s.P99, s.Queue, s.Budget, s.Breaker, s.Wasted} {
		for i, v := range curve {
			curve[i] = short(v)
		}
	}
	shown := result{
		Name: v.Name, Title: v.Title, Headline: r.Headline(), Scale: r.Scale,
		Duration: r.Duration.Seconds(), Notes: r.Notes, Summary: r.Summary, Series: *s,
	}
	for _, v := range r.Services {
		shown.Services = append(shown.Services, service{v.Name, short(v.PerCall)})
	}
	for _, f := range r.Faults {
		shown.Faults = append(shown.Faults, [2]float64{f[0].Seconds(), f[1].Seconds()})
	}
	return shown
}

// short returns v with four significant digits, which are enough for a screen. Whole
// numbers keep all digits.
func short(v float64) float64 {
	if v == math.Trunc(v) {
		return v
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what is formatted can be parsed
	return v
}

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
	c.Breaker, c.RTT = new(false), 0
	const milli = storm.Duration(time.Millisecond)
	base := cmp.Or(c.Base, 1000*milli)
	if c.Policy != nil {
		base = storm.Duration(c.Policy.WithDefaults().Backoff.Base)
	}
	base = max(base, milli)
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
