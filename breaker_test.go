package forbear_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forbear-go/forbear"
)

// modelBreaker is the circuit breaker of INTG-STD-033 in the plainest form: a
// slice of outcomes and the clock.
type modelBreaker struct {
	p         forbear.BreakerPolicy
	state     forbear.BreakerState
	outcomes  []forbear.Outcome
	openedAt  time.Time
	permits   int
	succeeded int
	spentAt   time.Time
	spent     bool
	// born counts transitions: an attempt's end counts only in the period in
	// which it began.
	period int
}

type modelPermit struct {
	period int
	probe  bool
}

func (m *modelBreaker) allow(now time.Time) (modelPermit, bool) {
	if m.state == forbear.BreakerOpen && now.Sub(m.openedAt) >= m.p.OpenFor {
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
		m.outcomes = append(m.outcomes, o)
		if over := len(m.outcomes) - m.p.Window; over > 0 {
			m.outcomes = m.outcomes[over:]
		}
		m.judge(now)
	case forbear.BreakerHalfOpen:
		if o == forbear.OutcomeFailed {
			m.open(now)
		} else if m.succeeded++; m.succeeded == m.p.Probes {
			m.state, m.outcomes, m.spent = forbear.BreakerClosed, nil, false
			m.period++
		}
	}
}

func (m *modelBreaker) judge(now time.Time) {
	var failed, slow int
	for _, o := range m.outcomes {
		switch o {
		case forbear.OutcomeFailed:
			failed++
		case forbear.OutcomeSlow:
			slow++
		}
	}
	rate := m.p.FailureRate
	if m.spent && now.Sub(m.spentAt) <= time.Second {
		rate = min(rate, forbear.MinFailureRate)
	}
	n := float64(len(m.outcomes))
	if len(m.outcomes) >= m.p.MinCalls && (failed > 0 && float64(failed) >= rate*n || slow > 0 && float64(slow) >= m.p.SlowRate*n) {
		m.open(now)
	}
}

func (m *modelBreaker) open(now time.Time) {
	m.state, m.openedAt = forbear.BreakerOpen, now
	m.period++
}

// TestBreakerAgainstModel drives the breaker and the model with the same random
// sequences and compares every answer.
func TestBreakerAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p := forbear.BreakerPolicy{
			Window: 5 + rng.IntN(60), MinCalls: 1 + rng.IntN(5), Probes: 1 + rng.IntN(6),
			OpenFor: time.Duration(5+rng.IntN(20)) * time.Second, FailureRate: 0.25 + rng.Float64()/2,
			OnBudget: forbear.BudgetEffect(rng.IntN(3)),
		}.WithDefaults(5 * time.Second)
		b, m := forbear.NewBreaker(p, nil), &modelBreaker{p: p}
		type open struct {
			permit forbear.Permit
			model  modelPermit
		}
		var under []open
		now := time.Now()
		bad := rng.Float64() // how ill the dependency is
		for step := range 3000 {
			if rng.IntN(50) == 0 {
				bad = rng.Float64()
			}
			now = now.Add(time.Duration(rng.IntN(500)) * time.Millisecond)
			switch what := rng.IntN(20); {
			case what < 9:
				permit, ok := b.Allow(now)
				want, wantOK := m.allow(now)
				if ok != wantOK || permit.Probe != want.probe {
					t.Fatalf("seed %d step %d: allow %v probe %v, want %v probe %v", seed, step, ok, permit.Probe, wantOK, want.probe)
				}
				if ok {
					under = append(under, open{permit, want})
				}
			case what < 18 && len(under) > 0:
				i := rng.IntN(len(under))
				o := forbear.OutcomeGood
				if u := rng.Float64(); u < bad {
					o = forbear.OutcomeFailed
				} else if u < bad+0.1 {
					o = forbear.OutcomeSlow
				}
				b.Record(under[i].permit, o, now)
				m.record(under[i].model, o, now)
				under = append(under[:i], under[i+1:]...)
			case what == 18 && p.OnBudget != forbear.BudgetIgnored:
				b.BudgetRefused(now)
				m.spent, m.spentAt = true, now
				if m.state == forbear.BreakerClosed {
					if p.OnBudget == forbear.BudgetOpens {
						m.open(now)
					} else {
						m.judge(now)
					}
				}
			case what == 19:
				b.BudgetGranted()
				m.spent = false
			}
			if got := b.State(); got != m.state {
				t.Fatalf("seed %d step %d: %v, want %v", seed, step, got, m.state)
			}
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
		r := quiet(t, forbear.Policy{Breaker: forbear.BreakerPolicy{MinCalls: 2, Window: 10}},
			forbear.WithBudget(unlimited()))
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
		time.Sleep(30 * time.Second)
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

// TestBudgetLowersTheThreshold: 30 % of failures open the breaker only while the
// budget is exhausted.
func TestBudgetLowersTheThreshold(t *testing.T) {
	for effect, want := range map[forbear.BudgetEffect]forbear.BreakerState{
		forbear.BudgetSignals: forbear.BreakerOpen,
		forbear.BudgetOpens:   forbear.BreakerOpen,
		forbear.BudgetIgnored: forbear.BreakerClosed,
	} {
		t.Run(effect.String(), func(t *testing.T) {
			b := forbear.NewBreaker(forbear.BreakerPolicy{OnBudget: effect}.WithDefaults(0), nil)
			now := time.Now()
			for i := range 100 {
				p, _ := b.Allow(now)
				o := forbear.OutcomeGood
				if i%10 < 3 {
					o = forbear.OutcomeFailed
				}
				b.Record(p, o, now)
			}
			if b.State() != forbear.BreakerClosed {
				t.Fatal("30 % of failures opened the breaker without the budget's word")
			}
			b.BudgetRefused(now)
			if got := b.State(); got != want {
				t.Errorf("after the budget refused: %v, want %v", got, want)
			}
		})
	}
	quietBreaker := forbear.NewBreaker(forbear.BreakerPolicy{}.WithDefaults(0), nil)
	now := time.Now()
	for i := range 100 { // 21 % of failures: exhaustion alone must not open it
		o := forbear.OutcomeGood
		if i%5 == 0 || i == 1 {
			o = forbear.OutcomeFailed
		}
		quietBreaker.Record(forbear.Permit{}, o, now)
	}
	if quietBreaker.BudgetRefused(now); quietBreaker.State() != forbear.BreakerClosed {
		t.Error("21 % of failures and an exhausted budget opened the breaker")
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
