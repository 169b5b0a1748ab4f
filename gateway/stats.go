package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/metric"
)

// Stats is an observer that counts what the calls to each dependency do, for
// the admin endpoint. It does not replace the log. It is safe for
// concurrent use; make it with [NewStats].
type Stats struct {
	service  string // as given: the page is for people, not for a label
	recorder *metric.Recorder
	counts   counts
}

// NewStats returns Stats for the named service.
func NewStats(service string) *Stats {
	s := &Stats{service: service}
	s.recorder = metric.NewRecorder(&s.counts, service)
	// An override names the dependency as the policy file does, so no name may
	// become "other"; and the counts end with the process.
	s.recorder.AllDependencies = true
	return s
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (s *Stats) Observer() *forbear.Observer { return s.recorder.Observer() }

// CountIncoming counts the requests that next receives.
func (s *Stats) CountIncoming(next http.Handler) http.Handler { return s.recorder.CountIncoming(next) }

// retryer returns the Retryer of a dependency, or nil for one that is not served.
func (s *Stats) retryer(dependency string) *forbear.Retryer {
	return s.recorder.Retryers()[dependency]
}

// counts are the sink for those metrics that the admin page shows. The zero
// value is ready.
type counts struct {
	incoming count
	mu       sync.Mutex // of the map; the counts in it need none
	of       map[countKey]*count
}

// countKey names a count. by is the error_type or the reason, where the page
// shows the metric by one.
type countKey struct {
	metric         metric.ID
	dependency, by string
}

// count is a series that the page shows. It only grows.
type count struct{ atomic.Int64 }

// Record implements [metric.Series].
func (c *count) Record(_ context.Context, v float64) { c.Add(int64(v)) }

// unseen is a metric that the admin page does not show.
type unseen struct{}

func (unseen) Record(context.Context, float64) {}

// Series implements [metric.Sink]. Labels beyond those of the page are summed
// up: failures of one type count together whatever the reason of their end.
func (c *counts) Series(id metric.ID, labels ...string) metric.Series {
	var by string
	switch id {
	case metric.Incoming:
		return &c.incoming
	case metric.Recovered, metric.Failed, metric.Suppressed:
		by = labels[2]
	case metric.Initial, metric.Retries, metric.Exhausted, metric.Certificates:
	default:
		return unseen{}
	}
	key := countKey{id, labels[1], by}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[countKey]*count{}
	}
	if c.of[key] == nil {
		c.of[key] = new(count)
	}
	return c.of[key]
}

// statuses returns what was counted, by dependency. The counts of one dependency
// go on while they are read: they are each right, but not of one moment.
func (c *counts) statuses() map[string]*DependencyStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*DependencyStatus{}
	for key, n := range c.of {
		d := found[key.dependency]
		if d == nil {
			d = &DependencyStatus{
				Dependency: key.dependency,
				Recovered:  map[string]int64{}, Failed: map[string]int64{}, Suppressed: map[string]int64{},
			}
			found[key.dependency] = d
		}
		switch key.metric {
		case metric.Initial:
			d.Initial = n.Load()
		case metric.Retries:
			d.Retries = n.Load()
		case metric.Exhausted:
			d.Exhausted = n.Load()
		case metric.Certificates:
			d.CertErrors = n.Load()
		case metric.Recovered:
			d.Recovered[key.by] = n.Load()
		case metric.Failed:
			d.Failed[key.by] = n.Load()
		case metric.Suppressed:
			d.Suppressed[key.by] = n.Load()
		}
	}
	return found
}

// Status is what the admin endpoint shows. Its counts only grow: two
// readings give the rates.
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

// BulkheadStatus is how many more calls a bulkhead lets in now, of how many.
type BulkheadStatus struct {
	Available int `json:"available"`
	Max       int `json:"max"`
}

// Status returns the counts, and the state of the Retryers at now.
func (s *Stats) Status(now time.Time) Status {
	st := Status{Service: s.service, At: now, Incoming: s.counts.incoming.Load(), Dependencies: []DependencyStatus{}}
	retryers := s.recorder.Retryers()
	for name, d := range s.counts.statuses() {
		if r := retryers[name]; r != nil {
			l := r.Level(now)
			d.Budget = BudgetStatus{l.Used, l.Allowed}
			d.Layered = r.LayeredSends()
			if b := r.Breaker(); b != nil {
				status := breakerStatus(b, now)
				d.Breaker = &status
			}
			if b := r.Bulkhead(); b != nil {
				d.Concurrency = &BulkheadStatus{b.Available(), b.Limit()}
			}
		}
		st.Dependencies = append(st.Dependencies, *d)
	}
	slices.SortFunc(st.Dependencies, func(a, b DependencyStatus) int { return cmp.Compare(a.Dependency, b.Dependency) })
	return st
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
