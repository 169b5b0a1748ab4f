package breaker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/finite"
	"github.com/forbear-go/forbear/internal/window"
)

// Breaker stops all calls to a dependency that keeps failing, and lets a few
// probes through after a while (INTG-STD-033). It wraps the retries: it sees
// every attempt, and its opening ends the sequences that are under way. While
// it is closed, asking it and telling it take no lock and allocate nothing. It
// is safe for concurrent use and takes the time as an argument.
//
// A Retryer makes its own from the policy; make one with [New] to share
// it or to use it alone.
type Breaker struct {
	policy Policy
	window atomic.Pointer[outcomes] // a fresh one each time the breaker closes

	// word holds the generation (upper bits) and the state (lowest two). Each
	// transition starts a new generation, so that the end of an attempt that
	// began before it is not taken for a probe.
	word atomic.Uint64
	// refusedAt is when the budget last refused a retry, as time since the
	// breaker was made; 0 means never.
	refusedAt atomic.Int64
	born      time.Time
	troubled  atomic.Bool // patience waits for the end of trouble

	mu        sync.Mutex    // transitions, and everything that is not closed
	cause     Cause         // of the latest move
	openedAt  time.Time     // the latest time
	closedAt  time.Time     // the latest time; zero when it has not opened yet
	wait      time.Duration // before the first probe
	failed    int           // probings that failed since it was closed
	patience  patience
	permits   int // probes that may still begin
	succeeded int
	probedAt  time.Time // when the latest probe began
	round     uint32    // counts the times that places of overdue probes were given again
	forced    bool
	moved     func(Transition)
}

// Transition is the event of a breaker that changed its state.
type Transition struct {
	Dependency  string
	From, To    State
	Cause       Cause
	FailureRate float64 // of the latest calls at that moment, 0 to 1
	SlowRate    float64
	Calls       int
	// OpenFor is how long it lets nothing through, of one that opened.
	OpenFor time.Duration
	// BudgetSpent says that the retry budget is exhausted, too.
	BudgetSpent bool
	// Actor is who moved it by hand; "" when it moved by itself.
	Actor string
	At    time.Time
}

// Permit is the permission to make one attempt; its end is reported with
// [Breaker.Record] or [Breaker.Cancel]. The zero Permit is that of an attempt
// made without asking; its end counts when the breaker has not moved yet.
type Permit struct {
	generation uint64
	round      uint32
	// Probe says that the attempt tries out a dependency that was down. It
	// should get half the usual time.
	Probe bool
}

// New returns a closed breaker. Zero fields of p are taken as they are;
// [Policy.WithDefaults] fills them in. moved, which may be nil, is called
// for every transition, one at a time. It panics when a rate is NaN or infinite.
func New(p Policy, moved func(Transition)) *Breaker {
	finite.Must("breaker: failure_rate", p.FailureRate)
	finite.Must("breaker: slow_rate", p.SlowRate)
	b := &Breaker{policy: p, born: time.Now(), moved: moved}
	b.patience.least = min(minOpenFor, p.OpenFor)
	b.window.Store(newOutcomes(p))
	return b
}

// Glance returns the permit of an attempt that was not asked for, whose end
// counts unless the breaker moves before it, and whether the breaker is closed:
// then no more need be asked. It is [Breaker.Allow] for callers that have no time
// at hand.
func (b *Breaker) Glance() (p Permit, closed bool) {
	generation, s := b.load()
	return Permit{generation: generation}, s == Closed
}

func (b *Breaker) load() (generation uint64, s State) {
	w := b.word.Load()
	return w >> 2, State(w & 3)
}

// State returns where the breaker stands. One whose wait is over is still open
// until the next request for an attempt.
func (b *Breaker) State() State {
	_, s := b.load()
	return s
}

// Allow asks for the leave to make an attempt.
func (b *Breaker) Allow(now time.Time) (Permit, bool) {
	generation, s := b.load()
	if s == Closed {
		return Permit{generation: generation}, true
	}
	return b.allowProbe(now)
}

// Outcome is how one attempt ended, for a breaker.
type Outcome uint8

const (
	Good   Outcome = iota
	Failed         // the dependency failed
	Slow           // good, but slower than the policy's slow call

	Limited // failed: the dependency asks for less
)

// Record records the end of an attempt.
func (b *Breaker) Record(p Permit, o Outcome, now time.Time) {
	generation, s := b.load()
	if p.generation != generation {
		return // from another time
	}
	switch s {
	case Closed:
		w := b.window.Load()
		if w.add(o, now); w.suspicious() {
			b.judge(generation, now)
		}
	case HalfOpen:
		b.recordProbe(p, o, now)
	}
}

// RecordGoodAt is Record for a good outcome of an attempt that began so long
// after the windows' epoch: the engine's success path reads no clock for it.
func (b *Breaker) RecordGoodAt(p Permit, began time.Duration) {
	if b.word.Load() == p.generation<<2|uint64(Closed) {
		if w := b.window.Load(); w.calm.Load() {
			w.calls.AddAt(began, 1)
			return
		}
	}
	b.Record(p, Good, window.Epoch().Add(began))
}

// Cancel gives back a permit whose attempt says nothing about the dependency:
// it was never made, or the caller ended it. An overdue probe has none to give
// back: its place was given to another.
func (b *Breaker) Cancel(p Permit) {
	if !p.Probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation, s := b.load(); generation == p.generation && s == HalfOpen && p.round == b.round {
		b.permits = min(b.permits+1, b.policy.Probes-b.succeeded)
	}
}

// judge opens the breaker when a window shows that too many attempts fail, and
// what it remembers does not say that it will pass.
func (b *Breaker) judge(generation uint64, now time.Time) {
	v := b.policy.verdict(b.window.Load(), now)
	if v.cause == CauseNone && (!v.calm || !b.troubled.Load()) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if g, s := b.load(); g != generation || s != Closed || b.forced {
		return
	}
	b.troubled.Store(!v.calm)
	switch {
	case v.calm:
		b.patience.over(now)
	case b.patience.spent(v.limited, now) || v.sure && now.Sub(b.closedAt) >= b.policy.WindowTime:
		b.open(v.cause, now, "")
	}
}

// BudgetRefused records that the retry budget has just refused a retry. It
// is shown; only a policy that says so lets it open the breaker.
func (b *Breaker) BudgetRefused(now time.Time) {
	if b.policy.OnBudget == BudgetIgnored {
		return
	}
	b.refusedAt.Store(max(int64(now.Sub(b.born)), 1))
	if b.policy.OnBudget != BudgetOpens {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.window.Load().latest().calls
	if _, s := b.load(); s == Closed && !b.forced && calls >= int64(b.policy.MinCalls) {
		b.open(CauseBudget, now, "")
	}
}

// budgetMemory is how long a refusal of the budget is shown.
const budgetMemory = 10 * time.Second

// BudgetSpent reports whether the retry budget has refused a retry within the
// last ten seconds, unless the policy ignores the budget.
func (b *Breaker) BudgetSpent(now time.Time) bool {
	at := b.refusedAt.Load()
	return at != 0 && now.Sub(b.born)-time.Duration(at) <= budgetMemory
}

// Wait returns how long it is until an attempt may be let through: 0 when one
// may be asked for now. Sources of work stop fetching meanwhile. A breaker whose
// probes are all under way, or that is forced open, says a second; less when the
// probes are overdue before that.
func (b *Breaker) Wait(now time.Time) time.Duration {
	if _, s := b.load(); s == Closed {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch _, s := b.load(); {
	case s == Closed, s == HalfOpen && b.permits > 0:
		return 0
	case s == Open && !b.forced:
		return max(b.openedAt.Add(b.wait).Sub(now), 0)
	case s == HalfOpen:
		return min(max(b.overdue(now), 0), time.Second)
	}
	return time.Second
}

// Cause returns why the breaker stands where it does: the cause of its latest
// move, or CauseNone when it has not moved yet.
func (b *Breaker) Cause() Cause {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}

// FailureRate returns the share of failed attempts among the latest, 0 to 1: the
// plain rate, whatever can be concluded from it.
func (b *Breaker) FailureRate(time.Time) float64 {
	seen := b.window.Load().latest()
	return seen.rate(seen.failed)
}
