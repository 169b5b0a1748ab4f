package forbear

import (
	"sync"
	"sync/atomic"
	"time"
)

// Breaker stops all calls to a dependency that keeps failing, and lets a few
// probes through after a while (INTG-STD-033). It wraps the retries: it sees
// every attempt, and its opening ends the sequences that are under way. While
// it is closed, asking it and telling it take no lock and allocate nothing. It
// is safe for concurrent use and takes the time as an argument.
//
// A Retryer makes its own from the policy; make one with [NewBreaker] to share
// it or to use it alone.
type Breaker struct {
	policy BreakerPolicy
	window atomic.Pointer[outcomes] // a fresh one each time the breaker closes

	// word holds the generation (upper bits) and the state (lowest two). Each
	// transition starts a new generation, so that the end of an attempt that
	// began before it is not taken for a probe.
	word atomic.Uint64
	// spentAt is when the budget last refused a retry, as time since the
	// breaker was made; 0 means that it would grant one.
	spentAt atomic.Int64
	born    time.Time

	mu        sync.Mutex // transitions, and everything that is not closed
	openedAt  time.Time
	permits   int // probes that may still begin
	succeeded int
	forced    bool
	moved     func(BreakerMoved)
}

// BreakerMoved is the event of a breaker that changed its state.
type BreakerMoved struct {
	Dependency  string
	From, To    BreakerState
	FailureRate float64 // of the window at that moment, 0 to 1
	SlowRate    float64
	Calls       int
	// Actor is who moved it by hand; "" when it moved by itself.
	Actor string
	At    time.Time
}

// Permit is the leave to make one attempt; its end is told with
// [Breaker.Record] or [Breaker.Cancel]. The zero Permit is that of an attempt
// nobody asked about; its end counts when the breaker has not moved yet.
type Permit struct {
	generation uint64
	// Probe says that the attempt tries out a dependency that was down. It
	// should get half the usual time.
	Probe bool
}

// NewBreaker returns a closed breaker. Zero fields of p are taken as they are;
// [BreakerPolicy.WithDefaults] fills them in. moved, which may be nil, is told
// of every transition, one at a time.
func NewBreaker(p BreakerPolicy, moved func(BreakerMoved)) *Breaker {
	b := &Breaker{policy: p, born: time.Now(), moved: moved}
	b.window.Store(newOutcomes(p))
	return b
}

func (b *Breaker) load() (generation uint64, s BreakerState) {
	w := b.word.Load()
	return w >> 2, BreakerState(w & 3)
}

// State returns where the breaker stands. One whose wait is over is still open
// until somebody asks to make an attempt.
func (b *Breaker) State() BreakerState {
	_, s := b.load()
	return s
}

// Allow asks for the leave to make an attempt.
func (b *Breaker) Allow(now time.Time) (Permit, bool) {
	generation, s := b.load()
	if s == BreakerClosed {
		return Permit{generation: generation}, true
	}
	return b.allowProbe(now)
}

func (b *Breaker) allowProbe(now time.Time) (Permit, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	generation, s := b.load()
	switch {
	case s == BreakerClosed:
		return Permit{generation: generation}, true
	case s == BreakerOpen && !b.forced && now.Sub(b.openedAt) >= b.policy.OpenFor:
		b.move(BreakerHalfOpen, now, "")
		b.permits, b.succeeded = b.policy.Probes, 0
		generation, s = b.load()
	}
	if s != BreakerHalfOpen || b.permits == 0 {
		return Permit{}, false
	}
	b.permits--
	return Permit{generation: generation, Probe: true}, true
}

// Outcome is how one attempt ended, for a breaker.
type Outcome uint8

const (
	OutcomeGood   Outcome = iota
	OutcomeFailed         // the dependency failed
	OutcomeSlow           // good, but slower than the policy's slow call
)

// Record tells the end of an attempt.
func (b *Breaker) Record(p Permit, o Outcome, now time.Time) {
	generation, s := b.load()
	if p.generation != generation {
		return // from another time
	}
	switch s {
	case BreakerClosed:
		w := b.window.Load()
		if w.add(o, now); w.suspicious() {
			b.judge(generation, now)
		}
	case BreakerHalfOpen:
		b.recordProbe(p, o, now)
	}
}

// good is Record for a good outcome, without a clock where none is needed.
func (b *Breaker) good(p Permit, now func() time.Time) {
	if b.word.Load() == p.generation<<2|uint64(BreakerClosed) && b.window.Load().calm.Load() {
		return
	}
	b.Record(p, OutcomeGood, now())
}

// Cancel gives back a permit whose attempt says nothing about the dependency:
// it was never made, or the caller ended it.
func (b *Breaker) Cancel(p Permit) {
	if !p.Probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation, s := b.load(); generation == p.generation && s == BreakerHalfOpen {
		b.permits++
	}
}

// judge opens the breaker when the window is over a threshold.
func (b *Breaker) judge(generation uint64, now time.Time) {
	calls, failed, slow := b.window.Load().sums(now)
	if calls < int64(b.policy.MinCalls) || !b.tooMany(calls, failed, slow, now) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if g, s := b.load(); g == generation && s == BreakerClosed && !b.forced {
		b.open(now, "")
	}
}

func (b *Breaker) tooMany(calls, failed, slow int64, now time.Time) bool {
	n := float64(calls)
	return float64(failed) >= b.failureRate(now)*n && failed > 0 || float64(slow) >= b.policy.SlowRate*n && slow > 0
}

// failureRate returns the threshold in force: the policy's, or its floor while
// the retry budget is spent.
func (b *Breaker) failureRate(now time.Time) float64 {
	if spent := b.spentAt.Load(); spent != 0 && now.Sub(b.born)-time.Duration(spent) <= budgetMemory {
		return min(MinFailureRate, b.policy.FailureRate)
	}
	return b.policy.FailureRate
}

// budgetMemory is how long a refusal of the budget is taken to hold when nobody
// has asked it again.
const budgetMemory = time.Second

// BudgetRefused tells that the retry budget has just refused a retry.
func (b *Breaker) BudgetRefused(now time.Time) {
	if b.policy.OnBudget == BudgetIgnored {
		return
	}
	b.spentAt.Store(max(int64(now.Sub(b.born)), 1))
	generation, s := b.load()
	if s != BreakerClosed {
		return
	}
	if b.policy.OnBudget == BudgetSignals {
		b.judge(generation, now)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if g, s := b.load(); g == generation && s == BreakerClosed && !b.forced {
		b.open(now, "")
	}
}

// BudgetGranted tells that the budget has granted a retry.
func (b *Breaker) BudgetGranted() {
	if b.spentAt.Load() != 0 {
		b.spentAt.Store(0)
	}
}

func (b *Breaker) recordProbe(p Permit, o Outcome, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if generation, s := b.load(); generation != p.generation || s != BreakerHalfOpen {
		return
	}
	if o == OutcomeFailed {
		b.open(now, "")
		return
	}
	if b.succeeded++; b.succeeded >= b.policy.Probes {
		b.close(now, "")
	}
}

// open, close and move are called with b.mu held.

func (b *Breaker) open(now time.Time, actor string) {
	b.openedAt = now
	b.move(BreakerOpen, now, actor)
}

func (b *Breaker) close(now time.Time, actor string) {
	b.move(BreakerClosed, now, actor)
}

func (b *Breaker) move(to BreakerState, now time.Time, actor string) {
	generation, from := b.load()
	e := BreakerMoved{From: from, To: to, Actor: actor, At: now}
	calls, failed, slow := b.window.Load().sums(now)
	if e.Calls = int(calls); calls > 0 {
		e.FailureRate, e.SlowRate = float64(failed)/float64(calls), float64(slow)/float64(calls)
	}
	if to == BreakerClosed {
		b.window.Store(newOutcomes(b.policy))
		b.spentAt.Store(0)
	}
	b.word.Store((generation+1)<<2 | uint64(to))
	if b.moved != nil {
		b.moved(e)
	}
}

// Force holds the breaker open or closed by hand, until [Breaker.Release]. The
// actor goes into the event and the log; authorization is the caller's duty.
func (b *Breaker) Force(to BreakerState, actor string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forced = true
	if _, from := b.load(); from == to {
		return
	}
	if to == BreakerOpen {
		b.open(now, actor)
	} else {
		b.close(now, actor)
	}
}

// Release ends a [Breaker.Force]: the breaker moves by itself again, from where
// it stands.
func (b *Breaker) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forced = false
}

// Forced reports whether the breaker is held by hand.
func (b *Breaker) Forced() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.forced
}

// FailureRate returns the share of failed attempts in the window, 0 to 1.
func (b *Breaker) FailureRate(now time.Time) float64 {
	calls, failed, _ := b.window.Load().sums(now)
	if calls == 0 {
		return 0
	}
	return float64(failed) / float64(calls)
}
