package breaker_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

func TestBreakerFromManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	var moves []breaker.Transition
	b := breaker.New(breaker.Policy{OpenFor: 5 * time.Second}.WithDefaults(0), func(e breaker.Transition) {
		mu.Lock()
		defer mu.Unlock()
		moves = append(moves, e)
	})
	start := time.Now()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			now := start
			for range 2000 {
				now = now.Add(50 * time.Millisecond)
				permit, ok := b.Allow(now)
				if !ok {
					continue
				}
				switch rng.IntN(4) {
				case 0:
					b.Cancel(permit)
				case 1:
					b.Record(permit, breaker.Failed, now)
				default:
					b.Record(permit, breaker.Good, now)
				}
				_ = b.FailureRate(now)
			}
		})
	}
	wg.Wait()
	for i, e := range moves {
		if i > 0 && e.From != moves[i-1].To {
			t.Fatalf("move %d starts from %v, the one before ended in %v", i, e.From, moves[i-1].To)
		}
	}
}

// TestBudgetIsShown: an exhausted budget never changes when the breaker opens,
// unless the policy has R-7's SHOULD literally.
func TestBudgetIsShown(t *testing.T) {
	for effect, want := range map[breaker.BudgetEffect]struct {
		state breaker.State
		shown bool
	}{
		breaker.BudgetSignals: {breaker.Closed, true},
		breaker.BudgetOpens:   {breaker.Open, true},
		breaker.BudgetIgnored: {breaker.Closed, false},
	} {
		t.Run(effect.String(), func(t *testing.T) {
			var moves []breaker.Transition
			b := breaker.New(breaker.Policy{OnBudget: effect}.WithDefaults(0), func(e breaker.Transition) { moves = append(moves, e) })
			now := time.Now()
			for i := range 100 {
				if i == 19 { // never before 20 calls, whatever the budget says
					if b.BudgetRefused(now); b.State() != breaker.Closed {
						t.Fatal("opened after 19 calls")
					}
				}
				o := breaker.Good
				if i%5 < 2 {
					o = breaker.Failed
				}
				b.Record(breaker.Permit{}, o, now)
			}
			b.BudgetRefused(now)
			if b.State() != want.state || b.BudgetSpent(now.Add(10*time.Second)) != want.shown || b.BudgetSpent(now.Add(11*time.Second)) {
				t.Errorf("with 40 %% of failures and a spent budget: %v, shown %v; want %+v, for 10 s", b.State(), b.BudgetSpent(now), want)
			}
			if want.state == breaker.Open && (len(moves) != 1 || moves[0].Cause != breaker.CauseBudget || !moves[0].BudgetSpent) {
				t.Errorf("moves %+v, want one that names the budget as its cause", moves)
			}
		})
	}
}

// TestRatesAreJudgedWithTheirError: 99.9 % by Wilson's lower bound.
func TestRatesAreJudgedWithTheirError(t *testing.T) {
	for _, tt := range []struct {
		name string
		play string // attempts: x failed, s slow, anything else good
		want breaker.State
	}{
		{"all of 19", strings.Repeat("x", 19), breaker.Closed},
		{"all of 20", strings.Repeat("x", 20), breaker.Open},
		{"16 of 20", "...." + strings.Repeat("x", 16), breaker.Closed},
		{"17 of 20", "..." + strings.Repeat("x", 17), breaker.Open},
		{"65 of 100", strings.Repeat(".", 35) + strings.Repeat("x", 65), breaker.Closed},
		{"66 of 100, after many good ones", strings.Repeat(".", 900) + strings.Repeat("x", 66), breaker.Open},
		{"65 of 100, after many good ones", strings.Repeat(".", 900) + strings.Repeat("x", 65), breaker.Closed},
		{"80 slow of 100", strings.Repeat("ssss.", 20), breaker.Closed},
		{"93 slow of 100", "......." + strings.Repeat("s", 93), breaker.Open},
		{"failed and slow by turns", strings.Repeat("sx", 200), breaker.Closed},
		{"53 % of many", strings.Repeat("x.", 440) + strings.Repeat("xxx.xx.xxx.", 40), breaker.Open},
	} {
		b := breaker.New(breaker.Policy{}.WithDefaults(0), nil)
		now := time.Now()
		for _, c := range tt.play {
			b.Record(breaker.Permit{}, map[rune]breaker.Outcome{'x': breaker.Failed, 's': breaker.Slow}[c], now)
		}
		if got := b.State(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestChanceOpensNothing: a busy dependency that fails 45 % of the attempts shows
// 66 failures of 100 now and then, and is no reason to stop; the same 66 after
// peace are. Seed 128 shows them early.
func TestChanceOpensNothing(t *testing.T) {
	seed, attempts := ringtest.Size(uint64(128), 1), ringtest.Size(10_000, 2_000_000)
	for _, rate := range []float64{0.3, 0.4, 0.45} {
		b := breaker.New(breaker.Policy{}.WithDefaults(0), nil)
		rng, now := rand.New(rand.NewPCG(seed, 2)), time.Now()
		var latest [100]int // 1 failed
		failed, shown := 0, false
		for i := range attempts {
			o, bad := breaker.Good, 0
			if rng.Float64() < rate {
				o, bad = breaker.Failed, 1
			}
			failed += bad - latest[i%100]
			latest[i%100] = bad
			shown = shown || i > 1500 && failed >= 66
			now = now.Add(time.Millisecond)
			if b.Record(breaker.Permit{}, o, now); b.State() != breaker.Closed {
				t.Errorf("%v of failures: opened after %d attempts", rate, i)
				break
			}
		}
		if rate == 0.45 && !shown {
			t.Error("never 66 failures of 100: the sequence tests nothing")
		}
	}
}

// Two attempts of five fail, all at once. Whoever judges while the others record
// must not see their failures without their calls.
func TestRatesAreReadInOrder(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for range 3000 {
		b := breaker.New(breaker.Policy{}.WithDefaults(0), nil)
		now := time.Now()
		var recording sync.WaitGroup
		start := make(chan struct{})
		for i := range 60 {
			recording.Go(func() {
				<-start
				p, _ := b.Allow(now)
				o := breaker.Good
				if i%5 < 2 {
					o = breaker.Failed
				}
				b.Record(p, o, now)
			})
		}
		close(start)
		recording.Wait()
		if b.State() != breaker.Closed {
			t.Fatalf("opened at a rate of %v", b.FailureRate(now))
		}
	}
}

// TestOpenForGrows: 5 s, and 5 s again after the first probing that fails, doubled
// with each further one, 30 s at most, and 5 s after a minute without an opening.
func TestOpenForGrows(t *testing.T) {
	var got []time.Duration
	b := breaker.New(breaker.Policy{}.WithDefaults(0), func(e breaker.Transition) {
		if e.To == breaker.Open {
			got = append(got, e.OpenFor)
		}
	})
	now := time.Now()
	end := func(o breaker.Outcome, n int) {
		for range n {
			now = now.Add(b.Wait(now))
			p, ok := b.Allow(now)
			if !ok {
				t.Fatalf("not let through after the wait, %v", b.State())
			}
			b.Record(p, o, now)
		}
	}
	end(breaker.Failed, 25) // 20 open it, five probes fail
	end(breaker.Good, 5)
	end(breaker.Failed, 20) // within a minute: as long as the last time
	end(breaker.Good, 5)
	now = now.Add(time.Minute)
	end(breaker.Failed, 20)
	const s = time.Second
	if want := []time.Duration{5 * s, 5 * s, 10 * s, 20 * s, 30 * s, 30 * s, 30 * s, 5 * s}; !slices.Equal(got, want) {
		t.Errorf("open for %v, want %v", got, want)
	}
}

func TestBreakerByHand(t *testing.T) {
	var moves []breaker.Transition
	b := breaker.New(breaker.Policy{}.WithDefaults(0), func(e breaker.Transition) { moves = append(moves, e) })
	now := time.Now()
	b.Force(breaker.Open, "ada", now)
	if _, ok := b.Allow(now.Add(time.Hour)); ok {
		t.Error("a breaker held open let an attempt through")
	}
	b.Force(breaker.Closed, "ada", now)
	for range 50 {
		p, _ := b.Allow(now)
		b.Record(p, breaker.Failed, now)
	}
	if b.State() != breaker.Closed {
		t.Error("a breaker held closed opened")
	}
	b.Release()
	p, _ := b.Allow(now)
	b.Record(p, breaker.Failed, now)
	if b.State() != breaker.Open {
		t.Error("released, it did not move by itself")
	}
	if len(moves) != 3 || moves[0].Actor != "ada" || moves[1].Actor != "ada" || moves[2].Actor != "" {
		t.Errorf("got moves %+v", moves)
	}
}

// What another process has found opens a closed breaker, which then moves by itself; one
// that an operator holds stays.
func TestBreakerFollowsAnotherProcess(t *testing.T) {
	var moves []breaker.Transition
	b := breaker.New(breaker.Policy{}.WithDefaults(0), func(e breaker.Transition) { moves = append(moves, e) })
	now := time.Now()
	b.Force(breaker.Closed, "ada", now)
	b.Follow(now)
	if b.State() != breaker.Closed || !b.Forced() {
		t.Error("a breaker that is held closed followed")
	}
	b.Release()
	b.Follow(now)
	b.Follow(now)
	if len(moves) != 1 || moves[0].To != breaker.Open || moves[0].Cause != breaker.CauseOtherProcess || moves[0].Actor != "" || moves[0].OpenFor <= 0 {
		t.Fatalf("got moves %+v", moves)
	}
	for range 5 {
		p, ok := b.Allow(now.Add(moves[0].OpenFor))
		if !ok {
			t.Fatal("no probe when its wait was over")
		}
		b.Record(p, breaker.Good, now)
	}
	if b.State() != breaker.Closed || b.Cause() != breaker.CauseRecovered {
		t.Errorf("after five good probes it is %v, %v", b.State(), b.Cause())
	}
}

func TestBreakerAndBudgetAllocateNothing(t *testing.T) {
	b := breaker.New(breaker.Policy{}.WithDefaults(0), nil)
	now := time.Now()
	if n := testing.AllocsPerRun(300, func() {
		p, _ := b.Allow(now)
		b.Record(p, breaker.Good, now)
	}); n != 0 {
		t.Errorf("breaker: %v allocations, want 0", n)
	}
}
