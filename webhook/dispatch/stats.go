package dispatch

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook"
)

// counters are what [Stats] reads.
type counters struct{ accepted, delivered, failed, postponed, dead atomic.Int64 }

// Stats counts what a dispatcher has done since it was made.
type Stats struct {
	// Failed counts attempts and Postponed decisions; the others are messages, or
	// their deliveries.
	Accepted, Delivered, Failed, Postponed, Dead int64
}

// Stats returns the counters.
func (d *Dispatcher) Stats() Stats {
	c := &d.stats
	return Stats{c.accepted.Load(), c.delivered.Load(), c.failed.Load(), c.postponed.Load(), c.dead.Load()}
}

// Owner returns the name of this process in leases and histories.
func (d *Dispatcher) Owner() string { return d.cfg.Owner }

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

// LaneStats returns what this process knows of an endpoint; the zero value for one
// that it does not serve.
func (d *Dispatcher) LaneStats(id string) LaneStats {
	r, outdated := d.receiver(id), d.receivers.outdated(id)
	s := LaneStats{}
	if r != nil {
		s = r.stats()
	}
	if s.Hold == "" && outdated != nil {
		s.Hold, s.Held = HoldUnreadable, outdated.Error()
	}
	return s
}

// Holding returns the endpoints with a Hold in their [LaneStats], but for those that a
// person has disabled. Thousands without one cost little.
func (d *Dispatcher) Holding() []string {
	ids := slices.Collect(maps.Keys(d.Unreadable()))
	for id, r := range d.receivers.all() {
		r.mu.Lock()
		_, on := r.holding()
		switch {
		case r.state.is != webhook.Enabled:
			on = r.state.by == webhook.ByForbear
		case r.endpoint().conf.Tenant.CheckSuspended() != nil:
			on = true
		}
		r.mu.Unlock()
		if on {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *receiver) stats() LaneStats {
	now, mono, ep := r.d.now(), time.Now(), r.endpoint()
	s := LaneStats{Breaker: ep.breaker().String(), Earned: edge.Earned(ep.retryer, now)}
	if b := ep.retryer.Breaker(); b != nil {
		s.FailureRate = b.FailureRate(now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	next := time.Time{}
	if r.state.is == webhook.Disabled && r.state.by == webhook.ByForbear {
		s.Hold, s.Held = HoldDisabled, r.state.reason
	} else if err := ep.conf.Tenant.CheckSuspended(); err != nil {
		s.Hold, s.Held = HoldSuspended, err.Error()
	} else if k, on := r.holding(); on {
		s.Hold, s.Held, next = kindOf[k].name, r.holds[k].why, r.holds[k].until
	} else if ep.breaker() == breaker.Open {
		next = r.holds[down].until
	}
	if next.After(mono) {
		s.NextProbe = now.Add(next.Sub(mono)).UTC()
	}
	s.InFlight, s.Latency = r.sending, r.latency.Round(time.Microsecond)
	return s
}
