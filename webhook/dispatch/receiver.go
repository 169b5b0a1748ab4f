package dispatch

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/webhook"
)

// receiver is what this process knows of one endpoint, and the way of its deliveries from
// the store to it. There is one for each endpoint, for as long as that exists; a change of
// the configuration replaces [endpoint], which is immutable, and nothing else. One lock
// guards all of it.
//
// # What it knows
//
//   - Enabled or disabled (disable.go): the row of failures since the latest success.
//   - Four holds (hold.go). While one is on, single deliveries are sent as probes, spaced
//     out, until one finds the endpoint well:
//     credential (credential.go), a secret or a token is not to be had;
//     unresolved (unresolved.go), its name does not resolve;
//     rejecting (rejecting.go), it refuses everything;
//     down (down.go), its circuit breaker has opened.
//   - Its slots, its buffer and its share of the endpoint's rate (slots.go).
//
// The decision about a single delivery is not the receiver's but the engine's: a delivery
// is a [forbear.DurableCall] (job.go).
//
// # One event in, one verdict out
//
// learn takes an [attempt], when the engine has decided about it. Beside attempts there
// are the moves of the breaker (breakerMoved), which come from within the engine, and what
// other processes have found (heed).
//
// want says how many deliveries may be claimed now, or when to ask again; blocked, right
// before a send, whether anything has changed since the claim.
//
// # Who stores what
//
// Nothing is stored under the lock. What the other processes have to know, holds with
// their alerts, goes to the ledger (findings.go), as the counts of attempts do.
// That an endpoint is disabled, and when its failures began and ended, is a chore
// (chores.go). The outcome of a delivery is written back by its job (writeback.go).
//
// # Examples
//
//   - A 503: the row of failures begins, which is stored; the delivery is due again later.
//     After some of them the breaker opens: down is on, one alert, a probe after 5 s, 10 s,
//     20 s ... 10 minutes. After a day without a success the endpoint is disabled.
//   - A 410: disabled at once, with its alert; the delivery is a dead letter.
//   - A failed TLS handshake: the engine ends the delivery, since a certificate is not
//     better the next time. Such ends count a twentieth each: with twenty in a row rejecting
//     is on.
//   - A refused credential: a token that can be fetched anew is, and the delivery is sent
//     again. Without one no attempt is made: credential is on, and the delivery is
//     due at once. Other processes are not held, since they may have it.
//   - A slow endpoint: nothing is taken ahead of its slots, so that no lease runs out.
//   - A process that is cut off from the network: its own holds are on. The others read
//     them, send single messages, find the endpoint well and store that. Then every process
//     looks for itself: this one's holds stay.
type receiver struct {
	d  *Dispatcher
	id string
	ep atomic.Pointer[endpoint] // the configuration; never nil once it is served

	mu    sync.Mutex
	after []func() // what unlock does when the lock is released: see later
	state struct { // as the store has it, as far as is known
		is           webhook.EndpointState
		by           webhook.Party // who disabled it
		reason       string
		since        time.Time
		failingSince time.Time // of the wall clock
	}
	health
	slots
}

// health is what is known of a URL: another one is another receiver.
type health struct {
	holds    [kinds]hold
	failures int           // in a row, of attempts and lookups, those included that other processes have seen
	openFor  time.Duration // of the breaker, when down began
	good     time.Time     // the latest success, on the monotonic clock
	refusals int           // since the latest success, weighed
	// suspected says that another process has seen refusals, too.
	suspected bool
	looking   bool          // a lookup of the name is under way
	resolved  bool          // by the latest lookup
	latency   time.Duration // of attempts, smoothed
}

// endpoint returns the present configuration.
func (r *receiver) endpoint() *endpoint { return r.ep.Load() }

// later makes unlock call f, which may wait for something.
func (r *receiver) later(f func()) { r.after = append(r.after, f) }

// unlock releases the lock, and does what was left for later.
func (r *receiver) unlock() {
	after := r.after
	r.after = nil
	r.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// configure makes the receiver serve an endpoint as it is stored, and reports whether its
// configuration is another one now. What is known of the endpoint stays, unless its URL
// has changed: a change of a header must not make a dead one look well.
func (r *receiver) configure(stored *webhook.Endpoint) (changed bool, err error) {
	old := r.endpoint()
	if old != nil && sameConfiguration(old.stored, *stored) {
		r.adopt(stored)
		return false, nil
	}
	ep, err := r.newEndpoint(*stored, old)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case old == nil:
	case old.conf.URL != ep.conf.URL:
		r.health = health{holds: [kinds]hold{credential: r.holds[credential]}}
	case old.retryer != ep.retryer:
		r.holds[down] = hold{}
	}
	r.state.is, r.state.by, r.state.reason, r.state.since, r.state.failingSince = stored.State, stored.DisabledBy, stored.Reason, stored.Since, stored.FailingSince
	r.lookAgain()
	r.ep.Store(ep)
	return true, nil
}

// sameConfiguration reports whether two endpoints have the same configuration, and their
// applications. Versions alone do not tell: a store that was brought back from a backup
// gives the same ones again.
func sameConfiguration(a, b webhook.Endpoint) bool {
	for _, e := range []*webhook.Endpoint{&a, &b} {
		e.State, e.DisabledBy, e.Reason, e.Since, e.FailingSince, e.Held = "", "", "", time.Time{}, time.Time{}, ""
	}
	return reflect.DeepEqual(a, b)
}

// adopt takes over the state that the store has for the same configuration. Enabling
// forgets the failures, or the next one would disable the endpoint again. FailingSince is
// not taken over while the state stays: this process knows better what it has sent.
func (r *receiver) adopt(stored *webhook.Endpoint) {
	r.mu.Lock()
	defer r.unlock()
	if r.state.is == stored.State && r.state.by == stored.DisabledBy {
		return
	}
	r.state.is, r.state.by, r.state.reason, r.state.since = stored.State, stored.DisabledBy, stored.Reason, stored.Since
	if stored.State == webhook.Enabled {
		r.failures, r.state.failingSince = 0, time.Time{}
		r.dueAtLocked(time.Now())
		r.lookAgain()
		r.later(func() { r.endpoint().closeBreaker(r.d.now()) })
	}
}

// config returns a copy of the configuration with the state of this moment.
func (r *receiver) config() webhook.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	conf := r.endpoint().conf
	conf.State, conf.Reason, conf.Since, conf.FailingSince = r.state.is, r.state.reason, r.state.since, r.state.failingSince
	return conf
}

// enabled reports whether the endpoint is served.
func (r *receiver) enabled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.enabledLocked()
}

func (r *receiver) enabledLocked() bool {
	return r.state.is == webhook.Enabled && r.endpoint().conf.Tenant.CheckSuspended() == nil
}

// retire keeps what was claimed and not sent yet from being sent: the endpoint is deleted.
func (r *receiver) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.is = webhook.Disabled
}

// blocked reports whether nothing may be sent at the given time: a hold has begun, or the
// endpoint was disabled or its application suspended, since the claim.
func (r *receiver) blocked(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range down { // the breaker is asked by the engine
		if r.holds[k].waits(now) {
			return true
		}
	}
	return !r.enabledLocked()
}

// may returns how many of n deliveries may be claimed by what is known of the endpoint, and
// otherwise when to ask again; zero: when something happens.
func (r *receiver) may(now time.Time, n int) (int, time.Time) {
	for k := range down {
		switch h := &r.holds[k]; {
		case !h.on:
			continue
		case h.waits(now):
			return 0, h.until
		case r.busy():
			return 0, time.Time{} // its end asks again
		case k == unresolved && !r.resolved:
			r.lookUp()
			return 0, time.Time{} // likewise
		}
		n = min(n, 1)
	}
	return r.mayByBreaker(now, n)
}

// learn learns from an attempt, about which the engine has decided.
func (r *receiver) learn(a *attempt) {
	r.mu.Lock()
	defer r.unlock()
	r.sending--
	if !a.counts() {
		return
	}
	if r.latency == 0 {
		r.latency = a.record.Took
	} else {
		r.latency += (a.record.Took - r.latency) / 8
	}
	r.d.ledger.count(r.id, &a.record)
	if a.delivered() && !r.restrained.IsZero() { // it may have earned the retries
		r.restrained = time.Time{}
		r.d.agenda.ask(r.id)
	}
	if r.judge(a, a.record.At.Add(a.record.Took)) {
		r.judgeRefusal(a)
	}
}

// judge learns how the endpoint does from an attempt or a lookup that ended at a time of
// the wall clock. It reports false when that was of another URL, of which it says nothing.
// The caller holds mu.
func (r *receiver) judge(a *attempt, at time.Time) bool {
	if a.ep.conf.URL != r.endpoint().conf.URL {
		return false
	}
	r.countInRow(a, at)
	r.judgeName(a)
	return true
}

// breaker returns where the endpoint's circuit breaker stands: closed, when its policy has
// none.
func (r *receiver) breaker() breaker.State { return r.endpoint().breaker() }
