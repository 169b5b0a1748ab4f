package gateway

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/metric"
	"github.com/forbear-go/forbear/gateway/upstream"
)

// Stats is an observer that keeps what the calls to each dependency do and why the latest
// failed, for the admin endpoint. It does not replace the log. It is safe for
// concurrent use; make it with [NewStats].
type Stats struct {
	service  string // as given: the page is for people, not for a label
	recorder *metric.Recorder
	counts   counts
	calls    lastCalls

	since    time.Time
	sampling sync.Mutex
	minute   int64 // under way at the last sample, from the one of since

	// upstreams are the connections to the dependencies, or nil.
	upstreams atomic.Pointer[map[string]*upstream.Upstream]
	// deliveries says what holds up deliveries to a dependency, or is nil.
	deliveries func(dependency string) *DeliveryStatus
	held       func() []string
}

// NewStats returns Stats for the named service.
func NewStats(service string) *Stats {
	s := &Stats{service: service, since: time.Now()}
	s.recorder = metric.NewRecorder(&s.counts, service)
	// An override names the dependency as the policy file does, so no name may
	// become "other"; and the counts end with the process.
	s.recorder.AllDependencies = true
	return s
}

// CountIncoming counts the requests that next receives.
func (s *Stats) CountIncoming(next http.Handler) http.Handler { return s.recorder.CountIncoming(next) }

// retryer returns the Retryer of a dependency, or nil for one that is not served. It
// is the latest of that name: a reloaded policy file brings a new one.
func (s *Stats) retryer(dependency string) *forbear.Retryer {
	if t := s.counts.find(dependency); t != nil {
		return t.retryer.Load()
	}
	return nil
}

// StatusQuery says which dependencies a [Status] shows. The zero value shows all.
type StatusQuery struct {
	ByTrouble bool   // the worst first; otherwise by name
	Name      string // a part of the name, in any case
	Offset    int
	Limit     int // at most [MaxPage]; 0 shows all, without their hours
	// Only, where set, names the dependencies to show, at most [MaxPage], in their order and
	// with their hours. Nothing else counts then.
	Only []string
}

// MaxPage bounds the dependencies of a page that has their hours.
const MaxPage = 1000

// Status returns the counts, and the state of the Retryers at now. A dependency
// that events named but no Retryer serves is shown with its counts alone.
func (s *Stats) Status(now time.Time) Status { return s.Page(now, StatusQuery{}) }

// Page is [Stats.Status] for some dependencies. Those that it does not show cost it a
// look at their state, when they are sorted by trouble.
func (s *Stats) Page(now time.Time, q StatusQuery) Status {
	look := s.look(now)
	var rows []*tally
	if len(q.Only) > 0 {
		q = StatusQuery{Only: q.Only, Limit: len(q.Only)}
		for _, name := range q.Only {
			if t := s.counts.find(name); t != nil {
				rows = append(rows, t)
			}
		}
	} else {
		part := strings.ToLower(q.Name)
		for _, t := range s.counts.all() {
			if part == "" || strings.Contains(strings.ToLower(t.name), part) {
				rows = append(rows, t)
			}
		}
	}
	if q.ByTrouble {
		rows = look.byTrouble(rows)
	}
	st := Status{Service: s.service, At: now, Incoming: s.counts.incoming.Load(), Total: len(rows)}
	rows = rows[min(q.Offset, len(rows)):]
	if q.Limit > 0 {
		rows = rows[:min(q.Limit, len(rows))]
	}
	st.Dependencies = make([]DependencyStatus, len(rows))
	for i, t := range rows {
		look.row(&st.Dependencies[i], t)
		if q.Limit > 0 {
			st.Dependencies[i].Hour = t.hour(look.minute, now)
		}
	}
	return st
}

// look is one look at the dependencies, at one moment.
type look struct {
	*Stats
	now    time.Time
	minute int64
	held   map[string]bool
}

func (s *Stats) look(now time.Time) *look {
	l := &look{Stats: s, now: now, minute: s.sample(now), held: map[string]bool{}}
	if s.held != nil {
		for _, name := range s.held() {
			l.held[name] = true
			s.counts.tally(name) // it is shown also when nothing was sent to it
		}
	}
	return l
}

// row fills in what is known of a dependency, but for its hour.
func (l *look) row(d *DependencyStatus, t *tally) {
	t.fill(d)
	if r := t.retryer.Load(); r != nil {
		level, b := r.Level(l.now), r.Policy().Budget
		d.Budget = BudgetStatus{level.Used, level.Allowed, b.MinRetries, Duration(b.Window)}
		d.Layered, d.Earned = edge.LayeredSends(r), edge.Earned(r, l.now)
		if b := r.Breaker(); b != nil {
			d.Breaker = new(t.breakerStatus(b, l.now))
		}
		if h, ok := edge.Health(r, l.now); ok {
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
		if of := l.upstreams.Load(); of != nil && (*of)[t.name] != nil {
			d.Endpoints = (*of)[t.name].Status()
		}
	}
	if l.deliveries != nil {
		d.Delivery = l.deliveries(t.name)
	}
	i := l.ill(t)
	d.Trouble = Trouble{i.rank, i.why(d)}
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

// breakerStatus reads the breaker of a dependency. Nothing is known of the next probe of
// one that is held open by hand: it waits for the operator.
func (t *tally) breakerStatus(b *breaker.Breaker, now time.Time) BreakerStatus {
	state, forced := b.State(), b.Forced()
	s := BreakerStatus{
		State: state.String(), Forced: forced, FailureRate: b.FailureRate(now),
		Cause: b.Cause().String(), BudgetExhausted: b.BudgetSpent(now),
	}
	if state == breaker.Open && !forced {
		s.NextProbe = now.Add(b.Wait(now))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// A reloaded policy file brings a breaker that has not moved yet.
	if n := len(t.events.moves); n > 0 && t.events.moves[n-1].To == s.State && s.Cause != "" {
		s.Since = t.events.moves[n-1].At
	}
	return s
}
