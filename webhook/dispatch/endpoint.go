package dispatch

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

const (
	defaultSlots   = 10             // in flight, of one endpoint
	defaultDisable = 24 * time.Hour // of failures
	// An endpoint with little traffic is not disabled for the odd failure in a
	// day: that many in a row are needed, too.
	leastFailures = 10
)

// endpoint is the receiver that a lane sends to: its configuration, what each
// attempt needs in its name, and how it fares. Another configuration makes
// another endpoint, so that it is read without a lock; the state alone changes.
type endpoint struct {
	d     *Dispatcher
	plain *http.Request // what is the same in all requests
	hold  *hold         // for a credential
	cred  *credential
	names *names
	// rejects is the hold for a response that accepts: see refused.
	rejects *hold
	tls     *endpointTLS // nil: the dispatcher's transport
	shared  bool         // the secrets are the application's

	mu     sync.Mutex
	conf   webhook.Endpoint // mu guards State, Reason, Since and FailingSince
	signer *webhook.Signer  // nil while references have to be looked up
	// signerUntil is when the first of its old secrets ends; zero: it has none.
	signerUntil time.Time
	failures    int // in a row
	refusals    int // since the latest success, weighed
	// suspected says that another process has seen refusals, too.
	suspected bool
	good      time.Time // the latest success, on the monotonic clock
}

// newEndpoint returns the endpoint of a configuration, without a credential.
func (d *Dispatcher) newEndpoint(conf webhook.Endpoint) (*endpoint, error) {
	plain, err := http.NewRequestWithContext(context.Background(), http.MethodPost, conf.URL, nil)
	if err != nil {
		return nil, bare(err)
	}
	e := &endpoint{
		d: d, plain: plain, conf: conf,
		hold:    &hold{kind: HoldCredential, first: firstLook, last: lastLook},
		rejects: &hold{kind: HoldRejecting, first: firstProbe, last: lastProbe},
		names:   &names{hold: &hold{kind: HoldUnresolved, first: firstName, last: lastName}},
	}
	if conf.TLS != nil {
		e.tls = &endpointTLS{d: d, conf: *conf.TLS}
	}
	return e, nil
}

// id names the endpoint: it never changes.
func (e *endpoint) id() string { return e.conf.ID }

// slots returns how many attempts may be in flight, from this process.
func (e *endpoint) slots() int {
	if e.conf.Concurrency <= 0 {
		return defaultSlots
	}
	return e.conf.Concurrency
}

// config returns a copy of the configuration with the state of this moment.
func (e *endpoint) config() webhook.Endpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conf
}

// enabled reports whether the endpoint is served: it may have been disabled, or its
// application suspended, while a claim for it was under way.
func (e *endpoint) enabled() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conf.State == webhook.Enabled && e.conf.Tenant.CheckSuspended() == nil
}

// adopt takes over the state that the store has for the same configuration, and
// reports whether it enables the endpoint. That forgets its failures, or the next
// one would disable it again. FailingSince is not taken over while the state stays:
// this process knows better what it has sent.
func (e *endpoint) adopt(stored *webhook.Endpoint) (enabled bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conf.State == stored.State {
		return false
	}
	e.conf.State, e.conf.Reason, e.conf.Since = stored.State, stored.Reason, stored.Since
	if enabled = stored.State == webhook.Enabled; enabled {
		e.failures, e.conf.FailingSince = 0, time.Time{}
	}
	return enabled
}

// record counts the response to an attempt. The store learns when a row of
// failures begins and ends, and of an endpoint that is no more, or has failed for
// too long: nothing is sent to it from then on. Between, nothing is written: a
// write for each attempt would double what a delivery costs. at is of the wall
// clock, since it is stored and compared with what other processes have stored.
func (e *endpoint) record(r *response, at time.Time) {
	e.mu.Lock()
	was, why := e.conf.FailingSince, ""
	if r.delivered() {
		e.failures, e.conf.FailingSince, e.good = 0, time.Time{}, time.Now()
	} else {
		e.failures++
		if was.IsZero() {
			e.conf.FailingSince = at
		}
		if why = e.hopeless(r, at); why != "" {
			e.conf.State = webhook.Disabled
		}
	}
	since := e.conf.FailingSince
	e.mu.Unlock()
	// Without the lock: a chore may have to wait for its place.
	switch id := e.id(); {
	case why != "":
		e.d.log.Error("endpoint disabled", slog.String("endpoint", id), slog.String("reason", why))
		e.d.disable(id, why, since)
	case was.IsZero() != since.IsZero():
		e.d.failing(id, since)
	}
}

// failedFor records that another process has seen the endpoint fail so often.
func (e *endpoint) failedFor(times int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failures = max(e.failures, times)
}

// goodSince reports whether it has accepted a message since t.
func (e *endpoint) goodSince(t time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.good.After(t)
}

// hopeless returns why the endpoint is to be disabled after a failure, or "".
// The caller holds mu.
func (e *endpoint) hopeless(r *response, at time.Time) string {
	limit := e.conf.DisableAfter
	if limit <= 0 {
		limit = defaultDisable
	}
	since := e.conf.FailingSince
	switch {
	case e.conf.State != webhook.Enabled:
	case r.status == http.StatusGone:
		return "the receiver answered 410 Gone"
	case e.failures >= leastFailures && at.Sub(since) >= limit:
		return "no success since " + since.UTC().Format(time.RFC3339)
	}
	return ""
}

// transport returns what sends an attempt.
func (e *endpoint) transport(ctx context.Context) (http.RoundTripper, error) {
	if e.tls == nil {
		return e.d.cfg.Transport, nil
	}
	return e.tls.transport(ctx)
}
