package storm

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The textbook's values, and the ends.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		n, all    int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {5, 10, 0.2366, 0.7634}, {1, 12, 0.0149, 0.3539}} {
		got := wilson(tt.n, tt.all)
		near(t, "low", got[0], tt.low, 1e-4)
		near(t, "high", got[1], tt.high, 1e-4)
	}
}

// The interval of the median holds the true one about as often as it says, whatever the
// number of values.
func TestMedianIntervals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{8, 16, 24, 40} {
		const times = 2000
		held := 0
		for range times {
			var values []Duration
			for range n {
				values = append(values, Duration(1e9*rng.ExpFloat64()))
			}
			middle, low, high := median(values)
			if middle < low || middle > high {
				t.Fatalf("%d values: %v is not in %v to %v", n, middle, low, high)
			}
			if low <= 693147180 && 693147180 <= high {
				held++
			}
		}
		if share := float64(held) / times; share < 0.94 || share > 0.999 {
			t.Errorf("%d values: the interval holds the median in %.3f of the cases, want 0.95 or a little more", n, share)
		}
	}
	if m, low, high := median([]Duration{3, 1, 2}); m != 2 || low != 1 || high != 3 {
		t.Errorf("of three values: %v in %v to %v", m, low, high)
	}
}

// A bisection finds two lengths, and the interval begins at the lower: seeds that agree
// know no more than that.
func TestLeastIsBetween(t *testing.T) {
	s := brownout(100, 5)
	s.Duration = seconds(40)
	s.Fleets[0].Regular, s.Services[0].Law = true, "fixed"
	found, err := LeastTrigger(t.Context(), s, Options{}, 20*time.Second, nil)
	if err != nil || !found.Sticks || found.Open || found.Seeds != seedsAtOnce {
		t.Fatalf("%+v, %v", found, err)
	}
	if low, high := found.Interval[0], found.Interval[1]; low >= found.Shortest || high < found.Least {
		t.Errorf("%v to %v, with %v in the middle and %v at the lowest", low, high, found.Least, found.Shortest)
	}
}

// When too few runs of the longest fault stick, nothing is known of the interval's end.
func TestThresholdsOfEdges(t *testing.T) {
	at := func(lengths ...Duration) (all []edge) {
		for _, l := range lengths {
			e := edge{length: l * ms, below: (l - 1) * ms, runs: 2}
			if l == 0 {
				e = edge{length: never, below: 1000 * ms, runs: 1}
			}
			all = append(all, e)
		}
		return all
	}
	for name, tt := range map[string]struct {
		edges []edge
		want  Threshold
		sure  bool
	}{
		"none":     {at(0, 0, 0, 0, 0, 0, 0, 0), Threshold{Seeds: 8, Runs: 8}, true},
		"few":      {at(0, 0, 0, 500, 0, 0, 400, 0), Threshold{Seeds: 8, Runs: 10, Stuck: 2, Shortest: 400 * ms}, true},
		"alike":    {at(500, 500, 500, 500, 500, 500, 500, 500), Threshold{Seeds: 8, Runs: 16, Stuck: 8, Shortest: 500 * ms, Sticks: true, Least: 500 * ms, Interval: [2]Duration{499 * ms, 500 * ms}}, true},
		"far":      {at(800, 200, 300, 400, 500, 600, 700, 100), Threshold{Seeds: 8, Runs: 16, Stuck: 8, Shortest: 100 * ms, Sticks: true, Least: 400 * ms, Interval: [2]Duration{99 * ms, 800 * ms}}, false},
		"half":     {at(0, 990, 0, 991, 0, 992, 0, 993), Threshold{Seeds: 8, Runs: 12, Stuck: 4, Shortest: 990 * ms, Sticks: true, Least: 993 * ms, Interval: [2]Duration{989 * ms, 1000 * ms}, Open: true}, false},
		"all save": {at(990, 990, 0, 990, 990, 990, 990, 990), Threshold{Seeds: 8, Runs: 15, Stuck: 7, Shortest: 990 * ms, Sticks: true, Least: 990 * ms, Interval: [2]Duration{989 * ms, 1000 * ms}, Open: true}, false},
	} {
		got := Threshold{Longest: 1000 * ms}
		got.sum(tt.edges)
		tt.want.Longest = got.Longest
		if got != tt.want || got.sure() != tt.sure {
			t.Errorf("%s: %+v, sure %v", name, got, got.sure())
		}
	}
}

// The bins of a short run are wide enough for a long fault.
func TestLengthenedRunsAreValid(t *testing.T) {
	s := brownout(100, 0.2)
	s.Duration, s.Faults[0].At = seconds(1), 100*ms
	s = s.WithDefaults().lengthened(seconds(60))
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	near(t, "length", s.Duration.Seconds(), 60.8, 1e-9)
}
