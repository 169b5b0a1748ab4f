package dispatch

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/webhook"
)

const defaultSlots = 10 // attempts in flight, of one endpoint

// endpoint is one configuration of an endpoint, and what each attempt needs in its name. It
// is immutable, so that it is read without a lock: another configuration makes another one.
type endpoint struct {
	d       *Dispatcher
	stored  webhook.Endpoint // what it was made of
	conf    webhook.Endpoint // with the secrets of its application, where it has none
	plain   *http.Request    // what is the same in all requests
	cred    *authorization
	tls     *endpointTLS // nil: the dispatcher's transport
	shared  bool         // the secrets are the application's
	retryer *forbear.Retryer
	signer  atomic.Pointer[signer] // nil while references have to be looked up
}

// newEndpoint returns the endpoint of a configuration that takes the place of old, which
// may be nil. The breaker and the budget stay while the receiver, the policy and the
// concurrency do.
func (r *receiver) newEndpoint(stored webhook.Endpoint, old *endpoint) (*endpoint, error) {
	e := &endpoint{d: r.d, stored: stored, conf: stored}
	e.conf.Policy.Kind = forbear.Webhook
	if t := stored.Tenant; len(stored.Secrets) == 0 && t != nil && !stored.Unsigned {
		e.conf.Secrets, e.conf.OldSecrets, e.shared = t.Secrets, t.OldSecrets, true
	}
	var err error
	if e.plain, err = http.NewRequestWithContext(context.Background(), http.MethodPost, stored.URL, nil); err != nil {
		return nil, bare(err)
	}
	if old != nil && reflect.DeepEqual(old.conf.TLS, stored.TLS) {
		e.tls = old.tls
	} else if stored.TLS != nil {
		e.tls = &endpointTLS{d: r.d, conf: *stored.TLS}
	}
	if old != nil && old.conf.URL == e.conf.URL && old.slots() == e.slots() && reflect.DeepEqual(old.conf.Policy, e.conf.Policy) {
		e.retryer = old.retryer
	} else if err := r.newRetryer(e); err != nil {
		return nil, err
	}
	e.cred = newAuthorization(stored.Auth, r.d, func(ctx context.Context, err error) { edge.Refreshed(ctx, e.retryer, err) })
	return e, nil
}

// newRetryer makes the endpoint's Retryer, with its budget and its breaker, which the
// receiver follows.
func (r *receiver) newRetryer(e *endpoint) (err error) {
	p := e.conf.Policy
	p.Owner = "" // no one else sends what is stored here
	p.Breaker.OpenFor = cmp.Or(p.Breaker.OpenFor, firstWait)
	opts := []forbear.Option{forbear.WithCallerDeadLetter(), forbear.WithObserver(r.observer(&e.retryer))}
	e.retryer, err = forbear.New("webhook:"+r.id, p, append(opts, r.d.cfg.Options...)...)
	return err
}

// slots returns how many attempts may be in flight, from this process.
func (e *endpoint) slots() int {
	if e.conf.Concurrency <= 0 {
		return defaultSlots
	}
	return e.conf.Concurrency
}

// host returns the name in the endpoint's URL.
func (e *endpoint) host() string { return e.plain.URL.Hostname() }

// attemptTimeout returns how long an attempt may take.
func (e *endpoint) attemptTimeout() time.Duration {
	p := e.retryer.Policy()
	return p.AttemptTimeout()
}

// transport returns what sends an attempt.
func (e *endpoint) transport(ctx context.Context) (http.RoundTripper, error) {
	if e.tls == nil {
		return e.d.cfg.Transport, nil
	}
	return e.tls.transport(ctx)
}
