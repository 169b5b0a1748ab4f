package promretry

import (
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
)

// The outcomes of circuit_breaker_calls_total.
const (
	callGood = iota
	callSlow
	callFailed
	callIgnored
	callRefused
)

var callNames = [...]string{"success", "slow", "failure", "ignored", "not_permitted"}

// maxAttempt bounds the label attempt_number.
const maxAttempt = 16

// series are the metrics of one dependency, looked up once: the success path
// formats no label and hashes none.
type series struct {
	m          *Metrics
	dependency string

	initial, exhausted, overBudget, timeBudget, certificates prometheus.Counter

	first, later, attempts, backoff prometheus.Observer

	calls   [len(callNames)]prometheus.Counter
	retries [maxAttempt + 1]atomic.Pointer[prometheus.Counter]
}

// of returns the series of a dependency, made when it is first seen.
func (m *Metrics) of(dependency string) *series {
	if s := (*m.known.Load())[dependency]; s != nil {
		return s
	}
	return m.newSeries(dependency)
}

func (m *Metrics) newSeries(dependency string) *series {
	name := m.labels.Bounded(labelDependency, dependency)
	if name != dependency {
		// Not kept under its own name, which may be one of very many.
		if s := (*m.known.Load())[name]; s != nil {
			return s
		}
	}
	v := &m.vectors
	s := &series{
		m: m, dependency: name,
		initial:      v.initial.WithLabelValues(m.service, name),
		exhausted:    v.exhausted.WithLabelValues(m.service, name),
		overBudget:   v.overBudget.WithLabelValues(m.service, name),
		timeBudget:   v.timeBudget.WithLabelValues(m.service, name),
		certificates: v.certificates.WithLabelValues(m.service, name),
		first:        v.latency.WithLabelValues(m.service, name, "first"),
		later:        v.latency.WithLabelValues(m.service, name, "retry"),
		attempts:     v.attempts.WithLabelValues(m.service, name),
		backoff:      v.backoff.WithLabelValues(m.service, name),
	}
	for i, outcome := range callNames {
		s.calls[i] = v.breakerCalls.WithLabelValues(m.service, name, outcome)
	}
	for {
		old := m.known.Load()
		if have := (*old)[name]; have != nil {
			return have
		}
		grown := maps.Clone(*old)
		grown[name] = s
		if m.known.CompareAndSwap(old, &grown) {
			return s
		}
	}
}

// retry returns the counter of the retries with that attempt number.
func (s *series) retry(number int) prometheus.Counter {
	n := min(number, maxAttempt)
	if c := s.retries[n].Load(); c != nil {
		return *c
	}
	label := strconv.Itoa(n)
	if n == maxAttempt {
		label += "+"
	}
	c := s.m.vectors.retries.WithLabelValues(s.m.service, s.dependency, label)
	s.retries[n].Store(&c)
	return c
}

func (s *series) recovered(errorType string) prometheus.Counter {
	return s.m.vectors.recovered.WithLabelValues(s.m.service, s.dependency, s.m.labels.Bounded(labelErrorType, errorType))
}

func (s *series) failed(errorType string, why forbear.Reason) prometheus.Counter {
	return s.m.vectors.failed.WithLabelValues(s.m.service, s.dependency, s.m.labels.Bounded(labelErrorType, errorType), why.String())
}

func (s *series) suppressed(why forbear.Reason) prometheus.Counter {
	return s.m.vectors.suppressed.WithLabelValues(s.m.service, s.dependency, why.String())
}

func (s *series) moved(from, to breaker.State) prometheus.Counter {
	return s.m.vectors.breakerMoves.WithLabelValues(s.m.service, s.dependency, from.String(), to.String())
}

func (s *series) opened(why breaker.Cause) prometheus.Counter {
	return s.m.vectors.breakerOpened.WithLabelValues(s.m.service, s.dependency, why.String())
}

func (s *series) paced() prometheus.Counter {
	return s.m.vectors.paced.WithLabelValues(s.m.service, s.dependency)
}

func (s *series) rejections() prometheus.Counter {
	return s.m.vectors.rejections.WithLabelValues(s.m.service, s.dependency)
}
