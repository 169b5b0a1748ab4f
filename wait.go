package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/internal/window"
)

// This is the one file that sleeps.

// Wait waits as d says, counted from the failure, and begins the next attempt. When the caller ends first,
// the budget gets its retry back, and the error holds both the last failure f
// and the caller's end.
func (c *Call) Wait(ctx context.Context, d Decision, f Failure) error {
	if !c.sleep(ctx, d.Wait-(time.Since(window.Epoch())-c.failedAt), nil) {
		c.unmade(d)
		return c.abandon(ctx, f)
	}
	c.attempted = time.Since(window.Epoch())
	var why Reason
	if c.paced() { // in line since the failure: whoever waits does so once
		why = c.turn(ctx, c.failedAt)
	}
	if why == ReasonCanceled {
		c.unmade(d)
		return c.abandon(ctx, f)
	}
	if why == ReasonNone {
		c.permit, why = c.r.admit(c.tried())
	}
	if why != ReasonNone {
		c.giveBack()
		c.unmade(d)
		stop := Decision{Reason: why, Class: d.Class}
		c.stopped(ctx, stop, f, time.Now(), c.Attempt())
		return c.Err(stop, f)
	}
	if c.r.observers.started {
		c.r.attemptStarted(ctx, c.info(ctx, true))
	}
	return nil
}

// readyEvery is how often Ready looks whether the breaker has closed: others close
// it, by a probe or by hand.
const readyEvery = 500 * time.Millisecond

// Ready waits until the circuit breaker would let an attempt through, and returns
// within a second of that. It is for sources of work, which fetch nothing meanwhile
// instead of putting off piece by piece; the attempt itself is still asked for. The
// error is that of ctx and its cause.
func (r *Retryer) Ready(ctx context.Context) error {
	var turn time.Time
	for spread := r.rand(); r.breaker != nil && ctx.Err() == nil; {
		now := time.Now()
		wait := r.breaker.Wait(now)
		if wait == 0 && (!now.Before(turn) || r.breaker.State() == breaker.Closed) {
			break
		}
		// Not all at once: the first to come takes the probe.
		if at := now.Add(wait + time.Duration(spread*float64(wait/10))); at.After(turn) {
			turn = at
		}
		t := time.NewTimer(min(turn.Sub(now), readyEvery))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	gone, _ := callerEnded(ctx, nil)
	return gone.Err
}

// turn waits until the attempt has its turn, from its pacer. The call stands in line
// since the given time, from the epoch. It ends with ReasonPaced when the turn would
// come too late, or ReasonCanceled when the caller has gone.
func (c *Call) turn(ctx context.Context, since time.Duration) Reason {
	now := time.Now()
	w, until, ok := c.pacer.Turn(now, window.Epoch().Add(since), c.latest(ctx, now))
	for taken := false; w != nil && !taken; now = time.Now() {
		var wait time.Duration
		if wait, taken, until = w.Ask(now); taken {
			break
		}
		if wait <= 0 {
			ok = false
			break
		}
		if !c.sleep(ctx, wait, w.Moved()) {
			w.Leave()
			return ReasonCanceled
		}
	}
	if !ok {
		c.until = until.Sub(window.Epoch())
		return ReasonPaced
	}
	c.turned = true
	c.attempted = now.Sub(window.Epoch())
	return ReasonNone
}

// sleep waits for d, or until moved says so, and reports whether it could: false when
// ctx ended first. One timer serves all waits of the call.
func (c *Call) sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) bool {
	if d < time.Microsecond {
		return ctx.Err() == nil // over before a timer could be set
	}
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return true
	case <-moved:
		c.timer.Stop()
		return true
	case <-ctx.Done():
		c.timer.Stop()
		return false
	}
}

// abandon ends a call whose caller left during a wait.
func (c *Call) abandon(ctx context.Context, f Failure) error {
	gone, _ := callerEnded(ctx, f.Err)
	d := Decision{Reason: endedReason(gone), Class: ClassCanceled}
	c.stopped(ctx, d, gone, time.Now(), c.Attempt())
	return c.Err(d, gone)
}
