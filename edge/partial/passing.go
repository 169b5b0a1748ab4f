package partial

import (
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// trouble is a kind of failure short of an outage.
type trouble struct {
	name  string
	d     func(Load) Dependency
	loads []Load
}

func troubles() []trouble {
	always := func(d Dependency) func(Load) Dependency { return func(Load) Dependency { return d } }
	limit := func(share float64, d func(float64) Dependency) func(Load) Dependency {
		return func(l Load) Dependency { return d(share * l.PerSecond()) }
	}
	few := []Load{calm, brisk}
	all := ringtest.Size(few, []Load{lone, calm, brisk, busy})
	return []trouble{
		{"a slow tenth", always(Slow(2 * time.Second)), all},
		{"a tenth that times out", always(Slow(6 * time.Second)), all},
		{"one instance of five", always(OneOfFive(false)), all},
		{"one instance of five, sticky", always(OneOfFive(true)), few},
		{"a limit of 80 %", limit(0.80, Limited), all},
		{"a limit of 65 %", limit(0.65, Limited), all},
		{"a limit of 80 % in each second", limit(0.80, LimitedBySecond), all},
		{"a limit of 65 % in each second", limit(0.65, LimitedBySecond), all},
	}
}

// Passes holds that trouble short of an outage costs next to nothing: slow
// calls, one bad instance, a limit.
func Passes(t *testing.T, edge Client, p forbear.Policy) {
	for _, tt := range troubles() {
		t.Run(tt.name, func(t *testing.T) {
			for _, l := range tt.loads {
				// At night it opens once, now and then, for five seconds.
				l.For = ringtest.Size(time.Minute, 3*time.Minute)
				each(t, l, p, 1, func(t *testing.T, l Load, p forbear.Policy) {
					with, without := l.Beside(t, edge, tt.d(l), p)
					t.Logf("%6.2f %%, without a breaker %6.2f %% (%.0f %% of its sends failed), refused %.2f %%, opened %d times",
						with.Success(), without.Success(), without.BadShare(), with.OpenShare(), with.Openings)
					within(t, l, 3, with, without)
				})
			}
		})
	}
}

// Bursts plays two seconds of failures in every twenty, by the calls a second.
// Where a burst has too few sends to open the breaker it costs nothing. Where it
// has more than some 66 the breaker opens in the first one, as it must in the
// first second of an outage, and stays open for five seconds; that it was over at
// once teaches it to wait.
func Bursts(t *testing.T, edge Client, p forbear.Policy) {
	for _, perSecond := range ringtest.Size([]int{5, 20, 100}, []int{1, 5, 10, 20, 50, 100, 200}) {
		l := Load{Callers: perSecond, Think: time.Second, For: ringtest.Size(3*time.Minute, 10*time.Minute)}
		each(t, l, p, 1, func(t *testing.T, l Load, p forbear.Policy) {
			with, without := l.Beside(t, edge, InBursts(2*time.Second, 20*time.Second), p)
			t.Logf("%6.2f %%, without a breaker %6.2f %%, refused %5.2f %%, opened %d times",
				with.Success(), without.Success(), with.OpenShare(), with.Openings)
			within(t, l, 3, with, without)
		})
	}
}

// Flaps plays two seconds down and two seconds up, by turns, to as many callers as
// make a thousand calls a second. Half of them at most can succeed. The breaker
// opens in the first two seconds, and must not go on probing in step with what
// is down: two openings of five seconds are what may be lost of half a minute.
func Flaps(t *testing.T, edge Client, p forbear.Policy) {
	for _, down := range []bool{true, false} {
		t.Run(fmt.Sprintf("down first %v", down), func(t *testing.T) {
			l := Load{Callers: 200, Think: 200 * time.Millisecond, For: 30 * time.Second}
			each(t, l, p, 1, func(t *testing.T, l Load, p forbear.Policy) {
				with, without := l.Beside(t, edge, Flapping(2*time.Second, down), p)
				good, could := float64(with.Succeeded)/l.For.Seconds(), float64(without.Succeeded)/l.For.Seconds()
				t.Logf("%3.0f good calls a second, without a breaker %3.0f; %.2f sends a call, without %.2f; opened %d times",
					good, could, with.PerCall(), without.PerCall(), with.Openings)
				least := 0.65 * could
				if p.Backoff.Base == short { // who waits for seconds calls less often
					least = max(least, 250)
				}
				if good < least || with.PerCall() > 1.25 {
					t.Errorf("%v: %.0f good calls a second with %.2f sends a call, want %.0f with 1.25", l, good, with.PerCall(), least)
				}
			})
		})
	}
}
