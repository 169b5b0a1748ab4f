package forbear_test

import (
	"math"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/duration"
)

func FuzzCeiling(f *testing.F) {
	f.Add(int64(time.Second), int64(30*time.Second), 4)
	f.Add(int64(500*time.Millisecond), int64(20*time.Second), 6)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), 63)
	f.Add(int64(0), int64(-1), -1)
	f.Fuzz(func(t *testing.T, base, limit int64, n int) {
		got := duration.Ceiling(time.Duration(base), time.Duration(limit), n)
		if base <= 0 || limit <= 0 {
			if got != 0 {
				t.Errorf("Ceiling(%d, %d, %d) = %d, want 0", base, limit, n, got)
			}
			return
		}
		// The same by floating point, where it is exact enough to tell.
		want := math.Min(float64(base)*math.Pow(2, float64(max(n, 0))), float64(limit))
		if got <= 0 || got > time.Duration(limit) || math.Abs(float64(got)-want) > want*1e-9 {
			t.Errorf("Ceiling(%d, %d, %d) = %d, want %v", base, limit, n, got, want)
		}
	})
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), uint8(2), 1, int64(time.Second), int64(30*time.Second), int64(0), int64(0), int64(0), uint16(0), 0.5)
	f.Add(uint8(0), uint8(4), 1, int64(0), int64(0), int64(45*time.Second), int64(5*time.Second), int64(0), uint16(0), 0.99)
	f.Add(uint8(3), uint8(3), 4, int64(0), int64(0), int64(0), int64(0), int64(time.Hour), uint16(0x20), 0.0)
	f.Add(uint8(2), uint8(5), 2, int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), uint16(0xffff), 0.75)
	f.Fuzz(func(t *testing.T, kind, class uint8, attempt int, base, limit, floor, spread, left int64, flags uint16, u float64) {
		if u < 0 || u >= 1 || math.IsNaN(u) || floor < 0 || spread < 0 {
			return // outside the contract
		}
		flag := func(i int) bool { return flags>>i&1 == 1 }
		q := situation{
			policy: forbear.Policy{
				Kind: forbear.Kind(kind), Disabled: flag(0), RetryUnsent: flag(1),
				Backoff: forbear.Backoff{Base: time.Duration(max(base, 0)), Cap: time.Duration(max(limit, 0)), Jitter: allJitters[flags>>14&3%3]},
			},
			state: forbear.State{
				Attempt: attempt, NeedsKey: flag(2), Unreplayable: flag(3), Refreshable: flag(4), PrevWait: time.Duration(max(base, 0)),
				Unhealthy: flag(6), Inner: flag(7), ExhaustedBelow: flag(8), BudgetSpent: flag(12),
			},
			failure: forbear.Failure{
				Class: forbear.Class(class % 10), Unsent: flag(9),
				Hint: forbear.Hint{Floor: time.Duration(floor), Spread: time.Duration(spread), Stop: flag(10), NoBackoff: flag(11)},
			},
		}
		if flag(5) {
			q.state.Deadline = epoch.Add(time.Duration(left))
		}
		q.check(t, forbear.Decide(&q.policy, q.state, q.failure, epoch, func() float64 { return u }))
	})
}
