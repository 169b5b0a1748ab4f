package check

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/window"
	"github.com/forbear-go/forbear/policyfile"
)

// outcome counts what a simulated minute came to: calls, calls that
// succeeded, attempts sent, calls whose first attempt succeeded, and attempts
// that the breaker refused.
type outcome struct {
	calls, good, sends, firstTry, refused int
}

// add adds the calls of another process.
func (o *outcome) add(p outcome) {
	o.calls += p.calls
	o.good += p.good
	o.sends += p.sends
	o.firstTry += p.firstTry
	o.refused += p.refused
}

// The simulated minute has 6000 calls: enough that a share of a few percent
// is not chance.
const (
	simRate = 100 // calls a second
	simTime = 60 * time.Second
)

// minute is a minute of virtual time in one process: calls at even distances,
// through a Retryer of the policy itself. Attempts take no time: what counts is how
// many are sent, and how they end.
type minute struct {
	retryer *forbear.Retryer
	retries int // of a call
	budget  *ratio
	// breaker is nil where the retries are looked at alone.
	breaker *breaker.Breaker
	// hasty asks count and budget before the Retryer, so that most failures of an
	// outage need no decision. A health gate has to see every failure.
	hasty bool
	// fails says how the next attempt ends.
	fails func() bool
	// due are the retries that are granted.
	due queue
	outcome
}

// minutes are what became of a policy's calls in a normal minute, in which a few
// attempts fail, and in one in which all do.
type minutes struct {
	normal, outage outcome
	err            error // why they cannot be simulated
}

// transient is the share of attempts that fail in a normal minute.
const transient = 0.05

// simulateMinutes simulates both minutes for each dependency. The breaker is left out,
// so that they show the retry policy alone.
func simulateMinutes(ds []*policyfile.Dependency) map[*policyfile.Dependency]minutes {
	groups := alike(ds, func(p forbear.Policy) forbear.Policy {
		p.Owner, p.Breaker = "", breaker.Policy{}
		return p
	})
	simulated := make([]minutes, len(groups))
	inParallel(len(groups), func(i int) {
		d, m := groups[i][0], &simulated[i]
		if m.normal, m.err = retryMinute(d, transient); m.err == nil {
			m.outage, m.err = retryMinute(d, 1)
		}
	})
	all := make(map[*policyfile.Dependency]minutes, len(ds))
	for i, group := range groups {
		for _, d := range group {
			if all[d] = simulated[i]; simulated[i].err != nil {
				_, err := retryMinute(d, transient) // the error names the dependency
				all[d] = minutes{err: err}
			}
		}
	}
	return all
}

// retryMinute simulates a minute of d's retries.
func retryMinute(d *policyfile.Dependency, failing float64) (outcome, error) {
	random := rand.New(rand.NewPCG(1, 2))
	m, err := newMinute(d.Name, d.Policy, func() bool { return random.Float64() < failing }, random)
	if err != nil {
		return outcome{}, err
	}
	return m.run(simRate), nil
}

// unavailable is how attempts fail.
var unavailable = forbear.Failure{Class: forbear.ClassTransient, Type: "http_503"}

// newMinute prepares a minute. Its time begins with the windows' epoch, so that two
// runs with the same numbers give the same figures.
func newMinute(name string, p forbear.Policy, fails func() bool, waits *rand.Rand, opts ...forbear.Option) (*minute, error) {
	p.Breaker = breaker.Policy{Disabled: true}
	m := &minute{
		retries: p.Retries(), budget: newRatio(p.WithDefaults().Budget), hasty: !p.Health.Enabled(), fails: fails,
	}
	r, err := forbear.New(name, p, append(opts[:len(opts):len(opts)], forbear.WithoutLog(), forbear.WithCallerDeadLetter(),
		forbear.WithBudget(m.budget), forbear.WithRand(waits.Float64))...)
	m.retryer = r
	return m, err
}

// run makes so many calls a second, each with its retries, in the order of time.
func (m *minute) run(rate int) outcome {
	m.calls = rate * int(simTime/time.Second)
	for i := range m.calls {
		at := time.Duration(i) * time.Second / time.Duration(rate)
		m.retryUntil(at)
		m.try(attempt{at: at, start: at, number: 1})
	}
	m.retryUntil(math.MaxInt64)
	return m.outcome
}

// retryUntil makes the retries that are due before the given time.
func (m *minute) retryUntil(until time.Duration) {
	for len(m.due) > 0 && m.due[0].at < until {
		m.try(m.due.pop())
	}
}

// try makes an attempt, unless the breaker refuses it.
func (m *minute) try(a attempt) {
	var permit breaker.Permit
	if m.breaker != nil {
		var ok bool
		if permit, ok = m.breaker.Allow(window.Epoch().Add(a.at)); !ok {
			m.refused++
			return
		}
	}
	if a.number == 1 {
		m.budget.request(a.at)
	}
	m.sends++
	good, ended := true, breaker.Good
	if m.fails() {
		good, ended = false, breaker.Failed
	}
	if m.breaker != nil {
		m.breaker.Record(permit, ended, window.Epoch().Add(a.at))
	}
	if !good {
		m.failed(a)
		return
	}
	m.good++
	if a.number == 1 {
		m.firstTry++
	}
}

// failed lets the policy decide about a failed attempt.
func (m *minute) failed(a attempt) {
	if m.breaker != nil && m.breaker.State() == breaker.Open {
		m.refused++
		return
	}
	if m.hasty && a.number > m.retries {
		return
	}
	now := window.Epoch().Add(a.at)
	if m.hasty && m.budget.spent(a.at) {
		if m.breaker != nil {
			m.breaker.BudgetRefused(now)
		}
		return
	}
	// A key, so that no rule about writes keeps the calls from being retried.
	s := forbear.State{Attempt: a.number, Start: window.Epoch().Add(a.start), PrevWait: a.waited, Key: "simulated"}
	if d := m.retryer.Next(&s, unavailable, now); d.Retry {
		m.due.push(attempt{a.at + d.Wait, a.start, d.Wait, a.number + 1})
	}
}

// decide asks the policy about one failure after the first attempt, with a
// given draw and nothing known of budget or breaker.
func decide(d *policyfile.Dependency, f forbear.Failure, draw float64) forbear.Decision {
	p := d.Policy.WithDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := forbear.State{Attempt: 1, Start: now, Key: "simulated"}
	return forbear.Decide(&p, s, f, now, func() float64 { return draw })
}
