package dispatch

import (
	"context"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/webhook"
)

// process takes one delivery through one attempt, or through the decision that
// was put off, and hands the outcome to the finishers.
func (d *Dispatcher) process(l *lane, dl *webhook.Delivery) {
	if d.stopping() || !l.enough(dl) || l.hold.waits(time.Now()) || !l.enabled() {
		d.finish(release(dl, 0))
		return
	}
	now := d.now()
	policy := l.retryer.Policy()
	if now.Sub(dl.Start) >= policy.Total {
		d.finish(d.expire(l, dl))
		return
	}
	if why := l.retryer.Admit(&dl.Progress.State, now); why != forbear.ReasonNone {
		d.tell(l, dl, forbear.Decision{Reason: why}, forbear.Failure{Type: why.String()}, 0)
		d.finish(d.postpone(l, dl, dl.Progress.Pending, why))
		return
	}
	if dl.Progress.Pending != nil && !d.reconsider(l, dl, now) {
		l.retryer.Withdraw(&dl.Progress.State)
		return
	}
	d.attempt(l, dl)
}

func release(dl *webhook.Delivery, after time.Duration) webhook.Outcome {
	o := outcome(dl, webhook.Released)
	o.After = after
	return o
}

// outcome begins the outcome of a delivery.
func outcome(dl *webhook.Delivery, k webhook.OutcomeKind) webhook.Outcome {
	return webhook.Outcome{ID: dl.ID, Fence: dl.Fence, Endpoint: dl.Endpoint, OrderKey: dl.OrderKey, Kind: k, Progress: dl.Progress}
}

// reconsider asks again about a failure whose decision was put off. It reports
// whether the attempt may be made now.
func (d *Dispatcher) reconsider(l *lane, dl *webhook.Delivery, now time.Time) bool {
	p := dl.Progress.Pending
	f := forbear.Failure{Class: p.Class, Type: p.Type}
	if p.Until.After(now) {
		f.Hint.Floor = p.Until.Sub(now)
	}
	dec, now := d.askPatiently(l, dl, f, now)
	switch {
	case dec.Reason.Momentary():
		d.tell(l, dl, dec, f, 0)
		d.finish(d.postpone(l, dl, p, dec.Reason))
		return false
	case !dec.Retry:
		d.tell(l, dl, dec, f, dl.Progress.Attempts)
		d.finish(d.bury(l, dl, dec.Reason, p))
		return false
	}
	wait := left(p, dec.Wait, now)
	dl.Progress.Pending = nil
	dec.Wait = wait
	d.tell(l, dl, dec, f, dl.Progress.Attempts)
	if wait > 0 {
		d.finish(release(dl, wait))
	}
	return wait == 0
}

// ask puts the question of what follows a failure, with the facts around it.
func (d *Dispatcher) ask(l *lane, dl *webhook.Delivery, question func(*forbear.State, forbear.Failure, time.Time) forbear.Decision, f forbear.Failure, now time.Time) forbear.Decision {
	st := &dl.Progress.State
	st.Start, st.NeedsKey, st.Key = dl.Start, true, dl.Message.SentKey()
	st.Refreshable = l.cred.refreshable()
	dec := question(st, f, now)
	st.Key = "" // a fact of the moment, not to be persisted
	return dec
}

// attempt makes one attempt and decides what follows.
func (d *Dispatcher) attempt(l *lane, dl *webhook.Delivery) {
	st := &dl.Progress.State
	number := max(st.Attempt, 1)
	if number == 1 {
		l.retryer.Requested(d.now())
	}
	began, mono := d.now(), time.Now()
	l.begin()
	res := l.send(d.sendCtx, &dl.Message, number, l.timeout(st))
	l.end(res.failure.Class == forbear.ClassSuccess)
	took := time.Since(mono)
	switch {
	case res.unready != nil && d.sendCtx.Err() == nil:
		l.retryer.Withdraw(st)
		d.unready(l, dl, &res)
		return
	case res.unready != nil, res.failure.Class == forbear.ClassCanceled:
		l.retryer.Withdraw(st)
		d.finish(release(dl, 0)) // we are being stopped; the receiver may have seen it
		return
	}
	i := d.info(l, dl, number)
	l.retryer.Attempted(context.Background(), i, res.failure, took)
	d.noted(l, l.note(began.Add(took), took, &res))
	rec := &webhook.Attempt{
		Number: number, Claim: dl.Claims, Due: dl.Due, At: began, Took: took,
		ErrorType: res.failure.Type, Status: res.status, Worker: d.cfg.Owner, Response: res.response,
	}
	dl.Progress.Attempts = number
	if res.failure.Class == forbear.ClassSuccess {
		l.retryer.Succeeded(st, took, d.now())
		l.retryer.Done(context.Background(), i, d.now().Sub(dl.Start), dl.Progress.Last)
		o := outcome(dl, webhook.Delivered)
		o.Attempt = rec
		d.stats.delivered.Add(1)
		d.finish(o)
		return
	}
	d.conclude(l, dl, &res, rec)
}

// conclude decides what follows a failed attempt.
func (d *Dispatcher) conclude(l *lane, dl *webhook.Delivery, res *result, rec *webhook.Attempt) {
	now := d.now()
	d.stats.failed.Add(1)
	if res.failure.Class == forbear.ClassUnauthorized {
		l.cred.drop()
	}
	p := &webhook.Pending{Class: res.failure.Class, Type: res.failure.Type, Status: res.status, At: now}
	if res.failure.Hint.Floor > 0 {
		p.Until = now.Add(res.failure.Hint.Floor)
	}
	dl.Progress.Last = res.failure.Type
	var o webhook.Outcome
	dec := d.ask(l, dl, l.retryer.Next, res.failure, now)
	made := rec.Number
	switch {
	case dec.Retry:
		o = outcome(dl, webhook.Retried)
		o.After = dec.Wait
		rec.Wait = dec.Wait
	case dec.Reason.Momentary():
		made = 0
		o = d.postpone(l, dl, p, dec.Reason)
	default:
		o = d.bury(l, dl, dec.Reason, p)
	}
	o.Attempt = rec
	d.tell(l, dl, dec, res.failure, made)
	d.finish(o)
}

// postpone puts the decision off: until the breaker lets an attempt through, or
// for a time that doubles while the budget stays spent.
func (d *Dispatcher) postpone(l *lane, dl *webhook.Delivery, p *webhook.Pending, why forbear.Reason) webhook.Outcome {
	dl.Progress.Pending = p
	dl.Progress.Postponed++
	o := outcome(dl, webhook.Postponed)
	if why == forbear.ReasonBreakerOpen {
		o.After = l.pacing.refused()
	} else {
		o.After = l.retryer.PutOff(why, p.Refused, d.now())
		p.Refused++
	}
	d.stats.postponed.Add(1)
	return o
}

// expire ends a delivery whose time is over.
func (d *Dispatcher) expire(l *lane, dl *webhook.Delivery) webhook.Outcome {
	p, f := dl.Progress.Pending, forbear.Failure{Type: forbear.ReasonDeadline.String()}
	if p != nil {
		f = forbear.Failure{Class: p.Class, Type: p.Type}
	}
	d.tell(l, dl, forbear.Decision{Reason: forbear.ReasonDeadline}, f, dl.Progress.Attempts)
	return d.bury(l, dl, forbear.ReasonDeadline, p)
}

// bury makes the dead letter of a delivery.
func (d *Dispatcher) bury(l *lane, dl *webhook.Delivery, why forbear.Reason, p *webhook.Pending) webhook.Outcome {
	dl.Progress.Pending = p
	ep := l.endpoint()
	o := outcome(dl, webhook.Dead)
	o.Dead, o.Why = dl.DeadLetter(&ep, why, l.retryer.Policy().MaxAttempts, d.now()), why
	d.stats.dead.Add(1)
	return o
}

// info says which delivery an event belongs to.
func (d *Dispatcher) info(l *lane, dl *webhook.Delivery, attempt int) forbear.Info {
	i := l.retryer.Info(&dl.Progress.State, dl.Message.CorrelationID)
	i.IdempotencyKey, i.Attempt = dl.Message.SentKey(), attempt
	return i
}

// tell tells the observers what follows a failure, with R-10's fields. made is
// the number of attempts; 0 for a retry that is put off.
func (d *Dispatcher) tell(l *lane, dl *webhook.Delivery, dec forbear.Decision, f forbear.Failure, made int) {
	number := max(dl.Progress.State.Attempt, 1)
	if dec.Retry {
		number-- // the state is the next attempt's already
	}
	now := d.now()
	l.retryer.Decided(context.Background(), d.info(l, dl, number), dec, f, now.Sub(dl.Start), made, now)
}

// left returns what is left of a wait that counts from the failure. The
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
