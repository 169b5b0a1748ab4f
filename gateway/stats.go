package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/gateway/upstream"
)

// Stats is an observer that counts what the calls to each dependency do, for
// the admin endpoint. It does not replace the log. It is safe for
// concurrent use; make it with [NewStats].
type Stats struct {
	service  string // as given: the page is for people, not for a label
	recorder *metric.Recorder
	counts   counts
	// upstreams are the connections to the dependencies, or nil.
	upstreams atomic.Pointer[map[string]*upstream.Upstream]
	// deliveries says what holds up deliveries to a dependency, or is nil.
	deliveries func(dependency string) *DeliveryStatus
	held       func() []string
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

// retryer returns the Retryer of a dependency, or nil for one that is not served. It
// is the latest of that name: a reloaded policy file brings a new one.
func (s *Stats) retryer(dependency string) *forbear.Retryer {
	return s.recorder.Retryers()[dependency]
}

// Status returns the counts, and the state of the Retryers at now. A dependency
// that events named but no Retryer serves is shown with its counts alone.
func (s *Stats) Status(now time.Time) Status {
	st := Status{Service: s.service, At: now, Incoming: s.counts.incoming.Load(), Dependencies: []DependencyStatus{}}
	retryers, endpoints := s.recorder.Retryers(), s.Endpoints()
	all := s.counts.statuses()
	if s.held != nil {
		for _, name := range s.held() {
			all[name] = cmp.Or(all[name], uncounted(name))
		}
	}
	for name, d := range all {
		if r := retryers[name]; r != nil {
			l := r.Level(now)
			d.Budget = BudgetStatus{Used: l.Used, Allowed: l.Allowed}
			d.Layered = edge.LayeredSends(r)
			if b := r.Breaker(); b != nil {
				d.Breaker = new(breakerStatus(b, now))
			}
			if h, ok := edge.Health(r, now); ok {
				d.Health = &HealthStatus{Healthy: h.Healthy}
				if h.Counted {
					d.Health.SuccessRate = &h.Rate
				}
			}
			if p := edge.Pacer(r); p != nil {
				if now := p.Reading(); now.Active {
					d.Pace = &PaceStatus{now.Rate, now.Waiting, now.Closed}
				}
			}
			if b := r.Bulkhead(); b != nil {
				d.Concurrency = &BulkheadStatus{b.Available(), b.Limit()}
			}
			d.Endpoints, d.Earned = endpoints[name], edge.Earned(r, now)
		}
		if s.deliveries != nil {
			d.Delivery = s.deliveries(name)
		}
		st.Dependencies = append(st.Dependencies, *d)
	}
	slices.SortFunc(st.Dependencies, func(a, b DependencyStatus) int { return cmp.Compare(a.Dependency, b.Dependency) })
	return st
}

// SetUpstreams says over which connections the dependencies are reached, by their
// names, so that a [Status] has their addresses. It replaces the earlier ones.
func (s *Stats) SetUpstreams(of map[string]*upstream.Upstream) { s.upstreams.Store(&of) }

// SetDeliveries says how to ask what holds up deliveries to a dependency, nil for one
// to which nothing is delivered; and which dependencies are held, and so are shown also
// when nothing has been sent to them. It is called once, before the first [Stats.Status].
func (s *Stats) SetDeliveries(of func(dependency string) *DeliveryStatus, held func() []string) {
	s.deliveries, s.held = of, held
}

// Endpoints returns where the addresses of each dependency stand, of those that have
// several.
func (s *Stats) Endpoints() map[string][]upstream.EndpointStatus {
	found := map[string][]upstream.EndpointStatus{}
	if of := s.upstreams.Load(); of != nil {
		for name, u := range *of {
			if status := u.Status(); len(status) > 0 {
				found[name] = status
			}
		}
	}
	return found
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
