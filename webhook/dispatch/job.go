package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/reason"
	"github.com/forbear-go/forbear/webhook/store"
)

// job is one claimed delivery at work for its receiver, until it is written back. It
// carries the delivery through one attempt, or through a decision that was postponed, and
// belongs to one goroutine. Its delivery is written back exactly once: every way through
// process ends in writeBack or deadLetter.
//
// A delivery is a durable call, about which the engine decides. Three hear of an attempt:
// the engine, the receiver and the store.
type job struct {
	to       *receiver
	delivery *store.Delivery
	ep       *endpoint         // the configuration that it is sent by; nil before resume
	call     *edge.DurableCall // likewise
	made     *attempt          // nil while there is none that counts
}

// resume goes on with the delivery's call, with what the engine has to know of the
// message beside what was stored.
func (j *job) resume() {
	dl := j.delivery
	j.ep = j.to.endpoint()
	p := dl.Progress
	p.State.Start, p.State.NeedsKey, p.State.Key = j.start(), true, dl.Message.SentKey()
	p.State.Refreshable = j.ep.cred.refreshable()
	ctx := forbear.WithCorrelationID(context.Background(), dl.Message.CorrelationID)
	j.call = edge.Durable(ctx, j.ep.retryer, p)
}

// process does the job. Right before a send it looks at everything that may have
// changed since the claim: the stop, the lease, the endpoint, the 24 hours.
func (j *job) process() {
	d := j.to.d
	if j.delivery.Canceled {
		j.release(untilCanceled)
		return
	}
	if left := j.early(); left > 0 {
		j.release(left)
		return
	}
	if d.stopping() || !j.leaseLasts() || j.to.blocked(time.Now()) {
		j.release(0)
		return
	}
	if j.resume(); j.spared() || !j.leaseLasts() { // a look at the name may have taken a while
		j.release(0)
		return
	}
	switch dec, now := j.askPatiently(); {
	case !dec.Retry:
		j.refuse(dec, now)
	case dec.Wait > 0:
		j.release(dec.Wait)
	default:
		j.attempt()
	}
}

const (
	// earlyBy is how far the clocks of a fleet and its store may be apart.
	earlyBy = time.Minute
	// earlyFor is how long a message waits at most because one process finds it early,
	// twice as long each time it is claimed: that one's clock may be the wrong one.
	earlyFor = 15 * time.Minute
)

// start returns when the delivery began. It cannot have before its message was made: a
// store's clock that was behind then, by a day for seconds, must not end it at once.
func (j *job) start() time.Time {
	start, made := j.delivery.Start, j.delivery.Message.Created
	if made.Sub(start) > earlyBy && !made.After(j.to.d.now()) {
		return made
	}
	return start
}

// early returns for how long a message is postponed that is scheduled for later. The store
// found it due, but a clock that jumps ahead for a moment must not send it: the clock of
// this process has to agree.
func (j *job) early() time.Duration {
	left := j.delivery.Message.NotBefore.Sub(j.to.d.now())
	if left < earlyBy {
		return 0
	}
	return min(left, earlyFor<<min(j.delivery.Claims-1, 8))
}

// untilCanceled is how long a delivery is postponed that was canceled while it was
// under way: the store ends it by then.
const untilCanceled = 15 * time.Second

// leaseMargin is what a lease must leave beyond the attempt, for writing back.
const leaseMargin = 2 * time.Second

// leaseLasts reports whether the lease leaves time for a whole attempt. Without
// that, another process may be sending the same delivery before this attempt
// ends: a lease fences rows and not the wire.
func (j *job) leaseLasts() bool {
	return time.Until(j.delivery.LeaseEnd) > j.to.endpoint().attemptTimeout()+leaseMargin
}

// attempt sends the message, has the engine decide what follows, and lets the receiver
// learn from it. The record of the attempt is written back with what follows: the retry
// with its wait, a decision that is postponed, or the end.
func (j *job) attempt() {
	r, dl := j.to, j.delivery
	d := r.d
	r.begin()
	a := r.send(d.sendCtx, j.ep, &dl.Message, j.call.Attempts+1, j.call.Timeout(d.now()))
	if !a.counts() {
		j.call.Release()
		r.learn(a)
		if a.unready != nil && d.sendCtx.Err() == nil {
			j.unready(a)
		} else {
			j.release(0) // the receiver may have seen it
		}
		return
	}
	j.made = a
	a.record.Claim, a.record.Due, a.record.Worker = dl.Claims, dl.Due, d.cfg.Owner
	now := d.now()
	if a.delivered() {
		j.call.Succeed(context.Background(), a.record.Took, now)
		d.stats.delivered.Add(1)
		r.learn(a)
		j.writeBack(store.Delivered, 0)
		return
	}
	d.stats.failed.Add(1)
	a.explain()
	if a.failure.Class == forbear.ClassUnauthorized {
		j.ep.cred.drop()
	}
	dec := j.call.Fail(context.Background(), a.failure, a.record.Took, now)
	a.final = isFinal(a, dec)
	r.learn(a)
	if !dec.Retry {
		j.refuse(dec, now)
		return
	}
	a.record.Wait = dec.Wait
	j.writeBack(store.Retried, dec.Wait)
}

// refuse ends the job without a retry: for the moment, which counts as no attempt,
// or permanently.
func (j *job) refuse(dec forbear.Decision, now time.Time) {
	if !dec.Reason.Momentary() {
		j.deadLetter(dec.Reason)
		return
	}
	after := j.call.Postpone(context.Background(), dec, now)
	if dec.Reason == reason.BreakerOpen {
		after = j.to.behindProbe()
	}
	j.to.d.stats.postponed.Add(1)
	j.writeBack(store.Postponed, after)
}

// unready ends an attempt that lacked its credential: nothing is sent without
// . The one that finds out is postponed, and any other given back as it
// was. Both stay due: the receiver waits, and may go on at any moment.
func (j *job) unready(a *attempt) {
	if !j.to.unready(a) {
		j.release(0)
		return
	}
	j.call.Postponed++
	j.to.d.stats.postponed.Add(1)
	j.writeBack(store.Postponed, 0)
}

// expire ends a delivery whose time is over: its failure is the latest one,
// or the deadline itself when it was never attempted.
func (j *job) expire() {
	if j.delivery.Canceled {
		j.release(untilCanceled)
		return
	}
	j.resume()
	_ = j.call.GiveUp(context.Background(), reason.Deadline, j.to.d.now())
	j.deadLetter(reason.Deadline)
}
