package metric

import (
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// The outcomes of circuit_breaker_calls_total, as places in callNames. A call that
// the breaker refused was no attempt, but is counted with them.
const (
	callGood = iota
	callSlow
	callFailed
	callIgnored
	callRefused
)

var callNames = [...]string{"success", "slow", "failure", "ignored", "not_permitted"}

// maxAttempt bounds the label attempt_number: "16+" stands for it and all beyond.
// Durable work can make any number of attempts, and each number is a series.
const maxAttempt = 16

// series are the metrics of one dependency. Those of the success path and those
// that each dependency has are looked up once, so that a success formats no
// label and hashes none.
type series struct {
	r          *Recorder
	dependency string

	initial, exhausted, overBudget, timeBudget, certificates Series

	first, later, attempts, backoff Series

	calls   [len(callNames)]Series
	retries [maxAttempt + 1]atomic.Pointer[Series]
}

// of returns the series of a dependency, made when it is first seen. The lookup
// takes no lock: the map is replaced whole whenever it grows, which is rare.
func (r *Recorder) of(dependency string) *series {
	if s := (*r.known.Load())[dependency]; s != nil {
		return s
	}
	// Not kept under its own name, which may be one of very many: the map would grow
	// without bound.
	return r.labelled(r.Dependency(dependency))
}

// labelled returns the series of a label, made when it is first seen.
func (r *Recorder) labelled(name string) *series {
	if s := (*r.known.Load())[name]; s != nil {
		return s
	}
	s := r.newSeries(name)
	for {
		old := r.known.Load()
		if have := (*old)[name]; have != nil {
			// Another goroutine was faster. Both hold the same series of the sink.
			return have
		}
		grown := maps.Clone(*old)
		grown[name] = s
		if r.known.CompareAndSwap(old, &grown) {
			return s
		}
	}
}

// newSeries creates what every dependency has, whatever its policy. An event may
// come from a Retryer that was never attached, as in a test.
func (r *Recorder) newSeries(dependency string) *series {
	s := &series{r: r, dependency: dependency}
	s.initial, s.exhausted, s.overBudget = s.get(Initial), s.get(Exhausted), s.get(OverBudget)
	s.timeBudget, s.certificates = s.get(TimeBudget), s.get(Certificates)
	s.first, s.later = s.get(Latency, "first"), s.get(Latency, "retry")
	s.attempts, s.backoff = s.get(Attempts), s.get(Backoff)
	for i, outcome := range callNames {
		s.calls[i] = s.get(BreakerCalls, outcome)
	}
	return s
}

// zero creates what a dependency of this policy may move besides. A rate needs
// a beginning: an alert on the increase of a series would miss its first event
// if the series began with it.
func (s *series) zero(r *forbear.Retryer) {
	p := r.Policy()
	for n := 2; n <= p.Retries()+1; n++ {
		s.retry(n)
	}
	if r.Breaker() != nil {
		// What a breaker does by itself. An operator can make it move otherwise.
		s.moved(breaker.Closed, breaker.Open)
		s.moved(breaker.Open, breaker.HalfOpen)
		s.moved(breaker.HalfOpen, breaker.Open)
		s.moved(breaker.HalfOpen, breaker.Closed)
		for _, why := range [...]breaker.Cause{
			breaker.CauseFailures, breaker.CauseSlow, breaker.CauseBudget, breaker.CauseProbe, breaker.CauseOperator,
		} {
			s.opened(why)
		}
		if p.Kind == forbear.Webhook { // dispatchers alone know what another has found
			s.opened(breaker.CauseOtherProcess)
		}
	}
	if r.Bulkhead() != nil {
		s.get(Rejections)
	}
	if p.Kind.Durable() || p.Kind == forbear.Batch {
		s.get(Paced)
	}
	if p.Kind.Durable() {
		// The queue is named after the dependency unless the sink names another.
		s.r.sink.Series(Dead, s.dependency)
	}
}

// get returns a series of the dependency by the labels after those that all have.
func (s *series) get(id ID, more ...string) Series {
	return s.r.sink.Series(id, append([]string{s.r.service, s.dependency}, more...)...)
}

// retry returns the counter of the retries with that attempt number, which is at
// least 2. It is kept once it was looked up: in an outage retries are frequent.
func (s *series) retry(number int) Series {
	n := min(number, maxAttempt)
	if c := s.retries[n].Load(); c != nil {
		return *c
	}
	label := strconv.Itoa(n)
	if n == maxAttempt {
		label += "+"
	}
	c := s.get(Retries, label)
	s.retries[n].Store(&c)
	return c
}

// moved and opened are the two counts of a breaker's transition: alerts on
// flapping need the states, alerts on an opening its cause.
func (s *series) moved(from, to breaker.State) Series {
	return s.get(BreakerMoves, from.String(), to.String())
}

func (s *series) opened(why breaker.Cause) Series { return s.get(BreakerOpened, why.String()) }
