package gateway

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/gate"
	"github.com/forbear-go/forbear/internal/label"
)

// Stats is an observer that counts what the calls to each dependency do, for
// the admin endpoint. It does not replace the log. It is safe for
// concurrent use; make it with [NewStats].
type Stats struct {
	service  string
	incoming atomic.Int64
	labels   label.Set

	mu   sync.RWMutex
	deps map[string]*counts
}

// counts are those of one dependency.
type counts struct {
	retryer          *forbear.Retryer // nil until it is attached
	initial, retries atomic.Int64

	mu         sync.Mutex // the rest, which only failures touch
	exhausted  int64
	certs      int64
	recovered  map[string]int64
	failed     map[string]int64
	suppressed map[string]int64
}

// NewStats returns Stats for the named service.
func NewStats(service string) *Stats { return &Stats{service: service, deps: map[string]*counts{}} }

// of returns the counts of a dependency, and begins them. The path of a call that
// is known takes a read lock only.
func (s *Stats) of(dependency string) *counts {
	s.mu.RLock()
	c := s.deps[dependency]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.deps[dependency]; c == nil {
		c = &counts{recovered: map[string]int64{}, failed: map[string]int64{}, suppressed: map[string]int64{}}
		s.deps[dependency] = c
	}
	return c
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (s *Stats) Observer() *forbear.Observer {
	return &forbear.Observer{
		KeepsLog:     true,
		Attached:     s.attached,
		AttemptEnded: s.attemptEnded,
		Succeeded:    s.succeeded,
		Stopped:      s.stopped,
	}
}

// attached remembers the Retryer, whose budget and breaker are read when they are
// asked for.
func (s *Stats) attached(r *forbear.Retryer) {
	c := s.of(r.Dependency())
	s.mu.Lock()
	defer s.mu.Unlock()
	c.retryer = r
}

// retryer returns the Retryer of a dependency, or nil for one that is not served.
func (s *Stats) retryer(dependency string) *forbear.Retryer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.deps[dependency]; c != nil {
		return c.retryer
	}
	return nil
}

// CountIncoming counts the requests that next receives.
func (s *Stats) CountIncoming(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.incoming.Add(1)
		next.ServeHTTP(w, r)
	})
}

// attemptEnded counts what the dependency was sent. It runs for each success and
// takes no lock of the counts.
func (s *Stats) attemptEnded(_ context.Context, e forbear.AttemptEnded) {
	if c := s.of(e.Dependency); e.Attempt <= 1 {
		c.initial.Add(1)
	} else {
		c.retries.Add(1)
	}
}

// succeeded counts the calls that a retry has saved, by what had failed.
func (s *Stats) succeeded(_ context.Context, e forbear.Succeeded) {
	if e.Attempt <= 1 {
		return
	}
	c := s.of(e.Dependency)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recovered[s.labels.Bounded("error_type", e.FailedBefore)]++
}

// stopped counts the calls that were given up, and the retries that were held back
// to spare the dependency.
func (s *Stats) stopped(_ context.Context, e forbear.Stopped) {
	c := s.of(e.Dependency)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Attempts > 0 {
		c.failed[s.labels.Bounded("error_type", e.Failure.Type)]++
		if e.Reason.Exhausted() {
			c.exhausted++
		}
	}
	if e.Reason.Suppressed() {
		c.suppressed[e.Reason.String()]++
	}
	if e.Reason == forbear.ReasonCertificate {
		c.certs++
	}
}

// Status is what the admin endpoint shows. Its counts only grow; who reads it
// twice has the rates.
type Status struct {
	Service      string             `json:"service"`
	At           time.Time          `json:"at"`
	Incoming     int64              `json:"incoming_requests"`
	Dependencies []DependencyStatus `json:"dependencies"`
}

// DependencyStatus is the part of one dependency.
type DependencyStatus struct {
	Dependency  string           `json:"dependency"`
	Initial     int64            `json:"initial_requests"`
	Retries     int64            `json:"retries"`
	Exhausted   int64            `json:"exhausted"`
	Recovered   map[string]int64 `json:"success_after_retry"` // by error_type
	Failed      map[string]int64 `json:"failed"`              // by error_type
	Suppressed  map[string]int64 `json:"suppressed"`          // by reason
	CertErrors  int64            `json:"certificate_errors"`
	Layered     int64            `json:"layered_sends"`
	Budget      BudgetStatus     `json:"budget"`
	Breaker     *BreakerStatus   `json:"breaker,omitempty"`
	Health      *HealthStatus    `json:"health,omitempty"`
	Concurrency *BulkheadStatus  `json:"bulkhead,omitempty"`
}

// BudgetStatus is the reading of a retry budget.
type BudgetStatus struct {
	Used    float64 `json:"used"`
	Allowed float64 `json:"allowed"`
}

// BreakerStatus is where a circuit breaker stands.
type BreakerStatus struct {
	State       string  `json:"state"`
	Forced      bool    `json:"forced"`
	FailureRate float64 `json:"failure_rate"`
	// Cause is why it moved there, by the name of a [breaker.Cause]; ""
	// when it has not moved yet.
	Cause string `json:"cause,omitempty"`
	// BudgetExhausted says that the retry budget has refused a retry within the
	// last ten seconds.
	BudgetExhausted bool `json:"budget_exhausted"`
	// NextProbe is from when on one that is open lets an attempt through; zero
	// when it is not open, or held open by hand.
	NextProbe time.Time `json:"next_probe,omitzero"`
}

// HealthStatus is what the health gates of a dependency say.
type HealthStatus struct {
	// Healthy says that retries go on.
	Healthy bool `json:"healthy"`
	// SuccessRate is the share of good attempts in the gate's window, 0 to 1; nil
	// where the policy sets no limit and an endpoint alone is asked.
	SuccessRate *float64 `json:"success_rate,omitempty"`
}

// BulkheadStatus is how much room a bulkhead has.
type BulkheadStatus struct {
	Available int `json:"available"`
	Max       int `json:"max"`
}

// Status returns the counts, and the state of the Retryers at now.
func (s *Stats) Status(now time.Time) Status {
	st := Status{Service: s.service, At: now, Incoming: s.incoming.Load(), Dependencies: []DependencyStatus{}}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, c := range s.deps {
		d := DependencyStatus{Dependency: name, Initial: c.initial.Load(), Retries: c.retries.Load()}
		c.read(&d)
		if r := c.retryer; r != nil {
			l := r.Level(now)
			d.Budget = BudgetStatus{l.Used, l.Allowed}
			d.Layered = r.LayeredSends()
			if b := r.Breaker(); b != nil {
				status := breakerStatus(b, now)
				d.Breaker = &status
			}
			if g, ok := gate.Of(r, now); ok {
				d.Health = &HealthStatus{Healthy: g.Healthy}
				if g.Counted {
					d.Health.SuccessRate = &g.Rate
				}
			}
			if b := r.Bulkhead(); b != nil {
				d.Concurrency = &BulkheadStatus{b.Available(), b.Limit()}
			}
		}
		st.Dependencies = append(st.Dependencies, d)
	}
	slices.SortFunc(st.Dependencies, func(a, b DependencyStatus) int { return cmp.Compare(a.Dependency, b.Dependency) })
	return st
}

// read copies what is under the lock.
func (c *counts) read(d *DependencyStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.Exhausted, d.CertErrors = c.exhausted, c.certs
	d.Recovered, d.Failed, d.Suppressed = maps.Clone(c.recovered), maps.Clone(c.failed), maps.Clone(c.suppressed)
}

// breakerStatus reads a breaker. Nothing is known of the next probe of one that is
// held open by hand: it waits for the operator.
func breakerStatus(b *breaker.Breaker, now time.Time) BreakerStatus {
	state, forced := b.State(), b.Forced()
	s := BreakerStatus{
		State: state.String(), Forced: forced, FailureRate: b.FailureRate(now),
		Cause: b.Cause().String(), BudgetExhausted: b.BudgetSpent(now),
	}
	if state == breaker.Open && !forced {
		s.NextProbe = now.Add(b.Wait(now))
	}
	return s
}
