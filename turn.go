package forbear

import (
	"context"
	"time"

	"github.com/forbear-go/forbear/internal/duration"
	"github.com/forbear-go/forbear/internal/window"
)

// This file says which attempts take turns under a dependency's limit, until when
// one may wait for it, and what the pacer learns of its end. The waiting is in wait.go.

// paced reports whether the attempt to come waits for a turn. A breaker that is not
// closed lets single probes through, and they are not to wait: a turn would come when
// the dependency does what it did before.
func (c *Call) paced() bool {
	if c.pacer == nil || !c.pacer.Active() {
		return false
	}
	if c.r.breaker == nil {
		return true
	}
	_, closed := c.r.breaker.Glance()
	return closed
}

// latest returns until when the call may wait for a turn: an attempt that is sent then
// still has its usual time, or half of what is left now where that is less. A line in
// which everyone waits until the last moment would send what no one waits for any more.
func (c *Call) latest(ctx context.Context, now time.Time) time.Time {
	end := window.Epoch().Add(duration.Sum(c.began, c.r.policy.Total))
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	left := end.Sub(now)
	return end.Add(-max(min(c.r.policy.AttemptTimeout(), left/2), c.r.given.MinAttempt))
}

// learn lets the pacer learn from a failed attempt: from 429 and its like, and from 503
// with a wait of the server's, that it was refused for its rate; from anything else that
// it was not. What the caller ended says neither.
func (c *Call) learn(f *Failure, now time.Time) {
	c.turned = false
	switch {
	case c.pacer == nil || f.Class == ClassCanceled:
	case f.Class == ClassThrottled || f.Type == "http_503" && f.Hint.Floor > 0:
		c.pacer.Throttled(c.tried(), now, f.Hint.Floor)
	case c.pacer.Active():
		c.pacer.Passed(c.tried(), now)
	}
}

// passed lets the pacer learn from a good attempt. While nothing is refused, that costs
// the look at a flag.
func (c *Call) passed() {
	if c.pacer != nil && c.pacer.Active() {
		c.pacer.Passed(c.tried(), time.Now())
	}
}

// giveBack gives back the turn of an attempt that was not made.
func (c *Call) giveBack() {
	if c.turned {
		c.turned = false
		c.pacer.GiveBack()
	}
}
