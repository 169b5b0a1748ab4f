package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
)

// job is one claimed delivery at work on its lane, until it is written back. It
// carries the delivery through one attempt, or through a decision that was put
// off, and belongs to one goroutine. Its delivery is written back exactly once:
// every way through process ends in writeBack or deadLetter.
//
// What an attempt comes to passes three hands: the response, the decision about
// it, and the outcome that the store is given. Every question to the endpoint's
// Retryer is asked here.
type job struct {
	lane     *lane
	delivery *webhook.Delivery
	made     *webhook.Attempt // the record of the attempt; nil while there is none
}

// process does the job. Right before a send it looks at everything that may have
// changed since the claim: the stop, the lease, the endpoint, the 24 hours.
func (j *job) process() {
	l, st := j.lane, &j.delivery.Progress.State
	if l.d.stopping() || !j.leaseLasts() || l.ep.hold.waits(time.Now()) || !l.ep.enabled() {
		j.release(0)
		return
	}
	now := l.d.now()
	if now.Sub(j.delivery.Start) >= l.retryer.Policy().Total {
		j.expire()
		return
	}
	if why := l.retryer.Admit(st, now); why != forbear.ReasonNone {
		j.refuse(forbear.Decision{Reason: why}, forbear.Failure{Type: why.String()})
		return
	}
	if j.delivery.Progress.Pending != nil && !j.reconsider(now) {
		l.retryer.Withdraw(st)
		return
	}
	j.attempt()
}

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
	d, st := l.d, &dl.Progress.State
	number := max(st.Attempt, 1)
	if number == 1 {
		l.retryer.Requested(d.now()) // first attempts are what the budget's ratio counts
	}
	// The wall clock for what is stored, the monotonic one for what is measured: an
	// attempt does not become slow by a clock that is set.
	began, mono := d.now(), time.Now()
	l.begin()
	r := l.ep.send(d.sendCtx, &dl.Message, number, j.timeout())
	took := time.Since(mono)
	l.end(&r, took)
	if !r.counts() {
		l.retryer.Withdraw(st)
		if r.unready != nil && d.sendCtx.Err() == nil {
			j.unready(&r)
		} else {
			j.release(0) // the receiver may have seen it
		}
		return
	}
	i := j.info(number)
	l.retryer.Attempted(context.Background(), i, r.failure, took)
	l.ep.record(&r, began.Add(took))
	j.made = &webhook.Attempt{
		Number: number, Claim: dl.Claims, Due: dl.Due, At: began, Took: took,
		ErrorType: r.failure.Type, Status: r.status, Worker: d.cfg.Owner, Response: r.body,
	}
	dl.Progress.Attempts = number
	if r.delivered() {
		l.retryer.Succeeded(st, took, d.now())
		l.retryer.Done(context.Background(), i, d.now().Sub(dl.Start), dl.Progress.Last)
		d.stats.delivered.Add(1)
		j.writeBack(webhook.Delivered, 0)
		return
	}
	j.conclude(&r)
}

// timeout returns how long the attempt may take: half the usual time for a probe
// of an endpoint that was down.
func (j *job) timeout() time.Duration {
	limit := j.lane.attemptTimeout()
	if j.delivery.Progress.State.Probe() {
		return limit / 2
	}
	return limit
}

// conclude decides what follows a failed attempt: the retry with its wait, a
// decision that is put off, or the end. The record of the attempt is written back
// with each of them.
func (j *job) conclude(r *response) {
	l, p := j.lane, &j.delivery.Progress
	now := l.d.now()
	l.d.stats.failed.Add(1)
	if r.failure.Class == forbear.ClassUnauthorized {
		l.ep.cred.drop()
	}
	p.Last = r.failure.Type
	dec := j.ask(l.retryer.Next, r.failure, now)
	if !dec.Retry {
		p.Pending = r.pending(now)
		j.refuse(dec, r.failure)
		return
	}
	j.made.Wait = dec.Wait
	j.observe(dec, r.failure, j.made.Number)
	j.writeBack(webhook.Retried, dec.Wait)
}

// reconsider asks again about the pending failure. It reports whether the
// attempt may be made now; otherwise the job is over.
func (j *job) reconsider(now time.Time) bool {
	p := j.delivery.Progress.Pending
	f := forbear.Failure{Class: p.Class, Type: p.Type}
	f.Hint.Floor = max(p.Until.Sub(now), 0)
	dec, now := j.askPatiently(f, now)
	if !dec.Retry {
		j.refuse(dec, f)
		return false
	}
	dec.Wait = left(p, dec.Wait, now)
	j.delivery.Progress.Pending = nil
	j.observe(dec, f, j.delivery.Progress.Attempts)
	if dec.Wait > 0 {
		j.release(dec.Wait)
	}
	return dec.Wait == 0
}

// askAgain asks about a failure that was put off. It is not counted once more.
func (j *job) askAgain(f forbear.Failure, now time.Time) forbear.Decision {
	return j.ask(j.lane.retryer.Reconsider, f, now)
}

// ask puts the question of what follows a failure, with the facts around it:
// every message has a key to be repeated under, and a token that was refused
// can be replaced where it was fetched.
func (j *job) ask(question func(*forbear.State, forbear.Failure, time.Time) forbear.Decision, f forbear.Failure, now time.Time) forbear.Decision {
	st := &j.delivery.Progress.State
	st.Start, st.NeedsKey, st.Key = j.delivery.Start, true, j.delivery.Message.SentKey()
	st.Refreshable = j.lane.ep.cred.refreshable()
	dec := question(st, f, now)
	st.Key = "" // a fact of the moment, not to be persisted
	return dec
}

// refuse ends the job when failure f is not retried: for the moment, which
// counts as no attempt, or for good.
func (j *job) refuse(dec forbear.Decision, f forbear.Failure) {
	if dec.Reason.Momentary() {
		j.observe(dec, f, 0)
		j.putOff(dec.Reason)
		return
	}
	j.observe(dec, f, j.delivery.Progress.Attempts)
	j.deadLetter(dec.Reason)
}

// putOff postpones the decision: until the breaker lets an attempt through, or
// for a time that doubles while the budget stays spent. The pending failure keeps
// the count of refusals, so that a new failure begins anew.
func (j *job) putOff(why forbear.Reason) {
	l, p := j.lane, &j.delivery.Progress
	p.Postponed++
	l.d.stats.postponed.Add(1)
	if why == forbear.ReasonBreakerOpen {
		j.writeBack(webhook.Postponed, l.pacing.refused())
		return
	}
	after := l.retryer.PutOff(why, p.Pending.Refused, l.d.now())
	p.Pending.Refused++
	j.writeBack(webhook.Postponed, after)
}

// expire ends a delivery whose time is over: its failure is the latest one,
// or the deadline itself when it was never attempted.
func (j *job) expire() {
	f := forbear.Failure{Type: forbear.ReasonDeadline.String()}
	if p := j.delivery.Progress.Pending; p != nil {
		f = forbear.Failure{Class: p.Class, Type: p.Type}
	}
	j.refuse(forbear.Decision{Reason: forbear.ReasonDeadline}, f)
}

// info says which delivery an event belongs to: all of its attempts have one
// correlation id and one key, in whichever process they are made.
func (j *job) info(attempt int) forbear.Info {
	m := &j.delivery.Message
	i := j.lane.retryer.Info(&j.delivery.Progress.State, m.CorrelationID)
	i.IdempotencyKey, i.Attempt = m.SentKey(), attempt
	return i
}

// observe hands the observers what follows a failure, with R-10's fields. made
// is the number of attempts; 0 for a retry that is put off.
func (j *job) observe(dec forbear.Decision, f forbear.Failure, made int) {
	number := max(j.delivery.Progress.State.Attempt, 1)
	if dec.Retry {
		number-- // the state is the next attempt's already
	}
	now := j.lane.d.now()
	j.lane.retryer.Decided(context.Background(), j.info(number), dec, f, now.Sub(j.delivery.Start), made, now)
}

// left returns what is left of a wait that counts from the pending failure. The
// server's own wait is never shortened; a clock that was set back ends
// the rest.
func left(p *webhook.Pending, wait time.Duration, now time.Time) time.Duration {
	rest := p.At.Add(wait).Sub(now)
	if p.At.After(now) {
		rest = 0
	}
	if !p.Until.IsZero() {
		rest = max(rest, p.Until.Sub(now))
	}
	return max(rest, 0)
}
