package webhook

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter"
)

// process takes one delivery through one attempt, or through the decision that
// was put off, and hands the outcome to the finishers.
func (d *Dispatcher) process(l *lane, dl *Delivery) {
	if d.stopping() || !l.enough(dl) {
		l.returned()
		d.finish(release(dl, 0))
		return
	}
	now := d.now()
	policy := l.retryer.Policy()
	if now.Sub(dl.Start) >= policy.Total {
		l.returned()
		d.finish(d.bury(l, dl, forbear.ReasonDeadline.String(), dl.Progress.Pending, nil))
		return
	}
	if p := dl.Progress.Pending; p != nil && !d.reconsider(l, dl, now) {
		return
	}
	d.attempt(l, dl)
}

func (l *lane) returned() {
	l.mu.Lock()
	l.breaker.returned()
	l.mu.Unlock()
}

func release(dl *Delivery, after time.Duration) Outcome {
	o := outcome(dl, Released)
	o.After = after
	return o
}

// outcome begins the outcome of a delivery.
func outcome(dl *Delivery, k OutcomeKind) Outcome {
	return Outcome{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Letter: dl.Letter, Kind: k, Progress: dl.Progress}
}

// reconsider asks again about a failure whose decision was put off. It reports
// whether the attempt may be made now.
func (d *Dispatcher) reconsider(l *lane, dl *Delivery, now time.Time) bool {
	p := dl.Progress.Pending
	f := forbear.Failure{Class: p.Class, Type: p.Type}
	if p.Until.After(now) {
		f.Hint.Floor = p.Until.Sub(now)
	}
	dec := d.next(l, dl, f, now)
	switch {
	case postponed(dec.Reason):
		l.returned()
		d.finish(d.postpone(l, dl, p, dec.Reason))
	case !dec.Retry:
		l.returned()
		d.finish(d.bury(l, dl, dec.Reason.String(), p, nil))
	default:
		dl.Progress.Pending = nil
		// The wait counts from the failure: part of it has passed.
		if wait := p.At.Add(dec.Wait).Sub(now); wait > 0 && !p.At.After(now) {
			l.returned()
			o := outcome(dl, Released)
			o.After = wait
			d.finish(o)
			return false
		}
		return true
	}
	return false
}

// next asks the one decision.
func (d *Dispatcher) next(l *lane, dl *Delivery, f forbear.Failure, now time.Time) forbear.Decision {
	st := &dl.Progress.State
	st.Start, st.NeedsKey, st.Key = dl.Start, true, dl.Message.key()
	st.Refreshable = l.cred.refreshable()
	st.Breaker = l.breakerState()
	dec := l.retryer.Next(st, f, now)
	st.Key, st.Breaker = "", forbear.BreakerClosed // facts of the moment, not to be persisted
	return dec
}

// postponed reports whether a refusal puts the attempt off without consuming
// it.
func postponed(r forbear.Reason) bool {
	return r == forbear.ReasonBudget || r == forbear.ReasonBreakerOpen || r == forbear.ReasonUnhealthy
}

// attempt makes one attempt and decides what follows.
func (d *Dispatcher) attempt(l *lane, dl *Delivery) {
	number := max(dl.Progress.State.Attempt, 1)
	if number == 1 {
		l.budget.Request(d.now())
	}
	began, mono := d.now(), time.Now()
	res := l.send(d.sendCtx, &dl.Message, number)
	took := time.Since(mono)
	switch {
	case res.unready != nil:
		l.returned()
		d.unready(l, dl, res.unready)
		return
	case res.failure.Class == forbear.ClassCanceled:
		l.returned()
		d.finish(release(dl, 0)) // we are being stopped; the receiver may have seen it
		return
	}
	d.noted(l, l.note(began.Add(took), took, &res))
	rec := &Attempt{
		Number: number, Claim: dl.Claims, Due: dl.Due, At: began, Took: took,
		ErrorType: res.failure.Type, Status: res.status, Worker: d.cfg.Owner, Response: res.response,
	}
	dl.Progress.Attempts = number
	if res.failure.Class == forbear.ClassSuccess {
		l.budget.succeeded()
		o := outcome(dl, Delivered)
		o.Attempt = rec
		d.stats.delivered.Add(1)
		d.finish(o)
		return
	}
	d.conclude(l, dl, &res, rec)
}

// conclude decides what follows a failed attempt.
func (d *Dispatcher) conclude(l *lane, dl *Delivery, res *result, rec *Attempt) {
	now := d.now()
	l.budget.failed()
	d.stats.failed.Add(1)
	if res.failure.Class == forbear.ClassUnauthorized {
		l.cred.drop()
	}
	p := &Pending{Class: res.failure.Class, Type: res.failure.Type, Status: res.status, At: now}
	if res.failure.Hint.Floor > 0 {
		p.Until = now.Add(res.failure.Hint.Floor)
	}
	var o Outcome
	dec := d.next(l, dl, res.failure, now)
	switch {
	case dec.Retry:
		o = outcome(dl, Retried)
		o.After = dec.Wait
		rec.Wait = dec.Wait
	case postponed(dec.Reason):
		o = d.postpone(l, dl, p, dec.Reason)
	case res.gone:
		o = d.bury(l, dl, deadletter.ReasonGone, p, rec)
	default:
		o = d.bury(l, dl, dec.Reason.String(), p, rec)
	}
	o.Attempt = rec
	d.logDecision(l, dl, dec, res, rec)
	d.finish(o)
}

// postpone puts the decision off: until the breaker lets an attempt through, or
// for a time that doubles while the budget stays spent.
func (d *Dispatcher) postpone(l *lane, dl *Delivery, p *Pending, why forbear.Reason) Outcome {
	dl.Progress.Pending = p
	dl.Progress.Postponed++
	o := outcome(dl, Postponed)
	wait := min(10*time.Second<<min(dl.Progress.Postponed-1, 6), 10*time.Minute)
	if why == forbear.ReasonBreakerOpen {
		l.mu.Lock()
		wait = max(l.breaker.until.Sub(d.now()), time.Second)
		l.mu.Unlock()
		o.After = wait + rand.N(wait/4+1)
	} else {
		o.After = wait/2 + rand.N(wait/2)
	}
	d.stats.postponed.Add(1)
	return o
}

// unready postpones an attempt that lacks its credential. Nothing is sent
// without; somebody is told.
func (d *Dispatcher) unready(l *lane, dl *Delivery, err error) {
	d.raise(deadletter.Alert{Queue: Queue, Reason: "credential", Detail: "endpoint " + dl.Endpoint + ": " + clip(err.Error(), 256)})
	dl.Progress.Postponed++
	o := outcome(dl, Postponed)
	wait := min(5*time.Second<<min(dl.Progress.Postponed-1, 7), 10*time.Minute)
	o.After = wait/2 + rand.N(wait/2)
	d.stats.postponed.Add(1)
	d.finish(o)
}

// bury makes the dead letter of a delivery.
func (d *Dispatcher) bury(l *lane, dl *Delivery, reason string, p *Pending, rec *Attempt) Outcome {
	m, policy, ep := &dl.Message, l.retryer.Policy(), l.endpoint()
	letter := &deadletter.Letter{
		ID: NewID("dlq"), Queue: Queue, Destination: dl.Endpoint,
		EventID: m.ID, Source: m.Source, Type: m.Type, Subject: m.Subject, PartitionKey: m.Key,
		IdempotencyKey: m.key(), CorrelationID: m.CorrelationID,
		Payload: m.Body, ContentType: m.ContentType, Headers: m.Headers,
		Policy: ep.Policy, PolicyVersion: policyVersion(&ep),
		Reason: reason, Attempts: dl.Progress.Attempts, MaxAttempts: policy.MaxAttempts, Postponed: dl.Progress.Postponed,
		EnqueuedAt: m.Created, DeadAt: d.now(), State: deadletter.Dead,
	}
	if p != nil {
		letter.ErrorType, letter.Status = p.Type, p.Status
	}
	letter.Description = describe(letter, rec)
	o := outcome(dl, Dead)
	o.Dead = letter
	d.stats.dead.Add(1)
	return o
}

// logDecision writes R-10's fields.
func (d *Dispatcher) logDecision(l *lane, dl *Delivery, dec forbear.Decision, res *result, rec *Attempt) {
	policy := l.retryer.Policy()
	info := forbear.Info{
		Dependency: l.retryer.Dependency(), CorrelationID: dl.Message.CorrelationID, IdempotencyKey: dl.Message.key(),
		Attempt: rec.Number, MaxAttempts: policy.MaxAttempts,
	}
	log := forbear.LogObserver{Logger: d.log}
	if dec.Retry {
		info.Attempt++
		log.RetryScheduled(context.Background(), forbear.RetryScheduled{Info: info, Backoff: dec.Wait, Reason: dec.Reason, Failure: res.failure})
		return
	}
	log.Stopped(context.Background(), forbear.Stopped{Info: info, Reason: dec.Reason, Failure: res.failure, Elapsed: d.now().Sub(dl.Start)})
}
