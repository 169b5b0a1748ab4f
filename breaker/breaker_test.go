package breaker_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/window"
)

// modelBreaker is the circuit breaker of INTG-STD-033 in the plainest form: a
// list of what happened, and the clock.
type modelBreaker struct {
	p         breaker.Policy
	state     breaker.State
	outcomes  []modelOutcome
	openedAt  time.Time
	passed    time.Time // when trouble was last over by itself
	shows     time.Time // since when trouble does; zero: none
	wait      time.Duration
	permits   int
	succeeded int
	// period counts transitions: an attempt's end counts only in the period in
	// which it began.
	period int
}

type modelOutcome struct {
	breaker.Outcome
	at time.Time
}

type modelPermit struct {
	period int
	probe  bool
}

func (m *modelBreaker) allow(now time.Time) (modelPermit, bool) {
	if m.state == breaker.Open && now.Sub(m.openedAt) >= m.wait {
		m.state, m.permits, m.succeeded = breaker.HalfOpen, m.p.Probes, 0
		m.period++
	}
	switch m.state {
	case breaker.Closed:
		return modelPermit{m.period, false}, true
	case breaker.HalfOpen:
		if m.permits > 0 {
			m.permits--
			return modelPermit{m.period, true}, true
		}
	}
	return modelPermit{}, false
}

func (m *modelBreaker) record(p modelPermit, o breaker.Outcome, now time.Time) {
	if p.period != m.period {
		return
	}
	switch m.state {
	case breaker.Closed:
		m.outcomes = append(m.outcomes, modelOutcome{o, now})
		m.judge(now)
	case breaker.HalfOpen:
		if o == breaker.Failed {
			m.wait = min(2*m.wait, m.p.OpenFor)
			m.open(now)
		} else if m.succeeded++; m.succeeded == m.p.Probes {
			m.passed = time.Time{}
			if now.Sub(m.openedAt) < 10*time.Second {
				m.passed = now
			}
			m.state, m.outcomes = breaker.Closed, nil
			m.period++
		}
	}
}

func (m *modelBreaker) judge(now time.Time) {
	latest := m.outcomes[max(len(m.outcomes)-m.p.Window, 0):]
	var lately []modelOutcome
	slot := func(t time.Time) int { return int(t.Sub(window.Epoch()) / window.Width(m.p.WindowTime)) }
	for _, o := range m.outcomes {
		if slot(now)-slot(o.at) < window.Slots {
			lately = append(lately, o)
		}
	}
	calm := true
	for what, limit := range map[breaker.Outcome]float64{breaker.Failed: m.p.FailureRate, breaker.Slow: m.p.SlowRate} {
		n, k := share(latest, what)
		nLately, kLately := share(lately, what)
		sure := func(n, k float64) bool { return n >= float64(m.p.MinCalls) && wilson(k, n, 3.0902323) > limit }
		around := kLately / nLately
		odd := nLately < 10*n || math.Abs(k/n-around) > 5*math.Sqrt(around*(1-around)/n)
		calm = calm && k/n <= limit
		if k/n > limit && (sure(nLately, kLately) || sure(n, k) && odd) {
			if m.shows.IsZero() {
				m.shows = now
			}
			busy := nLately >= 10*n && sure(nLately, kLately)
			if m.remembers(now) && now.Sub(m.shows) < 5*time.Second && !busy {
				return
			}
			if m.wait == 0 || now.Sub(m.openedAt) > time.Minute {
				m.wait = min(5*time.Second, m.p.OpenFor)
			}
			m.open(now)
			return
		}
	}
	if calm && !m.shows.IsZero() {
		m.shows = time.Time{}
		if m.remembers(now) {
			m.passed = now
		}
	}
}

func (m *modelBreaker) remembers(now time.Time) bool {
	return !m.passed.IsZero() && now.Sub(m.passed) <= 10*time.Minute
}

func share(list []modelOutcome, what breaker.Outcome) (n, k float64) {
	for _, o := range list {
		if o.Outcome == what {
			k++
		}
	}
	return float64(len(list)), k
}

// wilson is the lower end of Wilson's interval for k of n, as textbooks have it.
func wilson(k, n, z float64) float64 {
	p := k / n
	return (p + z*z/(2*n) - z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

func (m *modelBreaker) open(now time.Time) {
	m.state, m.openedAt, m.shows = breaker.Open, now, time.Time{}
	m.period++
}

// TestBreakerAgainstModel drives the breaker and the model with the same random
// sequences and compares every answer.
func TestBreakerAgainstModel(t *testing.T) {
	opened := map[breaker.Cause]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := breaker.Policy{
			Window: 5 + rng.IntN(100), MinCalls: 1 + rng.IntN(25), Probes: 1 + rng.IntN(6), WindowTime: time.Duration(10+rng.IntN(100)) * time.Second,
			OpenFor: time.Duration(5+rng.IntN(60)) * time.Second, FailureRate: 0.25 + rng.Float64()/2, SlowRate: 0.3 + rng.Float64()/2,
		}.WithDefaults(5 * time.Second)
		latest := breaker.CauseNone
		b := breaker.New(p, func(e breaker.Transition) { opened[e.Cause]++; latest = e.Cause })
		m := &modelBreaker{p: p}
		type open struct {
			permit breaker.Permit
			model  modelPermit
		}
		var under []open
		now := time.Now()
		bad, slow, pause := rng.Float64(), rng.Float64(), 1+rng.IntN(1000) // how ill the dependency is
		for step := range 3000 {
			if rng.IntN(200) == 0 {
				bad, slow, pause = rng.Float64(), rng.Float64(), 1+rng.IntN(1000)
			}
			now = now.Add(time.Duration(rng.IntN(pause)) * time.Millisecond)
			switch what := rng.IntN(20); {
			case what < 10:
				permit, ok := b.Allow(now)
				want, wantOK := m.allow(now)
				if ok != wantOK || permit.Probe != want.probe {
					t.Fatalf("seed %d step %d: allow %v probe %v, want %v probe %v", seed, step, ok, permit.Probe, wantOK, want.probe)
				}
				if ok {
					under = append(under, open{permit, want})
				}
			case what < 19 && len(under) > 0:
				i := rng.IntN(len(under))
				o := breaker.Good
				if u := rng.Float64(); u < bad {
					o = breaker.Failed
				} else if rng.Float64() < slow {
					o = breaker.Slow
				}
				b.Record(under[i].permit, o, now)
				m.record(under[i].model, o, now)
				under = append(under[:i], under[i+1:]...)
			case what == 19:
				b.BudgetRefused(now) // is shown, and changes nothing
			}
			if got := b.State(); got != m.state {
				t.Fatalf("seed %d step %d: %v, want %v", seed, step, got, m.state)
			}
			if got := b.Cause(); got != latest {
				t.Fatalf("seed %d step %d: cause %q, want that of the latest move, %q", seed, step, got, latest)
			}
		}
	}
	for _, c := range []breaker.Cause{breaker.CauseFailures, breaker.CauseSlow, breaker.CauseProbe, breaker.CauseRecovered} {
		if opened[c] < 100 {
			t.Errorf("only %d moves for %v: the sequences do not try it", opened[c], c)
		}
	}
}

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
// peace are.
func TestChanceOpensNothing(t *testing.T) {
	const attempts = 2_000_000
	for _, rate := range []float64{0.3, 0.4, 0.45} {
		b := breaker.New(breaker.Policy{}.WithDefaults(0), nil)
		rng, now := rand.New(rand.NewPCG(1, 2)), time.Now()
		for i := range attempts {
			o := breaker.Good
			if rng.Float64() < rate {
				o = breaker.Failed
			}
			now = now.Add(time.Millisecond)
			if b.Record(breaker.Permit{}, o, now); b.State() != breaker.Closed {
				t.Errorf("%v of failures: opened after %d attempts", rate, i)
				break
			}
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

// TestOpenForGrows: 5 s, doubled with each probing that fails, 30 s at most, and
// 5 s again after a minute without an opening.
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
	end(breaker.Failed, 24) // 20 open it, four probes fail
	end(breaker.Good, 5)
	end(breaker.Failed, 20) // within a minute: as long as the last time
	end(breaker.Good, 5)
	now = now.Add(time.Minute)
	end(breaker.Failed, 20)
	const s = time.Second
	if want := []time.Duration{5 * s, 10 * s, 20 * s, 30 * s, 30 * s, 30 * s, 5 * s}; !slices.Equal(got, want) {
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
