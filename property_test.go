package forbear_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/reason"
)

// situation is what Decide is asked about.
type situation struct {
	policy  forbear.Policy
	state   forbear.State
	failure forbear.Failure
}

// upTo returns a duration in [0, most).
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}

// anySituation draws one, odd values included: Decide must hold for policies
// that nobody validated.
func anySituation(rng *rand.Rand) situation {
	duration := func(most time.Duration) time.Duration {
		switch rng.IntN(8) {
		case 0:
			return 0
		case 1:
			return math.MaxInt64
		case 2:
			return 1
		default:
			return upTo(rng, most)
		}
	}
	some := func(n int) bool { return rng.IntN(n) == 0 }
	q := situation{
		policy: forbear.Policy{
			Kind: forbear.Kind(rng.IntN(5)), MaxRetries: rng.IntN(12), MaxAttempts: rng.IntN(9),
			Total: duration(time.Hour), MinAttempt: duration(time.Second),
			Backoff: forbear.Backoff{Base: duration(time.Minute), Cap: duration(time.Hour), Jitter: allJitters[rng.IntN(3)]},
			Keys:    allKeyModes[rng.IntN(3)], RetryUnsent: some(2), Disabled: some(10),
		},
		state: forbear.State{
			Attempt: rng.IntN(12), PrevWait: duration(time.Hour), DNSFailures: rng.IntN(3), Refreshes: rng.IntN(2),
			Limit: rng.IntN(12), Limited: some(5), NeedsKey: some(4), Unreplayable: some(10), Refreshable: some(2),
			Breaker: breaker.State(rng.IntN(3) * rng.IntN(2)), Unhealthy: some(10), ExhaustedBelow: some(10), Inner: some(10),
			BudgetSpent: some(10),
		},
		failure: forbear.Failure{
			Class: forbear.Class(rng.IntN(10)), Unsent: some(4),
			Hint: forbear.Hint{
				Floor: duration(time.Minute) * time.Duration(rng.IntN(2)), Spread: duration(time.Second), Base: duration(time.Minute) * time.Duration(rng.IntN(2)),
				MaxRetries: rng.IntN(3), Stop: some(10), NoBackoff: some(5),
			},
		},
	}
	if some(2) {
		q.state.Key = "k"
	}
	if some(2) {
		q.state.Start = epoch.Add(-upTo(rng, time.Minute))
	}
	if some(2) {
		q.state.Deadline = epoch.Add(upTo(rng, time.Minute) - time.Second)
	}
	if some(4) {
		q.policy.Kind, q.policy.Backoff.Schedule = forbear.Webhook, []time.Duration{0, duration(time.Second), duration(time.Hour)}
	}
	return q
}

// check lists the laws that every decision obeys.
func (q situation) check(t *testing.T, d forbear.Decision) {
	t.Helper()
	p, h := q.policy.WithDefaults(), q.failure.Hint
	broken := func(law string) { t.Errorf("%s: %+v\nfor %+v", law, d, q) }
	if !d.Retry {
		if d.Wait != 0 || d.Floor != 0 || d.Ceiling != 0 {
			broken("a stop waits")
		}
		if d.Reason == reason.None || forbear.Sentinel(d.Reason) == nil && d.Reason != reason.Success {
			broken("a stop has no reason: write one after the date")
		}
		return
	}
	if d.Floor < 0 || d.Wait < d.Floor || d.Wait > d.Ceiling {
		broken("Floor <= Wait <= Ceiling")
	}
	if d.Wait < h.Floor {
		broken("the wait is below the server's (R-5)")
	}
	if h.Floor == 0 && h.Spread == 0 && h.Base == 0 && len(p.Backoff.Schedule) == 0 && d.Wait > p.Backoff.Cap {
		broken("the wait is over the cap (R-1)")
	}
	if left := q.state.Deadline.Sub(epoch); !q.state.Deadline.IsZero() && d.Ceiling > left {
		broken("the wait ends after the deadline")
	}
	if !q.state.Start.IsZero() && d.Ceiling > p.Total-epoch.Sub(q.state.Start) {
		broken("the wait ends after the total (R-3)")
	}
	switch d.Class {
	case forbear.ClassTerminal, forbear.ClassCertificate, forbear.ClassCanceled, forbear.ClassUnknown, forbear.ClassSuccess:
		broken("a class that is never retried")
	}
	if p.Disabled && d.Reason != reason.Refresh || q.state.Inner || q.state.BudgetSpent && d.Reason != reason.Refresh || h.Stop || q.state.Unreplayable {
		broken("a retry in spite of a plain no")
	}
}

func TestDecideLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	situations, retries := ringtest.Size(20_000, 70_000), 0
	for range situations {
		q := anySituation(rng)
		before := q
		d := forbear.Decide(&q.policy, q.state, q.failure, epoch, rng.Float64)
		if q.check(t, d); t.Failed() {
			return
		}
		if !reflect.DeepEqual(before, q) {
			t.Fatal("Decide changed its arguments")
		}
		if d.Retry {
			retries++
		}
	}
	if retries < situations/35 {
		t.Errorf("only %d retries: the situations test little", retries)
	}
}

// The bounds hold for every draw, its ends included.
func TestDecideBoundsHoldForEveryDraw(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for range 20_000 {
		q := anySituation(rng)
		for _, u := range []float64{0, math.Nextafter(1, 0), 0.5} {
			q.check(t, forbear.Decide(&q.policy, q.state, q.failure, epoch, func() float64 { return u }))
		}
		if t.Failed() {
			return
		}
	}
}

// A state that was stored and read back decides the same.
func TestStateRoundTripDecidesTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	for range ringtest.Size(8000, 20_000) {
		q := anySituation(rng)
		data, err := json.Marshal(q.state)
		if err != nil {
			t.Fatal(err)
		}
		var back forbear.State
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		// What is stored with the request, and what is known of the moment alone.
		back.Key, back.Breaker, back.Unhealthy, back.BudgetSpent = q.state.Key, q.state.Breaker, q.state.Unhealthy, q.state.BudgetSpent
		back.ExhaustedBelow, back.Inner = q.state.ExhaustedBelow, q.state.Inner
		u := rng.Float64()
		draw := func() float64 { return u }
		a := forbear.Decide(&q.policy, q.state, q.failure, epoch, draw)
		b := forbear.Decide(&q.policy, back, q.failure, epoch, draw)
		if a != b {
			t.Fatalf("before %+v, after %+v\n%s", a, b, data)
		}
	}
}

// A stored state must not carry monotonic time: wall time alone counts.
func TestStateKeepsWallTimeThroughJSON(t *testing.T) {
	s := forbear.State{Start: time.Now(), Deadline: time.Now().Add(time.Second)}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back forbear.State
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !back.Start.Equal(s.Start) || !back.Deadline.Equal(s.Deadline) {
		t.Errorf("got %v and %v, want %v and %v", back.Start, back.Deadline, s.Start, s.Deadline)
	}
}

func TestCeilingNeverOverflows(t *testing.T) {
	bases := []time.Duration{1, time.Nanosecond * 3, time.Millisecond, time.Second, time.Hour, math.MaxInt64}
	for _, base := range bases {
		for _, limit := range bases {
			last := time.Duration(0)
			for _, n := range []int{0, 1, 5, 30, 31, 32, 61, 62, 63, 64, 65, 100, 10_000, math.MaxInt} {
				got := duration.Ceiling(base, limit, n)
				if got <= 0 || got > limit || got < last {
					t.Errorf("Ceiling(%v, %v, %d) = %v after %v", base, limit, n, got, last)
				}
				last = got
			}
			if last != limit {
				t.Errorf("Ceiling(%v, %v, big) = %v", base, limit, last)
			}
		}
	}
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 20_000}
	for _, attempt := range []int{100, 10_000, 20_000} {
		if d := decide(p, forbear.State{Attempt: attempt}, transient); !d.Retry || d.Ceiling != 30*time.Second {
			t.Errorf("attempt %d: got %+v", attempt, d)
		}
	}
}

// R-7 holds under contention: retries never exceed the share of the initial
// requests, or the floor.
func TestBudgetHoldsUnder64Goroutines(t *testing.T) {
	for name, p := range map[string]budget.Policy{
		"of initial": {Ratio: 0.2, Window: time.Minute, MinRetries: 3},
		"of total":   {Ratio: 0.2, Window: time.Minute, Of: budget.OfTotal},
		"strict":     {Ratio: 0.1, Window: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.NewRatio(p)
			var initial, retries atomic.Int64
			now := time.Now()
			var wg sync.WaitGroup
			for g := range 64 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(g), 1))
					for i := range 500 {
						// Counted before it is noted: retries can only be fewer.
						at := now.Add(time.Duration(i) * time.Millisecond)
						if initial.Add(1); rng.IntN(3) == 0 {
							initial.Add(-1)
							if b.Spend(at, 0) {
								retries.Add(1)
							}
							continue
						}
						b.Request(at)
						if b.Spend(at, 0) {
							retries.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if got, most := retries.Load(), p.Allowed(initial.Load()); got > most || got < most/2 {
				t.Errorf("%d retries for %d requests, want at most %d", got, initial.Load(), most)
			}
		})
	}
}

// A caller whose clock is a little behind, at the edge of a slot, cannot spend again
// what was spent by one that came before it.
func TestBudgetHoldsForAStraggler(t *testing.T) {
	b := budget.NewRatio(budget.Policy{Ratio: 0.1, Window: time.Minute})
	behind := window.Epoch().Add(time.Hour)
	now := behind.Add(window.Width(time.Minute))
	for range 100 {
		b.Request(behind)
	}
	retries := 0
	for _, at := range []time.Time{now, behind} {
		for range 10 {
			if b.Spend(at, 0) {
				retries++
			}
		}
	}
	if retries != 10 {
		t.Errorf("%d retries for 100 requests, want 10", retries)
	}
}

// Over any window of a long random trace, the ratio holds.
func TestBudgetHoldsInEveryWindow(t *testing.T) {
	const window = 30 * time.Second
	p := budget.Policy{Ratio: 0.2, Window: window, MinRetries: 3}
	rng := rand.New(rand.NewPCG(41, 42))
	b := budget.NewRatio(p)
	type event struct {
		at    time.Duration
		retry bool
	}
	var events []event
	now := time.Duration(0)
	for range 30_000 {
		now += upTo(rng, 20*time.Millisecond)
		if rng.IntN(500) == 0 {
			now += upTo(rng, window) // quiet times, and the bursts after them
		}
		if rng.IntN(2) == 0 {
			b.Request(epoch.Add(now))
			events = append(events, event{now, false})
		} else if b.Spend(epoch.Add(now), 0) {
			events = append(events, event{now, true})
		}
	}
	first, initial, retries := 0, int64(0), int64(0)
	for _, e := range events {
		if e.retry {
			retries++
		} else {
			initial++
		}
		for ; events[first].at <= e.at-window; first++ {
			if events[first].retry {
				retries--
			} else {
				initial--
			}
		}
		if e.retry && retries > p.Allowed(initial) {
			t.Fatalf("at %v: %d retries for %d requests in the window", e.at, retries, initial)
		}
	}
}

// A terminal class is never attempted twice, whatever the policy says.
func TestTerminalIsAttemptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(51, 52))
		final := []forbear.Class{forbear.ClassUnknown, forbear.ClassTerminal, forbear.ClassCertificate, forbear.ClassCanceled, forbear.ClassUnauthorized}
		for range 500 {
			class := final[rng.IntN(len(final))]
			knows := func(err error) (forbear.Failure, bool) { return forbear.Failure{Class: class, Type: "x"}, true }
			p := forbear.Policy{MaxRetries: 1 + rng.IntN(5), RetryUnsent: rng.IntN(2) == 0}
			r := quiet(t, p, forbear.WithClassifier(knows), forbear.WithBudget(unlimited()))
			op, runs := failTimes(9, errFlaky)
			if err := r.Do(t.Context(), op); *runs != 1 || err == nil {
				t.Fatalf("class %v: %d attempts, %v", class, *runs, err)
			}
		}
	})
}

var (
	allJitters  = [...]forbear.Jitter{"", forbear.JitterFull, forbear.JitterDecorrelated}
	allKeyModes = [...]forbear.KeyMode{"", forbear.KeyGenerate, forbear.KeyRefuse}
)
