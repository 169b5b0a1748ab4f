package promretry

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/label"
)

// Metrics is an observer for [forbear.WithObserver] and a
// [prometheus.Collector]. One serves all Retryers of a process. It does not
// replace the log of retries. It is safe for concurrent use; make it
// with [New].
type Metrics struct {
	service    string
	vectors    vectors
	collectors []prometheus.Collector
	labels     label.Set
	known      atomic.Pointer[map[string]*series] // by dependency; copied on write

	mu       sync.Mutex
	retryers []attached
	incoming prometheus.Counter
}

// attached is a Retryer whose state is read at each scrape.
type attached struct {
	*forbear.Retryer
	series *series
}

// Option changes what [New] returns.
type Option func(*Metrics)

// WithService sets the label service; a policy file names it too.
func WithService(name string) Option { return func(m *Metrics) { m.service = name } }

// New returns metrics that are yet to be registered.
func New(opts ...Option) *Metrics {
	m := &Metrics{vectors: newVectors()}
	for _, opt := range opts {
		opt(m)
	}
	m.service = label.Clip(m.service)
	m.collectors = m.vectors.collectors()
	m.incoming = m.vectors.incoming.WithLabelValues(m.service)
	m.known.Store(&map[string]*series{})
	return m
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors {
		c.Describe(ch)
	}
	for _, g := range gauges {
		ch <- g.desc
	}
}

// Collect implements [prometheus.Collector]. It reads the budgets, breakers and
// bulkheads of the Retryers at that moment.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors {
		c.Collect(ch)
	}
	m.mu.Lock()
	retryers := slices.Clone(m.retryers)
	m.mu.Unlock()
	now := time.Now()
	for _, r := range retryers {
		for _, g := range gauges {
			if v, ok := g.read(r.Retryer, now); ok {
				ch <- prometheus.MustNewConstMetric(g.desc, g.kind, v, m.service, r.series.dependency)
			}
		}
	}
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (m *Metrics) Observer() *forbear.Observer {
	return &forbear.Observer{
		KeepsLog:       true,
		Attached:       m.attached,
		AttemptEnded:   m.attemptEnded,
		RetryScheduled: m.retryScheduled,
		Succeeded:      m.succeeded,
		Stopped:        m.stopped,
		BreakerMoved:   m.breakerMoved,
		TokenRefreshed: m.tokenRefreshed,
		DeadLettered:   m.deadLettered,
	}
}

// attached : the series of a dependency
// begin at 0 rather than at their first event. A later Retryer of the same
// dependency takes the place of the one before.
func (m *Metrics) attached(r *forbear.Retryer) {
	s := m.of(r.Dependency())
	p := r.Policy()
	for n := 2; n <= p.Retries()+1; n++ {
		s.retry(n)
	}
	if r.Breaker() != nil {
		for _, move := range [...][2]breaker.State{
			{breaker.Closed, breaker.Open},
			{breaker.Open, breaker.HalfOpen},
			{breaker.HalfOpen, breaker.Open},
			{breaker.HalfOpen, breaker.Closed},
		} {
			s.moved(move[0], move[1])
		}
		for _, why := range [...]breaker.Cause{
			breaker.CauseFailures, breaker.CauseSlow, breaker.CauseBudget, breaker.CauseProbe, breaker.CauseOperator,
		} {
			s.opened(why)
		}
	}
	if r.Bulkhead() != nil {
		s.rejections()
	}
	if p.Kind.Durable() || p.Kind == forbear.Batch {
		s.paced()
	}
	if p.Kind.Durable() {
		m.vectors.dead.WithLabelValues(s.dependency)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retryers = slices.DeleteFunc(m.retryers, func(old attached) bool { return old.series == s })
	m.retryers = append(m.retryers, attached{r, s})
}

// attemptEnded Attempts are counted at
// their end, so what could not be sent is not among them.
func (m *Metrics) attemptEnded(_ context.Context, e forbear.AttemptEnded) {
	s := m.of(e.Dependency)
	if e.Attempt <= 1 {
		s.initial.Inc()
		s.first.Observe(e.Latency.Seconds())
	} else {
		s.retry(e.Attempt).Inc()
		s.later.Observe(e.Latency.Seconds())
	}
	o, counts := e.Failure.Outcome()
	switch {
	case !counts:
		s.calls[callIgnored].Inc()
	case o == breaker.Failed:
		s.calls[callFailed].Inc()
	case e.Slow:
		s.calls[callSlow].Inc()
	default:
		s.calls[callGood].Inc()
	}
	if e.Failure.Class == forbear.ClassSuccess {
		s.attempts.Observe(float64(e.Attempt))
	}
}

func (m *Metrics) succeeded(_ context.Context, e forbear.Succeeded) {
	if e.Attempt > 1 {
		m.of(e.Dependency).recovered(e.FailedBefore).Inc()
	}
}

func (m *Metrics) retryScheduled(_ context.Context, e forbear.RetryScheduled) {
	s := m.of(e.Dependency)
	s.backoff.Observe(e.Backoff.Seconds())
	if e.Paced {
		s.paced().Inc()
	}
}

func (m *Metrics) stopped(_ context.Context, e forbear.Stopped) {
	s := m.of(e.Dependency)
	if e.Attempts > 0 {
		s.attempts.Observe(float64(e.Attempts))
		s.failed(e.Failure.Type, e.Reason).Inc()
		if e.Reason.Exhausted() {
			s.exhausted.Inc()
		}
	}
	if e.Reason.Suppressed() {
		s.suppressed(e.Reason).Inc()
	}
	switch e.Reason {
	case forbear.ReasonBudget:
		s.overBudget.Inc()
	case forbear.ReasonBreakerOpen:
		if e.Attempts == 0 {
			s.calls[callRefused].Inc()
		}
	case forbear.ReasonBulkheadFull:
		s.rejections().Inc()
	case forbear.ReasonCertificate:
		s.certificates.Inc()
	case forbear.ReasonHintTooLong:
		s.timeBudget.Inc()
	case forbear.ReasonDeadline:
		// An attempt that the caller's deadline cut short was begun.
		if e.Attempts == 0 || e.Failure.Type != forbear.TypeCallerDeadline {
			s.timeBudget.Inc()
		}
	}
}

func (m *Metrics) breakerMoved(e breaker.Transition) {
	s := m.of(e.Dependency)
	s.moved(e.From, e.To).Inc()
	if e.To == breaker.Open {
		s.opened(e.Cause).Inc()
	}
}

func (m *Metrics) tokenRefreshed(_ context.Context, e forbear.TokenRefreshed) {
	outcome := "ok"
	if e.Err != nil {
		outcome = "failed"
	}
	m.vectors.refreshes.WithLabelValues(m.service, m.of(e.Dependency).dependency, outcome).Inc()
}

func (m *Metrics) deadLettered(_ context.Context, e forbear.DeadLettered) {
	m.vectors.dead.WithLabelValues(m.labels.Bounded("queue", e.Queue)).Inc()
}

// Inbound is [httpretry.Inbound] that also counts the requests: outgoing over
// incoming is the multiplier that tells a retry storm from a surge.
func (m *Metrics) Inbound(next http.Handler) http.Handler {
	return m.CountIncoming(httpretry.Inbound(next))
}

// CountIncoming only counts the requests that next receives.
func (m *Metrics) CountIncoming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.incoming.Inc()
		next.ServeHTTP(w, r)
	})
}
