package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook/store"
)

// job is one claimed delivery at work on its lane, until it is written back. It
// carries the delivery through one attempt, or through a decision that was put
// off, and belongs to one goroutine. Its delivery is written back exactly once:
// every way through process ends in writeBack or deadLetter.
//
// What an attempt comes to passes three hands: the response, the decision about
// it, and the outcome that the store is given. The decisions are the engine's: a
// delivery is a durable call.
type job struct {
	lane     *lane
	delivery *store.Delivery
	call     *forbear.DurableCall // nil before resume
	made     *deadletter.Attempt  // the record of the attempt; nil while there is none
	cause    deadletter.Cause     // why it failed
}

// resume goes on with the delivery's call, with what the engine has to know of the
// message beside what was stored.
func (j *job) resume() {
	dl := j.delivery
	p := dl.Progress
	p.State.Start, p.State.NeedsKey, p.State.Key = j.start(), true, dl.Message.SentKey()
	p.State.Refreshable = j.lane.ep.cred.refreshable()
	ctx := forbear.WithCorrelationID(context.Background(), dl.Message.CorrelationID)
	j.call = j.lane.retryer.Durable(ctx, p)
}

// process does the job. Right before a send it looks at everything that may have
// changed since the claim: the stop, the lease, the endpoint, the 24 hours.
func (j *job) process() {
	l := j.lane
	if j.delivery.Canceled {
		j.release(untilCanceled)
		return
	}
	if left := j.early(); left > 0 {
		j.release(left)
		return
	}
	if l.d.stopping() || !j.leaseLasts() || l.ep.waits(time.Now()) || !l.ep.enabled() {
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
	if made.Sub(start) > earlyBy && !made.After(j.lane.d.now()) {
		return made
	}
	return start
}

// early returns for how long a message is put off that is scheduled for later. The store
// found it due, but a clock that jumps ahead for a moment must not send it: the clock of
// this process has to agree.
func (j *job) early() time.Duration {
	left := j.delivery.Message.NotBefore.Sub(j.lane.d.now())
	if left < earlyBy {
		return 0
	}
	return min(left, earlyFor<<min(j.delivery.Claims-1, 8))
}

// untilCanceled is how long a delivery is put off that was canceled while it was
// under way: the store ends it by then.
const untilCanceled = 15 * time.Second

// leaseMargin is what a lease must leave beyond the attempt, for writing back.
const leaseMargin = 2 * time.Second

// leaseLasts reports whether the lease leaves time for a whole attempt. Without
// that, another process may be sending the same delivery before this attempt
// ends: a lease fences rows and not the wire.
func (j *job) leaseLasts() bool {
	return time.Until(j.delivery.LeaseEnd) > j.lane.attemptTimeout()+leaseMargin
}

// attempt sends the message and concludes what follows.
func (j *job) attempt() {
	l, dl := j.lane, j.delivery
	d, number := l.d, j.call.Attempts+1
	// The wall clock for what is stored, the monotonic one for what is measured: an
	// attempt does not become slow by a clock that is set.
	began, mono := d.now(), time.Now()
	l.begin()
	r := l.ep.send(d.sendCtx, &dl.Message, number, j.call.Timeout(began))
	took := time.Since(mono)
	r.look = mono
	l.end(&r, took)
	if !r.counts() {
		j.call.Release()
		if r.unready != nil && d.sendCtx.Err() == nil {
			j.unready(&r)
		} else {
			j.release(0) // the receiver may have seen it
		}
		return
	}
	d.tallies.add(dl.Endpoint, began, r.status, took)
	l.ep.record(&r, began.Add(took))
	j.made = &deadletter.Attempt{
		Number: number, Claim: dl.Claims, Due: dl.Due, At: began, Took: took,
		ErrorType: r.failure.Type, Status: r.status, Worker: d.cfg.Owner, Response: r.body,
	}
	l.ep.named(&r)
	l.pacing.ended(r.delivered())
	if r.delivered() {
		l.ep.accepted(mono)
		j.call.Succeed(context.Background(), took, d.now())
		d.stats.delivered.Add(1)
		j.writeBack(store.Delivered, 0)
		return
	}
	j.conclude(&r, took)
}

// conclude decides what follows a failed attempt: the retry with its wait, a
// decision that is put off, or the end. The record of the attempt is written back
// with each of them.
func (j *job) conclude(r *response, took time.Duration) {
	d, now := j.lane.d, j.lane.d.now()
	d.stats.failed.Add(1)
	if r.failure.Class == forbear.ClassUnauthorized {
		j.lane.ep.cred.drop()
	}
	j.cause = deadletter.CauseOf(r.failure)
	failed := j.cause.Failed()
	j.made.Class, j.made.Error, j.made.Chain = failed.Class, failed.Error, failed.Chain
	dec := j.call.Fail(context.Background(), r.failure, took, now)
	j.lane.ep.refused(r, dec)
	if !dec.Retry {
		j.refuse(dec, now)
		return
	}
	j.made.Wait = dec.Wait
	j.writeBack(store.Retried, dec.Wait)
}

// refuse ends the job without a retry: for the moment, which counts as no attempt,
// or for good.
func (j *job) refuse(dec forbear.Decision, now time.Time) {
	if !dec.Reason.Momentary() {
		j.deadLetter(dec.Reason)
		return
	}
	after := j.call.Postpone(context.Background(), dec, now)
	if dec.Reason == forbear.ReasonBreakerOpen {
		after = j.lane.pacing.refused() // behind the lane's next probe
	}
	j.lane.d.stats.postponed.Add(1)
	j.writeBack(store.Postponed, after)
}

// expire ends a delivery whose time is over: its failure is the latest one,
// or the deadline itself when it was never attempted.
func (j *job) expire() {
	if j.delivery.Canceled {
		j.release(untilCanceled)
		return
	}
	j.resume()
	_ = j.call.GiveUp(context.Background(), forbear.ReasonDeadline, j.lane.d.now())
	j.deadLetter(forbear.ReasonDeadline)
}
