package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/window"
)

// modelBreaker is the circuit breaker of INTG-STD-033 in the plainest form: a
// list of what happened, and the clock.
type modelBreaker struct {
	p         forbear.BreakerPolicy
	state     forbear.BreakerState
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
	forbear.Outcome
	at time.Time
}

type modelPermit struct {
	period int
	probe  bool
}

func (m *modelBreaker) allow(now time.Time) (modelPermit, bool) {
	if m.state == forbear.BreakerOpen && now.Sub(m.openedAt) >= m.wait {
		m.state, m.permits, m.succeeded = forbear.BreakerHalfOpen, m.p.Probes, 0
		m.period++
	}
	switch m.state {
	case forbear.BreakerClosed:
		return modelPermit{m.period, false}, true
	case forbear.BreakerHalfOpen:
		if m.permits > 0 {
			m.permits--
			return modelPermit{m.period, true}, true
		}
	}
	return modelPermit{}, false
}

func (m *modelBreaker) record(p modelPermit, o forbear.Outcome, now time.Time) {
	if p.period != m.period {
		return
	}
	switch m.state {
	case forbear.BreakerClosed:
		m.outcomes = append(m.outcomes, modelOutcome{o, now})
		m.judge(now)
	case forbear.BreakerHalfOpen:
		if o == forbear.OutcomeFailed {
			m.wait = min(2*m.wait, m.p.OpenFor)
			m.open(now)
		} else if m.succeeded++; m.succeeded == m.p.Probes {
			m.passed = time.Time{}
			if now.Sub(m.openedAt) < 10*time.Second {
				m.passed = now
			}
			m.state, m.outcomes = forbear.BreakerClosed, nil
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
	for what, limit := range map[forbear.Outcome]float64{forbear.OutcomeFailed: m.p.FailureRate, forbear.OutcomeSlow: m.p.SlowRate} {
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

func share(list []modelOutcome, what forbear.Outcome) (n, k float64) {
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
	m.state, m.openedAt, m.shows = forbear.BreakerOpen, now, time.Time{}
	m.period++
}

// TestBreakerAgainstModel drives the breaker and the model with the same random
// sequences and compares every answer.
func TestBreakerAgainstModel(t *testing.T) {
	opened := map[forbear.BreakerCause]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := forbear.BreakerPolicy{
			Window: 5 + rng.IntN(100), MinCalls: 1 + rng.IntN(25), Probes: 1 + rng.IntN(6), WindowTime: time.Duration(10+rng.IntN(100)) * time.Second,
			OpenFor: time.Duration(5+rng.IntN(60)) * time.Second, FailureRate: 0.25 + rng.Float64()/2, SlowRate: 0.3 + rng.Float64()/2,
		}.WithDefaults(5 * time.Second)
		latest := forbear.CauseNone
		b := forbear.NewBreaker(p, func(e forbear.BreakerMoved) { opened[e.Cause]++; latest = e.Cause })
		m := &modelBreaker{p: p}
		type open struct {
			permit forbear.Permit
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
				o := forbear.OutcomeGood
				if u := rng.Float64(); u < bad {
					o = forbear.OutcomeFailed
				} else if rng.Float64() < slow {
					o = forbear.OutcomeSlow
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
	for _, c := range []forbear.BreakerCause{forbear.CauseFailures, forbear.CauseSlow, forbear.CauseProbe, forbear.CauseRecovered} {
		if opened[c] < 100 {
			t.Errorf("only %d moves for %v: the sequences do not try it", opened[c], c)
		}
	}
}

func TestBreakerFromManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	var moves []forbear.BreakerMoved
	b := forbear.NewBreaker(forbear.BreakerPolicy{OpenFor: 5 * time.Second}.WithDefaults(0), func(e forbear.BreakerMoved) {
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
					b.Record(permit, forbear.OutcomeFailed, now)
				default:
					b.Record(permit, forbear.OutcomeGood, now)
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

// TestBreakerOpensInTheMiddle: the breaker wraps the retries and ends running
// sequences; afterwards no attempt is made at all.
func TestBreakerOpensInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithBudget(unlimited()))
		for range 18 {
			r.Breaker().Record(forbear.Permit{}, forbear.OutcomeFailed, time.Now())
		}
		attempts := 0
		op := func(context.Context) error {
			attempts++
			return forbear.Retryable(errFlaky, forbear.Hint{})
		}
		err := r.Do(t.Context(), op)
		if !errors.Is(err, forbear.ErrBreakerOpen) || !errors.Is(err, errFlaky) || attempts != 2 {
			t.Fatalf("%d attempts, %v; want 2, ErrBreakerOpen and the operation's error", attempts, err)
		}
		if err = r.Do(t.Context(), op); !errors.Is(err, forbear.ErrBreakerOpen) || attempts != 2 {
			t.Fatalf("open: %d attempts, %v; want none and ErrBreakerOpen", attempts-2, err)
		}
		if e, _ := errors.AsType[*forbear.Error](err); e.Attempts != 0 || e.Retryable() {
			t.Errorf("a rejection has %d attempts, retryable %v", e.Attempts, e.Retryable())
		}
		time.Sleep(5 * time.Second)
		good := func(context.Context) error { attempts++; return nil }
		for range 5 {
			if err := r.Do(t.Context(), good); err != nil {
				t.Fatal(err)
			}
		}
		if s := r.Breaker().State(); s != forbear.BreakerClosed {
			t.Errorf("after five good probes: %v", s)
		}
	})
}

// TestRecoveryWithinOneOpenPeriod: a dependency that is well again is used again
// no later than one open period after.
func TestRecoveryWithinOneOpenPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{})
		down := true
		op := func(context.Context) error {
			if down {
				return forbear.Retryable(errFlaky, forbear.Hint{NoBackoff: true})
			}
			return nil
		}
		for range 100 {
			_ = r.Do(t.Context(), op)
			time.Sleep(100 * time.Millisecond)
		}
		if r.Breaker().State() == forbear.BreakerClosed {
			t.Fatal("the breaker is closed during the outage")
		}
		down = false
		healed := time.Now()
		for r.Breaker().State() != forbear.BreakerClosed {
			_ = r.Do(t.Context(), op)
			time.Sleep(100 * time.Millisecond)
			if time.Since(healed) > time.Minute {
				t.Fatal("no recovery within a minute")
			}
		}
		if took := time.Since(healed); took > 30*time.Second+time.Second {
			t.Errorf("recovery took %v, want at most one open period of 30s", took)
		}
	})
}

// TestBudgetIsShown: an exhausted budget never changes when the breaker opens,
// unless the policy has R-7's SHOULD literally.
func TestBudgetIsShown(t *testing.T) {
	for effect, want := range map[forbear.BudgetEffect]struct {
		state forbear.BreakerState
		shown bool
	}{
		forbear.BudgetSignals: {forbear.BreakerClosed, true},
		forbear.BudgetOpens:   {forbear.BreakerOpen, true},
		forbear.BudgetIgnored: {forbear.BreakerClosed, false},
	} {
		t.Run(effect.String(), func(t *testing.T) {
			var moves []forbear.BreakerMoved
			b := forbear.NewBreaker(forbear.BreakerPolicy{OnBudget: effect}.WithDefaults(0), func(e forbear.BreakerMoved) { moves = append(moves, e) })
			now := time.Now()
			for i := range 100 {
				if i == 19 { // never before 20 calls, whatever the budget says
					if b.BudgetRefused(now); b.State() != forbear.BreakerClosed {
						t.Fatal("opened after 19 calls")
					}
				}
				o := forbear.OutcomeGood
				if i%5 < 2 {
					o = forbear.OutcomeFailed
				}
				b.Record(forbear.Permit{}, o, now)
			}
			b.BudgetRefused(now)
			if b.State() != want.state || b.BudgetSpent(now.Add(10*time.Second)) != want.shown || b.BudgetSpent(now.Add(11*time.Second)) {
				t.Errorf("with 40 %% of failures and a spent budget: %v, shown %v; want %+v, for 10 s", b.State(), b.BudgetSpent(now), want)
			}
			if want.state == forbear.BreakerOpen && (len(moves) != 1 || moves[0].Cause != forbear.CauseBudget || !moves[0].BudgetSpent) {
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
		want forbear.BreakerState
	}{
		{"all of 19", strings.Repeat("x", 19), forbear.BreakerClosed},
		{"all of 20", strings.Repeat("x", 20), forbear.BreakerOpen},
		{"16 of 20", "...." + strings.Repeat("x", 16), forbear.BreakerClosed},
		{"17 of 20", "..." + strings.Repeat("x", 17), forbear.BreakerOpen},
		{"65 of 100", strings.Repeat(".", 35) + strings.Repeat("x", 65), forbear.BreakerClosed},
		{"66 of 100, after many good ones", strings.Repeat(".", 900) + strings.Repeat("x", 66), forbear.BreakerOpen},
		{"65 of 100, after many good ones", strings.Repeat(".", 900) + strings.Repeat("x", 65), forbear.BreakerClosed},
		{"80 slow of 100", strings.Repeat("ssss.", 20), forbear.BreakerClosed},
		{"93 slow of 100", "......." + strings.Repeat("s", 93), forbear.BreakerOpen},
		{"failed and slow by turns", strings.Repeat("sx", 200), forbear.BreakerClosed},
		{"53 % of many", strings.Repeat("x.", 440) + strings.Repeat("xxx.xx.xxx.", 40), forbear.BreakerOpen},
	} {
		b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), nil)
		now := time.Now()
		for _, c := range tt.play {
			b.Record(forbear.Permit{}, map[rune]forbear.Outcome{'x': forbear.OutcomeFailed, 's': forbear.OutcomeSlow}[c], now)
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
		b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), nil)
		rng, now := rand.New(rand.NewPCG(1, 2)), time.Now()
		for i := range attempts {
			o := forbear.OutcomeGood
			if rng.Float64() < rate {
				o = forbear.OutcomeFailed
			}
			now = now.Add(time.Millisecond)
			if b.Record(forbear.Permit{}, o, now); b.State() != forbear.BreakerClosed {
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
		b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), nil)
		now := time.Now()
		var recording sync.WaitGroup
		start := make(chan struct{})
		for i := range 60 {
			recording.Go(func() {
				<-start
				p, _ := b.Allow(now)
				o := forbear.OutcomeGood
				if i%5 < 2 {
					o = forbear.OutcomeFailed
				}
				b.Record(p, o, now)
			})
		}
		close(start)
		recording.Wait()
		if b.State() != forbear.BreakerClosed {
			t.Fatalf("opened at a rate of %v", b.FailureRate(now))
		}
	}
}

// TestOpenForGrows: 5 s, doubled with each probing that fails, 30 s at most, and
// 5 s again after a minute without an opening.
func TestOpenForGrows(t *testing.T) {
	var got []time.Duration
	b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), func(e forbear.BreakerMoved) {
		if e.To == forbear.BreakerOpen {
			got = append(got, e.OpenFor)
		}
	})
	now := time.Now()
	end := func(o forbear.Outcome, n int) {
		for range n {
			now = now.Add(b.Wait(now))
			p, ok := b.Allow(now)
			if !ok {
				t.Fatalf("not let through after the wait, %v", b.State())
			}
			b.Record(p, o, now)
		}
	}
	end(forbear.OutcomeFailed, 24) // 20 open it, four probes fail
	end(forbear.OutcomeGood, 5)
	end(forbear.OutcomeFailed, 20) // within a minute: as long as the last time
	end(forbear.OutcomeGood, 5)
	now = now.Add(time.Minute)
	end(forbear.OutcomeFailed, 20)
	const s = time.Second
	if want := []time.Duration{5 * s, 10 * s, 20 * s, 30 * s, 30 * s, 30 * s, 5 * s}; !slices.Equal(got, want) {
		t.Errorf("open for %v, want %v", got, want)
	}
}

func TestBreakerByHand(t *testing.T) {
	var moves []forbear.BreakerMoved
	b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), func(e forbear.BreakerMoved) { moves = append(moves, e) })
	now := time.Now()
	b.Force(forbear.BreakerOpen, "ada", now)
	if _, ok := b.Allow(now.Add(time.Hour)); ok {
		t.Error("a breaker held open let an attempt through")
	}
	b.Force(forbear.BreakerClosed, "ada", now)
	for range 50 {
		p, _ := b.Allow(now)
		b.Record(p, forbear.OutcomeFailed, now)
	}
	if b.State() != forbear.BreakerClosed {
		t.Error("a breaker held closed opened")
	}
	b.Release()
	p, _ := b.Allow(now)
	b.Record(p, forbear.OutcomeFailed, now)
	if b.State() != forbear.BreakerOpen {
		t.Error("released, it did not move by itself")
	}
	if len(moves) != 3 || moves[0].Actor != "ada" || moves[1].Actor != "ada" || moves[2].Actor != "" {
		t.Errorf("got moves %+v", moves)
	}
}

func TestBulkhead(t *testing.T) {
	r := quiet(t, forbear.Policy{MaxConcurrent: 2})
	entered, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_ = r.Do(t.Context(), func(context.Context) error { entered <- struct{}{}; <-release; return nil })
		})
		<-entered
	}
	err := r.Do(t.Context(), func(context.Context) error { t.Error("a third call was let in"); return nil })
	if !errors.Is(err, forbear.ErrBulkheadFull) {
		t.Errorf("third call: %v, want ErrBulkheadFull", err)
	}
	if rate := r.Breaker().FailureRate(time.Now()); rate != 1 {
		t.Errorf("the rejection is no signal to the breaker: failure rate %v", rate)
	}
	close(release)
	wg.Wait()
	func() {
		defer func() { _ = recover() }()
		_ = r.Do(t.Context(), func(context.Context) error { panic("boom") })
	}()
	if n := r.Bulkhead().Available(); n != 2 {
		t.Errorf("%d places free after all calls ended, one by a panic; want 2", n)
	}
	if n := forbear.BulkheadSize(100, 250*time.Millisecond, 2); n != 50 {
		t.Errorf("size for 100/s at 250ms: %d, want 50", n)
	}
}

func TestBreakerAndBudgetAllocateNothing(t *testing.T) {
	b := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), nil)
	now := time.Now()
	if n := testing.AllocsPerRun(300, func() {
		p, _ := b.Allow(now)
		b.Record(p, forbear.OutcomeGood, now)
	}); n != 0 {
		t.Errorf("breaker: %v allocations, want 0", n)
	}
}

func TestOnlyTheOwnerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for service, want := range map[string]int{"checkout": 4, "gateway": 1} {
			r := quiet(t, forbear.Policy{Owner: "checkout"}, forbear.WithService(service))
			n := 0
			err := r.Do(t.Context(), func(context.Context) error { n++; return forbear.Retryable(errFlaky, forbear.Hint{}) })
			e, _ := errors.AsType[*forbear.Error](err)
			if n != want || e.Retryable() != (service != "checkout") {
				t.Errorf("%s: %d attempts, %v, retryable above: %v", service, n, err, e.Retryable())
			}
		}
	})
}

// TestLayerBelowIsNoticed: an SDK that repeats a request within one attempt.
func TestLayerBelowIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []forbear.LayeredRetry
		r, err := forbear.New("payments", forbear.Policy{}, forbear.WithObserver(layerObserver(func(e forbear.LayeredRetry) { seen = append(seen, e) })))
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Do(t.Context(), func(ctx context.Context) error {
			forbear.NoteSend(ctx, 1)
			forbear.NoteSend(ctx, 2) // another request is no repetition
			forbear.NoteSend(ctx, 1) // this one is
			return forbear.Retryable(errFlaky, forbear.Hint{})
		})
		if len(seen) != 1 || seen[0].Sends != 2 || r.LayeredSends() != 3 {
			t.Errorf("reported %+v, counted %d; want one report of 2 sends, and 3 counted", seen, r.LayeredSends())
		}
	})
}

type layerObserver func(forbear.LayeredRetry)

func (o layerObserver) LayeredRetry(_ context.Context, e forbear.LayeredRetry) { o(e) }

func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := forbear.NewCredentials(forbear.TokenSourceFunc(func(context.Context) (forbear.Token, error) {
			time.Sleep(time.Second)
			n++
			return forbear.Token{Value: fmt.Sprintf("Bearer secret-%d", n), Expires: time.Now().Add(time.Minute)}, nil
		}))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if tok, err := c.Token(t.Context()); err != nil || tok.Value != "Bearer secret-1" {
					t.Errorf("got %q, %v", tok.Value, err)
				}
			})
		}
		wg.Wait()
		if n != 1 {
			t.Errorf("%d fetches for twenty callers, want 1", n)
		}
		first, _ := c.Token(t.Context())
		if s := fmt.Sprintf("%v %+v %#v %s", first, first, first, first); strings.Contains(s, "secret") {
			t.Errorf("printing a token shows it: %s", s)
		}
		c.Refused(first)
		second, err := c.Token(t.Context())
		if err != nil || n != 2 {
			t.Fatalf("after a refusal: %d fetches, %v", n, err)
		}
		c.Refused(first) // late news of the old one
		if again, _ := c.Token(t.Context()); again.Value != second.Value || n != 2 {
			t.Error("the refusal of an old token dropped the new one")
		}
		time.Sleep(55 * time.Second)
		if _, _ = c.Token(t.Context()); n != 3 {
			t.Errorf("%d fetches, want a third shortly before the end", n)
		}
	})
}

func TestCredentialsAreNeverWeakened(t *testing.T) {
	values := []string{"Bearer a", "Basic b", ""}
	c := forbear.NewCredentials(forbear.TokenSourceFunc(func(context.Context) (forbear.Token, error) {
		v := values[0]
		values = values[1:]
		return forbear.Token{Value: v}, nil
	}))
	first, err := c.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Refused(first)
	for range 2 {
		if _, err := c.Token(t.Context()); !errors.Is(err, forbear.ErrWeakCredential) {
			t.Errorf("got %v, want ErrWeakCredential", err)
		}
	}
	failing := forbear.NewCredentials(forbear.TokenSourceFunc(func(context.Context) (forbear.Token, error) {
		return forbear.Token{}, forbear.ErrTokenRevoked
	}))
	if _, err := failing.Token(t.Context()); !errors.Is(err, forbear.ErrRefreshFailed) || !errors.Is(err, forbear.ErrTokenRevoked) {
		t.Errorf("got %v, want ErrRefreshFailed and ErrTokenRevoked", err)
	}
}

// A call that succeeds after a wait counts as good when it does, not when it
// began.
func TestLateSuccessCountsWhenItHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{
			Budget:  forbear.BudgetPolicy{MinRetries: 100},
			Breaker: forbear.BreakerPolicy{WindowTime: 10 * time.Second},
		})
		var calls sync.WaitGroup
		for range 19 {
			if err := r.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			calls.Go(func() {
				attempts := 0
				if err := r.Do(t.Context(), func(context.Context) error {
					if attempts++; attempts == 1 {
						return forbear.Retryable(errFlaky, forbear.Hint{Floor: 20 * time.Second})
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		for range 20 {
			_ = r.Do(t.Context(), func(context.Context) error { return forbear.Retryable(errFlaky, forbear.Hint{Stop: true}) })
		}
		if s := r.Breaker().State(); s != forbear.BreakerClosed {
			t.Errorf("%v after 20 failures beside 19 successes", s)
		}
	})
}

// TestBreakerOpensDuringTheWait: what was granted before the wait is asked for
// again after it.
func TestBreakerOpensDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := quiet(t, forbear.Policy{}, forbear.WithDraw(func() float64 { return 0.5 }))
		attempts := 0
		time.AfterFunc(100*time.Millisecond, func() { r.Breaker().Force(forbear.BreakerOpen, "ada", time.Now()) })
		err := r.Do(t.Context(), func(context.Context) error {
			attempts++
			return forbear.Retryable(errFlaky, forbear.Hint{})
		})
		if !errors.Is(err, forbear.ErrBreakerOpen) || !errors.Is(err, errFlaky) || attempts != 1 {
			t.Errorf("%d attempts, %v; want 1, ErrBreakerOpen and the operation's error", attempts, err)
		}
		if used := r.Level(time.Now()).Used; used != 0 {
			t.Errorf("the retry that was not made still costs %v", used)
		}
	})
}
