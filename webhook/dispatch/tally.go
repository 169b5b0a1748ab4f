package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook/store"
)

// tallyEvery is how often what was counted is stored: that is how late any process
// knows of it, and what a killed one takes along.
const tallyEvery = 10 * time.Second

// tallies counts the attempts of this process, by endpoint, for the store: a write
// for each would double what a delivery costs. A row of the store has the count of a
// whole slot, so that writing it again adds nothing.
type tallies struct {
	mu   sync.Mutex
	open map[string]*store.Tally // of the present slot
	// dirty are those that the store does not have as they are.
	dirty map[*store.Tally]bool
}

// add counts an attempt.
func (s *tallies) add(endpoint string, at time.Time, status int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.dirty = map[string]*store.Tally{}, map[*store.Tally]bool{}
	}
	t, slot := s.open[endpoint], store.SlotOf(at)
	if t == nil || t.Slot != slot {
		t = &store.Tally{Endpoint: endpoint, Slot: slot}
		s.open[endpoint] = t
	}
	t.Add(status, took)
	s.dirty[t] = true
}

// changed returns copies of what is to be stored, and forgets what is over.
func (s *tallies) changed(now time.Time) (list []store.Tally, of []*store.Tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.dirty {
		list, of = append(list, *t), append(of, t)
	}
	clear(s.dirty)
	for id, t := range s.open {
		if t.Slot < store.SlotOf(now) {
			delete(s.open, id)
		}
	}
	return list, of
}

// again marks what could not be stored.
func (s *tallies) again(of []*store.Tally) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range of {
		s.dirty[t] = true
	}
}

// storeTallies stores what was counted since the last time.
func (d *Dispatcher) storeTallies(ctx context.Context) {
	list, of := d.tallies.changed(d.now())
	for len(list) > 0 {
		n := min(len(list), storeBatch)
		if !d.do(ctx, partCounts, "counts of attempts not stored", func() error { return d.cfg.Store.PutTallies(ctx, d.cfg.Owner, list[:n]) }) {
			d.tallies.again(of)
			return
		}
		list, of = list[n:], of[n:]
	}
}

// LaneStats is what this process alone knows of an endpoint.
type LaneStats struct {
	Breaker     string  `json:"breaker"`      // closed, open or half-open
	FailureRate float64 `json:"failure_rate"` // of the latest attempts, a hundred at most
	// Hold is why nothing but single messages are sent, beside the breaker: one of
	// the Hold constants, or "". Held says more.
	Hold string `json:"hold,omitempty"`
	Held string `json:"held,omitempty"`
	// NextProbe is when the next message is sent to an endpoint that is held or whose
	// breaker is open, at the earliest; zero when it is due, or there is no such wait.
	NextProbe time.Time     `json:"next_probe,omitzero"`
	Earned    int           `json:"earned_retries"` // beyond the budget's share
	InFlight  int           `json:"in_flight"`
	Latency   time.Duration `json:"latency,omitempty"` // smoothed
}

// Why an endpoint is sent nothing but single messages.
const (
	HoldCredential = "credential" // a secret or a token is not to be had
	HoldUnresolved = "unresolved" // its name does not resolve
	HoldRejecting  = "rejecting"  // it refuses everything
	HoldSuspended  = "suspended"  // its application is: nothing at all is sent
	HoldUnreadable = "unreadable" // what is stored of it is: nothing is sent, or by what it was before
)

// LaneStats returns what this process knows of an endpoint; the zero value for one
// that it does not serve.
func (d *Dispatcher) LaneStats(id string) LaneStats {
	l, outdated := d.lane(id), d.lanes.outdated(id)
	switch {
	case l == nil && outdated == nil:
		return LaneStats{}
	case l == nil:
		return LaneStats{Hold: HoldUnreadable, Held: outdated.Error()}
	}
	now := d.now()
	s := LaneStats{Breaker: l.breaker().String(), Earned: l.retryer.Earned(now)}
	if b := l.retryer.Breaker(); b != nil {
		s.FailureRate = b.FailureRate(now)
	}
	mono, next := time.Now(), time.Time{}
	if err := l.ep.conf.Tenant.CheckSuspended(); err != nil {
		s.Hold, s.Held = HoldSuspended, err.Error()
	} else if name, h := l.ep.holding(); h != nil {
		s.Hold, s.Held, next = name, h.reason(), h.next()
	} else if l.breaker() == breaker.Open {
		next = l.pacing.probeAt()
	}
	if s.Hold == "" && outdated != nil {
		s.Hold, s.Held = HoldUnreadable, outdated.Error()
	}
	if next.After(mono) {
		s.NextProbe = now.Add(next.Sub(mono)).UTC()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.InFlight, s.Latency = l.sending, l.latency.Round(time.Microsecond)
	return s
}
