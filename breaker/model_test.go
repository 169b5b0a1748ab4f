package breaker_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
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
	closedAt  time.Time
	wait      time.Duration
	failed    int // probings, since it was closed
	permits   int
	succeeded int
	probedAt  time.Time // the latest probe
	// period counts transitions: an attempt's end counts only in the period in
	// which it began.
	period  int
	overdue int // how often places were given again
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
		if overdue := max(m.p.OpenFor, m.p.SlowCall); m.permits == 0 && now.Sub(m.probedAt) >= overdue {
			m.permits = m.p.Probes - m.succeeded
			m.overdue++
		}
		if m.permits > 0 {
			m.permits--
			m.probedAt = now
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
			if m.failed++; m.failed > 1 {
				m.wait = min(2*m.wait, m.p.OpenFor)
			}
			m.open(now)
		} else if m.succeeded++; m.succeeded < m.p.Probes {
			m.permits = min(m.permits, m.p.Probes-m.succeeded)
		} else {
			m.passed = time.Time{}
			if now.Sub(m.openedAt) < 10*time.Second {
				m.passed = now
			}
			m.state, m.outcomes, m.closedAt, m.failed = breaker.Closed, nil, now, 0
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
			busy := nLately >= 10*n && sure(nLately, kLately) && now.Sub(m.closedAt) >= m.p.WindowTime
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
	seeds, again := ringtest.Size(40, 200), 0
	for seed := range uint64(seeds) {
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
		again += m.overdue
	}
	if again < seeds/20 {
		t.Errorf("the places of overdue probes were given again %d times: the sequences do not try it", again)
	}
	for _, c := range []breaker.Cause{breaker.CauseFailures, breaker.CauseSlow, breaker.CauseProbe, breaker.CauseRecovered} {
		if opened[c] < seeds/2 {
			t.Errorf("only %d moves for %v: the sequences do not try it", opened[c], c)
		}
	}
}
