package forbear_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
)

func TestHints(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name                 string
		hint                 forbear.Hint
		state                forbear.State
		floor, wait, ceiling time.Duration
	}{
		{"none", forbear.Hint{}, forbear.State{}, 0, s / 2, s},
		{"floor under the backoff", forbear.Hint{Floor: s / 4}, forbear.State{}, s / 4, s / 2, s},
		{"floor over the backoff", forbear.Hint{Floor: 5 * s}, forbear.State{}, 5 * s, 5 * s, 5 * s},
		{"spread lies above", forbear.Hint{Floor: 5 * s, Spread: 2 * s}, forbear.State{}, 5 * s, 6 * s, 7 * s},
		{"spread is cut to the room", forbear.Hint{Floor: 5 * s, Spread: 20 * s}, forbear.State{Deadline: epoch.Add(8100 * time.Millisecond)}, 5 * s, 6500 * time.Millisecond, 8 * s},
		{"base", forbear.Hint{Base: 4 * s}, forbear.State{}, 0, 2 * s, 4 * s},
		{"base within the cap", forbear.Hint{Base: 50 * s}, forbear.State{Start: epoch}, 0, 14950 * time.Millisecond, 29900 * time.Millisecond},
		{"no backoff", forbear.Hint{NoBackoff: true}, forbear.State{}, 0, 0, 0},
		{"no backoff, after a refresh", forbear.Hint{NoBackoff: true}, forbear.State{Attempt: 2, Refreshes: 1}, 0, 0, 0},
		{"no backoff, a second time", forbear.Hint{NoBackoff: true}, forbear.State{Attempt: 2}, 0, s, 2 * s},
		{"no backoff, a third time", forbear.Hint{NoBackoff: true, Floor: s / 1000}, forbear.State{Attempt: 3}, s / 1000, 2 * s, 4 * s},
		{"no backoff, floor", forbear.Hint{NoBackoff: true, Floor: s / 4}, forbear.State{}, s / 4, s / 4, s / 4},
		{"no backoff, floor as long as the base", forbear.Hint{NoBackoff: true, Floor: s}, forbear.State{Attempt: 3}, s, s, s},
	} {
		f := forbear.Failure{Class: forbear.ClassThrottled, Hint: tt.hint}
		d := decide(forbear.Policy{}, tt.state, f)
		if !d.Retry || d.Floor != tt.floor || d.Wait != tt.wait || d.Ceiling != tt.ceiling {
			t.Errorf("%s: got %+v, want %v <= %v <= %v", tt.name, d, tt.floor, tt.wait, tt.ceiling)
		}
	}
}

func TestHintsThatStop(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hint  forbear.Hint
		state forbear.State
		want  forbear.Reason
	}{
		{"stop", forbear.Hint{Stop: true}, forbear.State{}, reason.ServerStop},
		{"the server's count", forbear.Hint{MaxRetries: 1}, forbear.State{Attempt: 2}, reason.Exhausted},
		{"a larger count changes nothing", forbear.Hint{MaxRetries: 9}, forbear.State{Attempt: 4}, reason.Exhausted},
		{"the caller's zero holds", forbear.Hint{MaxRetries: 2}, forbear.State{Limited: true}, reason.Disabled},
	} {
		d := decide(forbear.Policy{}, tt.state, forbear.Failure{Class: forbear.ClassTransient, Hint: tt.hint})
		if d.Retry || d.Reason != tt.want {
			t.Errorf("%s: got %+v, want %v", tt.name, d, tt.want)
		}
	}
}

// credentials are refreshed once, outside the count and inside the deadline.
func TestTokenRefresh(t *testing.T) {
	denied := forbear.Failure{Class: forbear.ClassUnauthorized, Type: "http_401"}
	r := quiet(t, forbear.Policy{MaxRetries: 1}, forbear.WithBudget(unlimited()))
	s := forbear.State{Refreshable: true}
	next := func(f forbear.Failure, want forbear.Reason) {
		t.Helper()
		if d := r.Next(&s, f, epoch); d.Reason != want || d.Wait != 0 && want == reason.Refresh {
			t.Errorf("attempt %d: got %+v, want %v", s.Attempt, d, want)
		}
	}
	next(denied, reason.Refresh)
	if s.Attempt-1-s.Refreshes != 0 {
		t.Errorf("the refresh counts as a retry: %+v", s)
	}
	next(denied, reason.Unauthorized)
	next(transient, reason.Retryable)
	next(transient, reason.Exhausted)

	if d := decide(forbear.Policy{}, forbear.State{}, denied); d.Reason != reason.Unauthorized {
		t.Errorf("without a source of credentials: got %+v", d)
	}
	if d := decide(forbear.Policy{MaxRetries: 1}, forbear.State{Refreshable: true, Attempt: 2}, denied); d.Reason != reason.Refresh {
		t.Errorf("with no retry left: got %+v, want a refresh outside the count", d)
	}
	late := forbear.State{Refreshable: true, Start: epoch.Add(-time.Minute)}
	if d := decide(forbear.Policy{}, late, denied); d.Reason != reason.Deadline {
		t.Errorf("after the deadline: got %+v", d)
	}
}

// TestTokenRefreshAndTheBudget: the request that a fresh token makes is charged like
// any retry. A spent budget does not refuse it: the dependency has not failed, and its
// next 401 ends the call.
func TestTokenRefreshAndTheBudget(t *testing.T) {
	denied := forbear.Failure{Class: forbear.ClassUnauthorized, Type: "http_401"}
	bucket := budget.NewTokenBucket(1, 0)
	r := quiet(t, forbear.Policy{}, forbear.WithBudget(bucket))
	for call := range 40 {
		s := forbear.State{Refreshable: true}
		d := r.Next(&s, denied, epoch)
		if d.Reason != reason.Refresh || d.Wait != 0 {
			t.Fatalf("call %d: got %+v, want a refresh", call, d)
		}
		if used := bucket.Level(epoch).Used; used != 1 {
			t.Fatalf("call %d: %v tokens are used, want the one that there is", call, used)
		}
		if again := r.Next(&s, denied, epoch); again.Reason != reason.Unauthorized {
			t.Fatalf("call %d, refused again: got %+v", call, again)
		}
		if call == 1 { // one that was not charged gives nothing back
			if edge.Refund(r, d, epoch); bucket.Level(epoch).Used != 1 {
				t.Fatalf("an uncharged refresh was refunded: %+v", bucket.Level(epoch))
			}
		}
	}
	// Nor does it count as a refusal: a retry after it is refused as before.
	if d := r.Next(&forbear.State{}, transient, epoch); d.Reason != reason.Budget {
		t.Errorf("a retry with the budget spent: got %+v", d)
	}
	if d := forbear.Decide(&forbear.Policy{}, forbear.State{Refreshable: true, BudgetSpent: true}, denied, epoch, middle); d.Reason != reason.Refresh {
		t.Errorf("Decide with the budget spent: got %+v", d)
	}
	if d := forbear.Decide(&forbear.Policy{}, forbear.State{Refreshable: true, Breaker: breaker.Open}, denied, epoch, middle); d.Reason != reason.BreakerOpen {
		t.Errorf("Decide with the breaker open: got %+v", d)
	}
}

// payback is a budget that records what successes pay back.
type payback struct {
	*budget.TokenBucket
	paid []int
}

func (p *payback) Failed(time.Time) {}

func (p *payback) Succeeded(_ time.Time, retries int, _ budget.Cost) {
	p.paid = append(p.paid, retries)
}

// TestDurableTokenRefresh: durable work is not put off either, and pays back what its
// refresh was charged.
func TestDurableTokenRefresh(t *testing.T) {
	denied := forbear.Failure{Class: forbear.ClassUnauthorized, Type: "http_401"}
	for tokens := range 2 {
		b := &payback{TokenBucket: budget.NewTokenBucket(tokens, 0)}
		r, now := webhooks(t, forbear.WithoutLog(), forbear.WithBudget(b)), time.Now()
		c := edge.Durable(t.Context(), r, edge.Progress{State: forbear.State{Refreshable: true}})
		c.Ask(t.Context(), now)
		if d := c.Fail(t.Context(), denied, 0, now); d.Reason != reason.Refresh || d.Wait != 0 {
			t.Fatalf("got %+v, want a refresh", d)
		}
		c.Ask(t.Context(), now)
		c.Succeed(t.Context(), 0, now)
		if len(b.paid) != 1 || b.paid[0] != tokens || c.Attempts != 2 {
			t.Errorf("with %d tokens: %v retries are paid back after %d attempts", tokens, b.paid, c.Attempts)
		}
	}
}

func TestDecorrelatedJitter(t *testing.T) {
	p := forbear.Policy{Kind: forbear.Event, MaxRetries: 10, Backoff: forbear.Backoff{Jitter: forbear.JitterDecorrelated, Cap: 20 * time.Second}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	high := func() float64 { return 0.999999 }
	prev := time.Second
	for attempt := 1; attempt <= 10; attempt++ {
		s := forbear.State{Attempt: attempt, PrevWait: prev}
		d := forbear.Decide(&p, s, transient, epoch, high)
		want := min(3*prev, 20*time.Second)
		if d.Floor != time.Second || d.Ceiling != want || d.Wait < time.Second || d.Wait > want {
			t.Errorf("after %v: got %+v, want [1s, %v]", prev, d, want)
		}
		prev = d.Wait
	}
	if prev < 19*time.Second {
		t.Errorf("ten draws near the top end at %v, want the cap", prev)
	}
}

// TestDecorrelatedJitterIsDrawnFirst: as published, min(cap, random(base, 3 x
// previous)): what is drawn above the cap is the cap, and the range ends below it
// only where the time that is left does.
func TestDecorrelatedJitterIsDrawnFirst(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		name      string
		base, cap time.Duration
		prev      time.Duration
		left      time.Duration // 0: enough
		u         float64
		ceiling   time.Duration
		want      time.Duration
	}{
		{"within the cap", 1 * s, 20 * s, 4 * s, 0, 0.5, 12 * s, 6500 * time.Millisecond},
		{"drawn below the cap", 1 * s, 20 * s, 19 * s, 0, 0.25, 20 * s, 15 * s},
		{"drawn above the cap", 1 * s, 20 * s, 19 * s, 0, 0.5, 20 * s, 20 * s},
		{"cut to what is left", 1 * s, 20 * s, 19 * s, 11*s + 100*time.Millisecond, 0.5, 11 * s, 6 * s},
		{"more is left than the cap", 1 * s, 20 * s, 19 * s, 30 * s, 0.25, 20 * s, 15 * s},
		{"no number overflows", 1, 1<<63 - 1, 1 << 62, 0, 0.999, 23*time.Hour + 59*time.Minute + 59*s + 900*time.Millisecond, -1},
	} {
		p := forbear.Policy{Kind: forbear.Event, Backoff: forbear.Backoff{Jitter: forbear.JitterDecorrelated, Base: tc.base, Cap: tc.cap}}
		state := forbear.State{Attempt: 3, PrevWait: tc.prev}
		if tc.left > 0 {
			state.Deadline = epoch.Add(tc.left)
		}
		d := forbear.Decide(&p, state, transient, epoch, func() float64 { return tc.u })
		if d.Floor != tc.base || d.Ceiling != tc.ceiling || tc.want >= 0 && d.Wait != tc.want {
			t.Errorf("%s: %v in [%v, %v], want %v in [%v, %v]", tc.name, d.Wait, d.Floor, d.Ceiling, tc.want, tc.base, tc.ceiling)
		}
		if d.Wait < d.Floor || d.Wait > d.Ceiling {
			t.Errorf("%s: %v is not in [%v, %v]", tc.name, d.Wait, d.Floor, d.Ceiling)
		}
	}
}

// A webhook's day takes no time in a bubble; the waits follow R-3's table.
func TestWebhookScheduleInDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour}
		r := quiet(t, forbear.Policy{Kind: forbear.Webhook, MaxAttempts: 8}, forbear.WithBudget(unlimited()), forbear.WithCallerDeadLetter())
		last, n := time.Now(), 0
		err := r.Do(t.Context(), func(ctx context.Context) error {
			if wait := time.Since(last); n > 0 && (wait < steps[n-1] || wait > steps[n]) {
				t.Errorf("before attempt %d: %v, want [%v, %v]", n+1, wait, steps[n-1], steps[n])
			}
			last = time.Now()
			n++
			return failing(ctx)
		})
		if n != 8 || !errors.Is(err, forbear.ErrExhausted) {
			t.Errorf("%d attempts: %v", n, err)
		}
	})
}

func TestScheduleOfOnesOwn(t *testing.T) {
	p := forbear.Policy{
		Kind: forbear.Webhook, MaxAttempts: 3,
		Backoff: forbear.Backoff{Schedule: []time.Duration{0, time.Minute, time.Hour, 2 * time.Hour}, Jitter: forbear.JitterFull},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range []time.Duration{time.Minute, time.Hour} {
		if d := decide(p, forbear.State{Attempt: attempt + 1}, transient); d.Floor != 0 || d.Ceiling != want {
			t.Errorf("after attempt %d: got %+v, want [0, %v]", attempt+1, d, want)
		}
	}
}

func TestHealthGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{}
		r := quiet(t, forbear.Policy{}, forbear.WithHealthGate(g.healthy))
		op, runs := failTimes(9, forbear.Retryable(errFlaky, forbear.Hint{}))
		if err := r.Do(t.Context(), op); !errors.Is(err, forbear.ErrUnhealthy) || *runs != 2 {
			t.Errorf("got %v after %d attempts, want the gate to stop the second retry", err, *runs)
		}
	})
}

// gate is healthy once.
type gate struct{ asked int }

func (g *gate) healthy(time.Time) bool {
	g.asked++
	return g.asked < 2
}
