package partial

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// The loads that the goals name, by their callers.
var (
	lone  = Load{Callers: 1, Think: 100 * time.Millisecond, For: 5 * time.Minute}
	calm  = Load{Callers: 20, Think: time.Second, For: time.Minute}
	brisk = Load{Callers: 20, Think: 100 * time.Millisecond, For: 30 * time.Second}
	busy  = Load{Callers: 500, Think: 2 * time.Second, For: 30 * time.Second}
)

// warm is how long a warm start has gone well: the windows of the budget and of
// the breaker are full of it.
const warm = time.Minute

// short is a base for calls that hurry; the default is a second.
const short = 50 * time.Millisecond

// each plays l for both starts, with the policy's base and a short one, with the
// seeds that there are. Only a night has time for the policy's base, for more than
// one seed, and for a good minute of those who make more than 20 calls a second.
func each(t *testing.T, l Load, p forbear.Policy, seeds int, play func(t *testing.T, l Load, p forbear.Policy)) {
	t.Helper()
	bases, starts := []time.Duration{short}, []time.Duration{0, warm}
	if ringtest.Nightly() {
		bases, seeds = append(bases, p.Backoff.Base), 10*seeds
	} else if seeds = 1; l.PerSecond() > 20 {
		starts = starts[:1]
	}
	for _, p.Backoff.Base = range bases {
		for _, l.Warm = range starts {
			t.Run(fmt.Sprintf("%v, base %v", l, p.WithDefaults().Backoff.Base), func(t *testing.T) {
				for seed := range seeds {
					l.Seed = uint64(seed)
					play(t, l, p)
				}
			})
		}
	}
}

// Beside plays l with p and with p without a breaker, and the same luck.
func (l Load) Beside(t *testing.T, edge Client, d Dependency, p forbear.Policy) (with, without Result) {
	t.Helper()
	with = l.Run(t, edge, d, p)
	p.Breaker = breaker.Policy{Disabled: true}
	return with, l.Run(t, edge, d, p)
}

// within fails the test when the breaker costs more than so many percentage
// points of success, or when the sends exceed what the budget allows.
func within(t *testing.T, l Load, points float64, with, without Result) {
	t.Helper()
	const mostPerCall = 1.25
	lost := without.Success() - with.Success()
	if lost > points || with.PerCall() > mostPerCall {
		t.Errorf("%v, seed %d: %.2f %% succeeded with %.3f sends a call, refused %.2f %%, without a breaker %.2f %%; want at most %v points less and %v sends",
			l, l.Seed, with.Success(), with.PerCall(), with.OpenShare(), without.Success(), points, mostPerCall)
	}
}

// StaysPartial holds that random failures below the threshold stay what they
// are: the breaker costs next to nothing, and the retries stay within the budget.
func StaysPartial(t *testing.T, edge Client, p forbear.Policy) {
	for _, share := range ringtest.Size([]float64{20, 30, 45}, []float64{5, 10, 20, 30, 40, 45}) {
		points := 2.0
		if share == 45 {
			points = 5
		}
		t.Run(fmt.Sprintf("%v %%", share), func(t *testing.T) {
			for _, l := range []Load{lone, brisk, busy} {
				each(t, l, p, 1, func(t *testing.T, l Load, p forbear.Policy) {
					with, without := l.Beside(t, edge, Random(share/100), p)
					within(t, l, points, with, without)
					if off := math.Abs(without.BadShare() - share); off > 5*math.Sqrt(share*(100-share)/float64(without.Sends)) {
						t.Errorf("%.1f %% of %d sends failed, want %v %%", without.BadShare(), without.Sends, share)
					}
					t.Logf("%6.2f %%, without a breaker %6.2f %%, %.3f sends a call", with.Success(), without.Success(), with.PerCall())
				})
			}
		})
	}
}

// Opens holds that the breaker opens, in time, when most calls fail, and that
// next to nothing is sent in an outage afterwards.
func Opens(t *testing.T, edge Client, p forbear.Policy) {
	for _, tt := range []struct {
		share      float64
		loads      []Load
		cold, warm int // the most calls to the first opening
	}{
		{100, []Load{lone, calm, brisk, busy}, 20, 70},
		{90, []Load{lone, calm, brisk, busy}, 100, 100},
		{75, []Load{lone, calm, brisk, busy}, 100, 100},
		{60, []Load{calm, brisk, busy}, math.MaxInt, math.MaxInt}, // within the minute
	} {
		t.Run(fmt.Sprintf("%v %%", tt.share), func(t *testing.T) {
			for _, l := range tt.loads {
				seeds := 3
				switch l.For = time.Minute; {
				case tt.share == 100:
					l.For, seeds = ringtest.Size(2*time.Minute, 5*time.Minute), 1
				case l.Callers == busy.Callers:
					l.For, seeds = 10*time.Second, 1
				}
				each(t, l, p, seeds, func(t *testing.T, l Load, p forbear.Policy) {
					most := tt.cold
					if l.Warm > 0 {
						most = tt.warm
					}
					opens(t, edge, l, p, tt.share, most)
				})
			}
		})
	}
}

func opens(t *testing.T, edge Client, l Load, p forbear.Policy, share float64, most int) {
	t.Helper()
	if ringtest.Nightly() && share < 100 && most < math.MaxInt {
		most += 25 // of a hundred starts one is unlucky
	}
	got := l.Run(t, edge, Random(share/100), p)
	t.Logf("opened after %d calls, %v; then %.4f sends a call", got.OpenedCall, got.Opened.Round(time.Millisecond), got.PerCallOpened())
	if got.Openings == 0 || got.Opened > time.Minute || got.OpenedCall > most {
		t.Errorf("%v, seed %d: opened %d times, first after %d calls, %v; want at most %d calls and a minute",
			l, l.Seed, got.Openings, got.OpenedCall, got.Opened, most)
	}
	if share == 100 && (got.PerCallOpened() > 0.05 || got.CallsOpened < 1000) {
		t.Errorf("%v, seed %d: %d sends for %d calls in the outage after it opened, want at most 0.05 for each of 1,000 and more",
			l, l.Seed, got.SendsOpened, got.CallsOpened)
	}
}
