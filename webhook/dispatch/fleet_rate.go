package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/internal/pulse"
	"github.com/forbear-go/forbear/internal/wait"
)

const (
	beatEvery = 2 * time.Second
	// beatLease is how long a process that has died keeps its share.
	beatLease = 15 * time.Second
	// joinAfter is how long a process that joins others leaves them the whole rate: by
	// then each of them has counted it.
	joinAfter = 2 * beatEvery
	// uncounted is when a receiver asks again whose share is not known.
	uncounted = 25 * time.Millisecond
)

// members are what a process knows of those that share the store, as far as the rates of
// endpoints are concerned: each uses an equal part. They count each other by heartbeats,
// which are stored while an endpoint has a rate. The parts never add up to more than the
// rate: one that joins waits until the others know of it, and one that could not beat for
// as long as the others wait uses nothing.
//
// The zero value is that of a process alone. It is immutable: the goroutine of the
// heartbeats replaces it.
type members struct {
	began bool      // [Dispatcher.Run] has
	live  int       // processes, this one included; 0: not counted
	seen  time.Time // when they were counted, on the monotonic clock
	from  time.Time // when this one may use its part
}

// part returns the part of an endpoint's rate that is this process's, or when to ask
// again.
func (m *members) part(now time.Time) (part float64, next time.Time) {
	switch {
	case !m.began:
		return 1, time.Time{}
	case m.live == 0 || m.outdated(now):
		return 0, now.Add(uncounted)
	case now.Before(m.from):
		return 0, m.from
	}
	return 1 / float64(m.live), time.Time{}
}

// outdated reports whether the others may have taken this process for dead.
func (m *members) outdated(now time.Time) bool { return now.Sub(m.seen) > beatLease-beatEvery }

// counted returns what is known when there were so many at a time.
func (m members) counted(live int, at time.Time) *members {
	switch {
	case live == 1:
		m.from = time.Time{} // no one else uses any
	case m.live == 0 || m.outdated(at):
		m.from = at.Add(joinAfter)
	}
	m.live, m.seen = live, at
	return &m
}

// beats stores heartbeats until ctx ends.
func (d *Dispatcher) beats(ctx context.Context) {
	for ctx.Err() == nil {
		wait.Woken(ctx, beatEvery, d.joins)
		d.beat(ctx)
	}
}

// beat stores a heartbeat and counts the processes, while an endpoint has a rate and this
// process claims anything.
func (d *Dispatcher) beat(ctx context.Context) {
	if d.paused.Load() || !d.rated() {
		d.leave(ctx)
		return
	}
	at := time.Now()
	live, err := pulse.Get(&d.parts[partHeartbeats], func() (int, error) { return d.cfg.Store.Heartbeat(ctx, d.cfg.Owner, beatLease) })
	if d.warn(ctx, "heartbeat not stored", err) {
		d.members.Store(d.members.Load().counted(live, at))
	}
}

// rated reports whether an endpoint has a rate.
func (d *Dispatcher) rated() bool {
	for _, r := range d.receivers.all() {
		if r.endpoint().conf.Rate > 0 {
			return true
		}
	}
	return false
}

// leave lets the others have this process's part, when it sends nothing more.
func (d *Dispatcher) leave(ctx context.Context) {
	m := *d.members.Load()
	if counted := m.live > 0; counted {
		m.live = 0
		d.members.Store(&m)
		d.warn(ctx, "heartbeat not removed", d.cfg.Store.Leave(ctx, d.cfg.Owner))
	}
}
