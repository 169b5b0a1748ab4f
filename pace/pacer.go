package pace

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/window"
)

// DefaultMaxWaiting is how many calls wait at most: five seconds' worth at 200 a
// second. Each holds a goroutine and its request, so that the bound is one of memory;
// how long a call waits is bounded by its own time.
const DefaultMaxWaiting = 1000

// Pacer gives the sends to one dependency their turns. Until the dependency first
// asks for less every send goes out at once, and asking costs an atomic load. The zero
// value is ready to use. It is safe for concurrent use, reads no clock and waits for
// nothing itself: the caller does, by [Waiter.Ask].
type Pacer struct {
	// MaxWaiting bounds how many calls wait; 0 means DefaultMaxWaiting. It is set
	// before the first use.
	MaxWaiting int

	active atomic.Bool
	mu     sync.Mutex
	line   line
	next   time.Duration // when the next turn is, while the rate is known
	learner
}

// Active reports whether sends have to ask for their turns. It is the one question of
// the success path.
func (p *Pacer) Active() bool { return p.active.Load() }

// Turn asks for a turn. since is when the call began to wait, for its backoff or for
// anything else: an older call comes first. latest is when its turn must have come.
//
// With ok and a nil w the turn is now. With ok and a w the caller waits, by
// [Waiter.Ask]. Otherwise the turn would come too late, or too many wait already: until
// says when a new call may expect one.
func (p *Pacer) Turn(now, since, latest time.Time) (w *Waiter, until time.Time, ok bool) {
	if !p.active.Load() {
		return nil, until, true
	}
	t := sinceEpoch(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm(t) || p.free() || p.line.Len() == 0 && p.due() <= t+instant {
		p.take(t)
		return nil, until, true
	}
	w = &Waiter{p: p, since: sinceEpoch(since), latest: sinceEpoch(latest)}
	n, behind := p.line.ahead(w.since)
	at := p.expected(t, n)
	if p.line.Len() >= cmp.Or(p.MaxWaiting, DefaultMaxWaiting) || at > w.latest {
		return nil, p.comeback(t, n), false
	}
	w.moved = make(chan struct{}, 1)
	p.line.insert(w, behind)
	return w, until, true
}

// Ask asks again. A turn that is taken ends the waiting; so does a refusal, with until as
// [Pacer.Turn] says it. Otherwise the caller asks again after wait, or when Moved says so.
func (w *Waiter) Ask(now time.Time) (wait time.Duration, taken bool, until time.Time) {
	p, t := w.p, sinceEpoch(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	wait = w.latest - t
	if p.line.head() == w {
		at := p.due()
		if p.free() || at <= t+instant {
			p.take(t)
			p.leave(w)
			return 0, true, until
		}
		wait = min(wait, at-t)
	}
	if t+instant >= w.latest {
		n, _ := p.line.ahead(w.since)
		p.leave(w)
		return 0, false, p.comeback(t, n)
	}
	return wait, false, until
}

// Moved returns a channel that receives when it is worth asking before the wait is
// over.
func (w *Waiter) Moved() <-chan struct{} { return w.moved }

// Leave ends the waiting of a call that has gone. Its turn is the next one's.
func (w *Waiter) Leave() {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.leave(w)
}

// GiveBack gives back a turn that was taken and not used.
func (p *Pacer) GiveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free() && !p.closed {
		p.next -= p.interval()
		p.line.wake()
	}
}

// leave takes w out of the line.
func (p *Pacer) leave(w *Waiter) {
	first := p.line.head() == w
	p.line.Remove(w.place)
	if first {
		p.line.wake()
	}
}

// free reports whether sends go out as they come: nothing is learned yet.
func (p *Pacer) free() bool { return !p.closed && math.IsInf(p.rate, 1) }

// due returns when the next turn is.
func (p *Pacer) due() time.Duration {
	if p.closed {
		return p.probeAt
	}
	return p.next
}

// instant is too short to wait for.
const instant = time.Microsecond

// slack is what a late timer may catch up on.
const slack = 5 * time.Millisecond

// take gives a turn away.
func (p *Pacer) take(now time.Duration) {
	p.round.turns++
	switch {
	case p.closed:
		p.probed(now)
	case !p.free():
		p.next = max(p.next, now-slack) + p.interval()
	}
}

// interval returns the time between two turns.
func (p *Pacer) interval() time.Duration {
	return time.Duration(float64(time.Second) / p.rate)
}

// expected returns when the turn behind n others may be expected.
func (p *Pacer) expected(now time.Duration, n int) time.Duration {
	at := max(p.due(), now)
	if p.closed {
		at = max(at, p.until)
	}
	if math.IsInf(p.rate, 1) {
		return at
	}
	return at + time.Duration(float64(n)*float64(p.interval()))
}

// comeback returns when a new call may come in place of one behind n others, which is
// refused. A rate that doubles with each round is a guess: how many wait says nothing
// then, and a second later more is known.
func (p *Pacer) comeback(now time.Duration, n int) time.Time {
	at := p.expected(now, n)
	if p.step == quick {
		at = min(at, p.expected(now, 0)+shortest)
	}
	return window.Epoch().Add(at)
}

// Reading is where a Pacer stands.
type Reading struct {
	// Active says that the dependency has asked for less lately.
	Active bool
	// Rate is how many sends a second are let out; 0 when no bound has been learned.
	Rate float64
	// Waiting is how many calls wait for their turn.
	Waiting int
	// Closed says that the dependency refuses everything, and is probed.
	Closed bool
}

// Reading returns where p stands, for metrics and admin pages.
func (p *Pacer) Reading() (r Reading) {
	if !p.active.Load() {
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r = Reading{Active: p.active.Load(), Waiting: p.line.Len(), Closed: p.closed}
	if !math.IsInf(p.rate, 1) {
		r.Rate = p.rate
	}
	return r
}

// sinceEpoch returns t as a time since the windows' epoch.
func sinceEpoch(t time.Time) time.Duration { return t.Sub(window.Epoch()) }
