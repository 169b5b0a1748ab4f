package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/window"
)

// DurableCall is one logical call that waits elsewhere than in a goroutine: in a
// queue, a database, a schedule of many items. Between its attempts only its
// [Progress] is kept, so that another process may go on with it:
//
//	call := r.Durable(ctx, stored)
//	d := call.Ask(ctx, now)
//	if d.Retry && d.Wait == 0 {
//		d, err = call.Try(ctx, op) // or one attempt, and call.Fail or call.Succeed
//	}
//	switch {
//	case d.Reason == ReasonSuccess: // done
//	case d.Retry:                   // store call.Progress, come again after d.Wait
//	case d.Reason.Momentary():      // likewise, after call.Postpone(ctx, d, now)
//	default:                        // over: a dead letter, because of d.Reason
//	}
//
// Its decisions are those of [Retryer.Next]; it asks the breaker and the bulkhead
// before each attempt and reports every event. The time is an argument. A
// DurableCall belongs to one goroutine at a time.
type DurableCall struct {
	Progress
	// Facts may be adjusted before Fail: ExhaustedBelow.
	Facts Facts

	r           *Retryer
	correlation string
	permit      breaker.Permit // of the attempt under way
	entered     bool           // holds a place in the bulkhead
	failure     Failure        // the latest that was seen in this process
	failedAt    time.Time
	granted     Decision // a retry that was granted in this process and not begun
	free        bool     // the latest retry was not taken from the budget
}

// Durable goes on with a call of which p is known; a zero Progress begins one. Of
// ctx the call takes the correlation id. Work of kind Batch, which ends with its
// process, is bound by the deadline of ctx too.
func (r *Retryer) Durable(ctx context.Context, p Progress) *DurableCall {
	c := &DurableCall{Progress: p, r: r, correlation: r.CorrelationID(ctx)}
	if !r.policy.Kind.Durable() {
		readContext(ctx, &c.State, &c.Facts)
	}
	return c
}

// Ask asks whether an attempt may be made now: the first, or the next when its
// wait is over or its decision was put off.
//
// A retry without a wait has begun: make the attempt, then call Fail, Succeed or
// Release. One with a wait comes again when that is over; the backoff counts from
// the failure. A refusal of the moment (see [Reason.Momentary]) leaves the call as
// it was, to ask again at once or to Postpone. Any other refusal ends it.
func (c *DurableCall) Ask(ctx context.Context, now time.Time) Decision {
	if d := c.over(ctx, now); d.Reason != ReasonNone {
		return d
	}
	if why := c.enter(now); why != ReasonNone {
		c.takeBack(now)
		return c.decided(ctx, Decision{Reason: why, Class: c.failure.Class}, c.latest(why), now)
	}
	if c.Pending != nil {
		if d := c.reconsider(ctx, now); !d.Retry || d.Wait > 0 {
			c.Release()
			return d
		}
	}
	if c.State.Attempt == 0 {
		c.State.Attempt = 1
		if c.State.Start.IsZero() {
			c.State.Start = now
		}
		c.r.budget.Request(now)
	}
	c.granted = Decision{}
	if c.r.observers.started {
		c.r.attemptStarted(ctx, c.info(c.Attempts+1))
	}
	return Decision{Retry: true, Reason: ReasonRetryable, Class: c.failure.Class}
}

// over ends a call whose time or whose caller is gone.
func (c *DurableCall) over(ctx context.Context, now time.Time) Decision {
	switch {
	case c.r.policy.remaining(&c.State, now) <= 0:
		return c.end(ctx, ReasonDeadline, now)
	case ctx.Err() == nil:
		return Decision{}
	case c.r.policy.Kind.Durable():
		return Decision{Reason: ReasonCanceled, Class: ClassCanceled} // another process goes on with it
	}
	return c.end(ctx, ReasonCanceled, now)
}

// enter asks the bulkhead and the breaker for the leave to make an attempt.
func (c *DurableCall) enter(now time.Time) (why Reason) {
	if c.r.bulkhead != nil {
		if !c.r.bulkhead.Enter() {
			return ReasonBulkheadFull
		}
		c.entered = true
	}
	if c.permit, why = c.r.admit(now); why != ReasonNone {
		c.leave()
	}
	return why
}

func (c *DurableCall) leave() {
	if c.entered {
		c.entered = false
		c.r.bulkhead.Leave()
	}
}

// reconsider asks again about the retry that was put off. The failure is not a new
// one: neither the breaker nor the count of DNS failures hears of it a second time.
//
// It comes after enter. A breaker whose wait is over moves only when it is asked
// for an attempt, so that a call that reconsidered alone would find it open for
// ever.
func (c *DurableCall) reconsider(ctx context.Context, now time.Time) Decision {
	f := c.Pending.failure(now)
	f.Err = c.failure.Err
	d := c.r.decide(&c.State, c.Facts, &f, now, false)
	if d.Retry {
		d.Wait = c.Pending.left(d.Wait, now)
		c.Pending = nil
	}
	return c.decided(ctx, d, f, now)
}

// Fail decides what follows the failed attempt under way, which took the given
// time.
func (c *DurableCall) Fail(ctx context.Context, f Failure, took time.Duration, now time.Time) Decision {
	c.leave()
	c.Attempts++
	c.Last, c.failure = f.Type, f
	if c.r.observers.ended {
		c.r.attemptEnded(ctx, c.info(c.Attempts), f, took)
	}
	d := c.r.next(&c.State, c.Facts, c.permit, &f, now)
	c.permit = breaker.Permit{}
	c.failedAt = now
	if d.Reason.Momentary() && c.r.policy.Kind.earns() { // others do not wait
		c.Pending = c.pending()
	}
	return c.decided(ctx, d, f, now)
}

// pending returns the latest failure as one that waits for its decision.
func (c *DurableCall) pending() *Pending {
	p := &Pending{Class: c.failure.Class, Type: c.failure.Type, At: c.failedAt}
	if floor := c.failure.Hint.Floor; floor > 0 {
		p.Until = p.At.Add(floor)
	}
	return p
}

// takeBack makes of a retry that was granted in this process, and cannot be sent
// now, one whose decision is open: the budget gets it back. One that an earlier
// process was granted stays granted, since its window is over.
func (c *DurableCall) takeBack(now time.Time) {
	if !c.granted.Retry {
		return
	}
	c.r.Refund(c.granted, now)
	c.State.Attempt--
	switch c.granted.Reason { // what State.After has counted
	case ReasonRefresh:
		c.State.Refreshes--
	case ReasonResend:
		c.State.Resends--
	}
	c.granted = Decision{}
	if c.r.policy.Kind.earns() {
		c.Pending = c.pending()
	}
}

// Succeed ends the call after a good attempt, which took the given time.
func (c *DurableCall) Succeed(ctx context.Context, took time.Duration, now time.Time) {
	c.leave()
	c.Attempts++
	c.r.recordGood(c.permit, took, now)
	if c.r.outcomes != nil {
		retries := c.Attempts - 1
		if c.free {
			retries = 0 // there is nothing to pay back
		}
		c.r.outcomes.Succeeded(now, retries, costOf(c.failure.Class))
	}
	if !c.r.observers.ended && !c.r.observers.succeeded {
		return
	}
	i := c.info(c.Attempts)
	c.r.attemptEnded(ctx, i, Failure{Class: ClassSuccess}, took)
	c.r.callSucceeded(ctx, i, c.elapsed(now), c.Last)
}

// Try makes the attempt under way as [Retryer.Do] does, and decides what follows.
// It bounds the attempt by what is left of the policy's total, and by its per-attempt
// timeout: work of kind Event and Webhook always, other work when the policy sets one.
// A panic of op is an error that is final, and so is its end by runtime.Goexit, which
// ends the caller too. The decision's reason is ReasonSuccess when
// the call is over; the error is op's. Durable work whose ctx ended is released: it may
// ask again. So is durable work of which op could do nothing, since another dependency's
// breaker was open: the decision says when to ask again, and no attempt is used up.
func (c *DurableCall) Try(ctx context.Context, op func(context.Context) error) (Decision, error) {
	began := time.Now()
	returned := false
	defer func() {
		if !returned { // Goexit
			c.Fail(ctx, c.r.classify(ctx, panicked("runtime.Goexit")), time.Since(began), time.Now())
		}
	}()
	err := c.attempt(ctx, began, op)
	returned = true
	now := time.Now()
	if err == nil {
		c.Succeed(ctx, now.Sub(began), now)
		return Decision{Reason: ReasonSuccess, Class: ClassSuccess}, nil
	}
	f := c.r.classify(ctx, err)
	if f.Class == ClassCanceled && c.r.policy.Kind.Durable() {
		c.Release()
		return Decision{Reason: ReasonCanceled, Class: f.Class}, err
	}
	if d := c.refusedElsewhere(ctx, err, &f, now); d.Retry {
		return d, err
	}
	c.Facts.ExhaustedBelow = ExhaustedBelow(err)
	return c.Fail(ctx, f, now.Sub(began), now), err
}

// attempt runs op once.
func (c *DurableCall) attempt(ctx context.Context, now time.Time, op func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	durable := c.r.policy.Kind.Durable()
	if !durable && c.Attempts > 0 {
		ctx = c.r.retryContext(ctx, c.Attempts+1)
	}
	bound := c.Timeout(now)
	if !durable && c.r.policy.PerAttempt == 0 {
		bound = max(c.r.policy.remaining(&c.State, now), 1)
	}
	return newAttemptContext(ctx, duration.Sum(now.Sub(window.Epoch()), bound)).run(op)
}

// Release ends an attempt that was not made after all, or that says nothing about
// the dependency. The call may ask again.
func (c *DurableCall) Release() {
	c.r.withdraw(c.permit)
	c.permit = breaker.Permit{}
	c.leave()
}

// Postpone acts on a refusal of the moment: it counts and reports it, and returns
// how long the call stays away. Behind an open breaker that is until it lets
// something through and up to a quarter more; otherwise a second and up to 2 s,
// 4 s ... 5 min more, so that a crowd spreads. It is never less than the server
// asked for.
func (c *DurableCall) Postpone(ctx context.Context, refused Decision, now time.Time) time.Duration {
	c.Postponed++
	c.stopped(ctx, refused, c.latest(refused.Reason), now, 0)
	n := 0
	if p := c.Pending; p != nil && refused.Reason != ReasonBreakerOpen {
		n = p.Refused
		p.Refused++
	}
	least, spread := time.Second, min(2*time.Second<<min(n, 8), 5*time.Minute)
	if refused.Reason == ReasonBreakerOpen && c.r.breaker != nil {
		least = max(c.r.breaker.Wait(now), time.Second)
		spread = least / 4
	}
	wait := least + time.Duration(c.r.rand()*float64(spread))
	if c.Pending != nil && !c.Pending.Until.IsZero() {
		wait = max(wait, c.Pending.Until.Sub(now))
	}
	return wait
}

// Earned returns a channel that is closed when the dependency next succeeds, and
// with it earns retries beyond the budget's share: then it is worth asking again.
// Take it before asking, so that no success is missed.
func (c *DurableCall) Earned() <-chan struct{} {
	if c.r.earned == nil {
		return nil
	}
	return c.r.earned.next()
}

// Timeout returns the time that the attempt under way gets: that of the policy,
// half of it for a probe of a dependency that was down (INTG-STD-033), and never
// more than is left of the total.
func (c *DurableCall) Timeout(now time.Time) time.Duration {
	return limit(c.r.policy.AttemptTimeout(), c.permit, c.r.policy.remaining(&c.State, now))
}

// GiveUp ends a call that waits, for a reason of its caller's, and returns the
// error to end with.
func (c *DurableCall) GiveUp(ctx context.Context, why Reason, now time.Time) *Error {
	d := c.end(ctx, why, now)
	return c.Err(d, now)
}

// Err returns the error of a call that d has ended.
func (c *DurableCall) Err(d Decision, now time.Time) *Error {
	e := &Error{
		Dependency: c.r.dependency, Reason: d.Reason, Type: c.latest(d.Reason).Type,
		Attempts: c.Attempts, Elapsed: c.elapsed(now), Err: c.failure.Err, class: d.Class,
	}
	c.r.figures(e, d, now)
	if d.Reason == ReasonHintTooLong {
		e.RetryAfter = c.failure.Hint.Floor
	}
	return e
}

// latest returns the latest failure, as far as it is known: an earlier process may
// have seen it. A call that has not failed has why instead.
func (c *DurableCall) latest(why Reason) Failure {
	switch {
	case c.failure.Type != "":
		return c.failure
	case c.Pending != nil:
		return Failure{Class: c.Pending.Class, Type: c.Pending.Type}
	case c.Last != "":
		return Failure{Type: c.Last}
	}
	return Failure{Type: why.String()}
}

// end ends the call for a reason that is no failure's. A retry that was granted
// and will not be sent goes back to the budget.
func (c *DurableCall) end(ctx context.Context, why Reason, now time.Time) Decision {
	c.takeBack(now)
	f := c.latest(why)
	d := Decision{Reason: why, Class: f.Class}
	if why == ReasonBudget {
		d.Level = c.r.budget.Level(now)
	}
	return c.decided(ctx, d, f, now)
}

// decided reports what follows failure f, and returns it. A refusal of the moment is
// reported when it is acted on: see Postpone.
func (c *DurableCall) decided(ctx context.Context, d Decision, f Failure, now time.Time) Decision {
	switch {
	case d.Retry:
		c.granted, c.free = d, d.free
		if c.r.observers.scheduled {
			c.r.retryScheduled(ctx, c.info(c.Attempts+1), d, f)
		}
	case !d.Reason.Momentary():
		noteExhaustion(ctx, d)
		c.stopped(ctx, d, f, now, c.Attempts)
	}
	return d
}

// stopped reports that no retry follows failure f; made is 0 for one that is only
// put off.
func (c *DurableCall) stopped(ctx context.Context, d Decision, f Failure, now time.Time, made int) {
	if c.r.observers.stopped {
		c.r.stopped(ctx, c.info(c.Attempts), d, f, c.elapsed(now), made)
	}
}

// elapsed returns how long the call has taken so far; 0 for one that was never let
// in, which has not begun.
func (c *DurableCall) elapsed(now time.Time) time.Duration {
	if c.State.Start.IsZero() {
		return 0
	}
	return now.Sub(c.State.Start)
}

// info returns what the events of the call have in common.
func (c *DurableCall) info(attempt int) Info {
	return Info{
		Dependency: c.r.dependency, CorrelationID: c.correlation, IdempotencyKey: c.State.Key,
		Attempt: max(attempt, 1), MaxAttempts: c.r.policy.limit(&c.State, Hint{}) + 1,
	}
}
