package gateway

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/label"
	"github.com/forbear-go/forbear/reason"
)

// events are what happened to a dependency beside its counts.
type events struct {
	moves       []BreakerMove // oldest first, at most maxMoves: 3 KB
	certificate *CertificateRefusal
	layers      []LayerSeen // at most one a side
	// failed and saved are the latest calls, oldest first, under the lock of [lastCalls].
	failed, saved []*list.Element
}

// The bounds of what is kept of single calls and moves. All calls take some 4 MB when each
// has two failed attempts, and 12 MB when each has sixteen.
const (
	maxMoves     = 32
	maxCalls     = 16 // of a dependency, of either outcome
	maxCallsEver = 4096
)

// lastCalls are the latest calls with a failed attempt of all dependencies. The oldest goes
// first when there are too many.
type lastCalls struct {
	mu    sync.Mutex
	order list.List // of keptCall, oldest first
}

// keptCall is a call and the list of its dependency that it is in.
type keptCall struct {
	FailedCall
	in *[]*list.Element
}

func (l *lastCalls) add(in *[]*list.Element, c FailedCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(*in) == maxCalls {
		l.drop((*in)[0])
	}
	if l.order.Len() == maxCallsEver {
		l.drop(l.order.Front())
	}
	*in = append(*in, l.order.PushBack(keptCall{c, in}))
}

// drop removes a call, which is the oldest of its dependency's list.
func (l *lastCalls) drop(e *list.Element) {
	in := l.order.Remove(e).(keptCall).in
	*in = slices.Delete(*in, 0, 1)
}

// of returns the calls of a dependency, newest first.
func (l *lastCalls) of(e *events) []FailedCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := make([]FailedCall, 0, len(e.failed)+len(e.saved))
	for _, kept := range slices.Concat(e.failed, e.saved) {
		calls = append(calls, kept.Value.(keptCall).FailedCall)
	}
	slices.SortStableFunc(calls, func(a, b FailedCall) int { return b.At.Compare(a.At) })
	return calls
}

// Observer returns what to pass to [forbear.WithObserver]. The log stays on beside it.
func (s *Stats) Observer() *forbear.Observer {
	r := s.recorder.Observer()
	o := *r
	o.ListsFailed = true
	o.Attached = func(of *forbear.Retryer) {
		r.Attached(of)
		s.counts.tally(of.Dependency()).retryer.Store(of)
	}
	o.RetryScheduled = func(ctx context.Context, e forbear.RetryScheduled) {
		r.RetryScheduled(ctx, e)
		s.scheduled(e)
	}
	o.Succeeded = func(ctx context.Context, e forbear.Succeeded) {
		if e.Attempt > 1 {
			r.Succeeded(ctx, e)
			t := s.counts.tally(e.Dependency)
			c := callOf(e.Info, CallSaved, reason.Success, e.FailedBefore, e.Elapsed)
			c.Made = e.Attempt
			s.calls.add(&t.events.saved, c)
		}
	}
	o.Stopped = func(ctx context.Context, e forbear.Stopped) {
		r.Stopped(ctx, e)
		s.stopped(&e)
	}
	o.BreakerMoved = func(e breaker.Transition) {
		r.BreakerMoved(e)
		s.counts.tally(e.Dependency).moved(e)
	}
	o.LayeredRetry = func(_ context.Context, e forbear.LayeredRetry) {
		s.counts.tally(e.Dependency).layered(e)
	}
	return &o
}

// scheduled keeps a failed attempt of durable work: its retry may be hours away, and in
// another process. That of a live call waits for its end.
func (s *Stats) scheduled(e forbear.RetryScheduled) {
	n := len(e.Failed)
	if n == 0 {
		return
	}
	t := s.counts.tally(e.Dependency)
	if r := t.retryer.Load(); r == nil || !r.Policy().Kind.Durable() {
		return
	}
	t.failedAgain()
	last := e.Failed[n-1]
	e.Failed = e.Failed[n-1:]
	c := callOf(e.Info, CallRetrying, e.Reason, e.Failure.Type, last.Took)
	c.Made = last.Number
	s.calls.add(&t.events.failed, c)
}

// stopped keeps a call that failed. One that was refused before its first attempt is
// counted by its reason, and would push out those that say why.
func (s *Stats) stopped(e *forbear.Stopped) {
	t := s.counts.tally(e.Dependency)
	if e.Reason == reason.Certificate {
		t.mu.Lock()
		t.events.certificate = &CertificateRefusal{time.Now(), e.Failure.Explain()}
		t.mu.Unlock()
	}
	outcome, made := CallFailed, e.Attempts
	switch {
	case e.Attempts > 0:
	case len(e.Failed) > 0:
		outcome, made = CallPostponed, e.Failed[len(e.Failed)-1].Number
		t.failedAgain()
	default:
		return
	}
	c := callOf(e.Info, outcome, e.Reason, e.Failure.Type, e.Elapsed)
	c.Why, c.Made = e.Explain(), made
	s.calls.add(&t.events.failed, c)
}

func callOf(i forbear.Info, outcome string, why forbear.Reason, errorType string, elapsed time.Duration) FailedCall {
	c := FailedCall{
		At: time.Now(), CorrelationID: label.Clean(i.CorrelationID), Outcome: outcome, Reason: why.String(), Rule: why.Rule(),
		ErrorType: label.Clean(errorType), Elapsed: Duration(elapsed), Attempts: make([]CallAttempt, len(i.Failed)),
	}
	for n, a := range i.Failed {
		c.Attempts[n] = CallAttempt{
			Number: a.Number, At: a.At, Took: Duration(a.Took), Wait: Duration(a.Wait), ErrorType: label.Clean(a.Failure.Type),
			Reason: a.Reason.String(), Rule: a.Reason.Rule(), Detail: a.Failure.Explain(),
		}
	}
	return c
}

// moved keeps a move of the breaker, whose lock is held.
func (t *tally) moved(e breaker.Transition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &t.events.moves
	if len(*m) == maxMoves {
		*m = slices.Delete(*m, 0, 1)
	}
	*m = append(*m, BreakerMove{e.At, e.From.String(), e.To.String(), e.Cause.String(), e.FailureRate, e.Calls, e.Actor})
}

// layered keeps the first sight of a layer on each side.
func (t *tally) layered(e forbear.LayeredRetry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.ContainsFunc(t.events.layers, func(l LayerSeen) bool { return l.Above == e.Above }) {
		t.events.layers = append(t.events.layers, LayerSeen{time.Now(), e.Above, e.Sends})
	}
}

// Detail returns what is known of a dependency; ok is false for one that is not known.
// policy writes a policy as text.
func (s *Stats) Detail(now time.Time, dependency string, policy func(forbear.Policy) string) (d DependencyDetail, ok bool) {
	l := s.look(now)
	t := s.counts.find(dependency)
	if t == nil {
		return d, false
	}
	l.row(&d.DependencyStatus, t)
	d.Hour = t.hour(l.minute, now)
	if r := t.retryer.Load(); r != nil && policy != nil {
		d.Policy = policy(r.Policy())
	}
	d.Calls = s.calls.of(&t.events)
	t.mu.Lock()
	defer t.mu.Unlock()
	d.Moves, d.Layers = append([]BreakerMove{}, t.events.moves...), append([]LayerSeen{}, t.events.layers...)
	slices.Reverse(d.Moves)
	d.Certificate = t.events.certificate
	return d, true
}
