package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/idemkey"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/internal/resend"
)

// Ingress makes a route honor idempotency keys on behalf of its target, which
// need not know of them: POST and PATCH are done once and never retried by the
// gateway. What the target may have done is not done again: when it breaks off
// or times out after the request was sent, or responds with 502 or 504 itself, the
// key is held until an operator has resolved it ([idempotency.Store.Resolve]).
type Ingress struct {
	Store idempotency.Store
	// Options are those of the middleware. Scope is required, such as
	// [PrincipalHeader] or a [JWT].
	Options idempotency.Options
	// Timeout bounds a response of the target, body included. Default 30 s.
	Timeout time.Duration
}

// ingressDisposition is the status rule in front of another's service: it may be a
// proxy itself.
func ingressDisposition(status int) idempotency.Disposition {
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		return idempotency.Hold
	}
	return idempotency.DefaultDisposition(status)
}

// keyed reports whether a request goes through the middleware for keys. One without
// a key does not where keys are optional.
func (rt *route) keyed(r *http.Request) bool {
	if rt.ingress == nil || r.Method != http.MethodPost && r.Method != http.MethodPatch {
		return false
	}
	return !rt.Ingress.Options.Optional || len(idemkey.Lines(r.Header)) > 0
}

// keyPlace returns where the key of a request is valid: at one dependency, one host,
// which is a part of the target URI (RFC 9110 section 7.1), and one route. Routes share
// a store, and callers use keys such as "order-4711" for several services: the same key
// at another place must not get the response of this one. The host is the one that the
// service is told of, without its port, as routes match it: an attempt over another
// listener of the gateway, or over TLS, is the same operation.
func (rt *route) keyPlace() func(*http.Request) string {
	conditions := url.Values{}
	for name, value := range rt.Headers {
		conditions.Set(name, value)
	}
	dependency, route := url.PathEscape(rt.Retryer.Dependency()), (&url.URL{Path: rt.Prefix}).EscapedPath()
	if len(conditions) > 0 {
		route += "?" + conditions.Encode()
	}
	return func(r *http.Request) string {
		host := strings.ToLower(withoutPort(rt.target.Origin.Host(r)))
		return dependency + "/" + url.PathEscape(host) + route
	}
}

// honorKeys makes the route's handler for requests with a key, which sends through below.
func (rt *route) honorKeys(below http.RoundTripper, c *Config) (err error) {
	in := *rt.Ingress
	in.Timeout = cmp.Or(in.Timeout, 30*time.Second)
	if in.Options.Disposition == nil {
		in.Options.Disposition = ingressDisposition
	}
	in.Options.Logger = cmp.Or(in.Options.Logger, c.Logger)
	in.Options.Place = rt.keyPlace()
	in.Options.KeepHeaders = append(slices.Clip(in.Options.KeepHeaders), idempotency.AllHeaders)
	run := func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), in.Timeout)
		defer cancel()
		requestOf(ctx).forwardOnce(ctx, w, r)
	}
	rt.ingress, err = idempotency.Handler(in.Store, in.Options, http.HandlerFunc(run))
	return err
}

// forwardKeyed passes a request with a key on, or the response that is kept under it.
func (x *request) forwardKeyed(ctx context.Context, w http.ResponseWriter) {
	if x.rpc != nil {
		x.problem(w, notKept)
		return
	}
	x.route.ingress.ServeHTTP(w, x.in.WithContext(ctx))
}

// forwardOnce is [request.forward] for the one run under a key. It marks the run by what is
// known of a request that has failed.
func (x *request) forwardOnce(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	defer x.exchange.End()
	_, err := x.outgoing(ctx, w, r)
	if err == nil {
		var resp *http.Response
		if resp, err = x.exchange.Send(once{x.route.senders.below}); err == nil {
			err = x.keep(ctx, w, resp)
		}
	}
	if err != nil {
		x.failedOnce(ctx, w, err)
	}
	x.exchange.Flush()
}

// keep passes on a response that will be stored. One that switches protocols has no end
// to store. Where a response breaks off the work may be done, and the caller has half of
// its result.
func (x *request) keep(ctx context.Context, w http.ResponseWriter, resp *http.Response) error {
	x.complete(resp)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return errors.New("a response that switches protocols cannot be stored")
	}
	result := x.exchange.Respond(resp)
	if result.Err != nil {
		idempotency.MarkUnknown(ctx)
	}
	return x.finish(ctx, w, result)
}

// once sends a request at most once, and marks the run by what is known of a
// request that failed. net/http by itself repeats some that carry a key.
type once struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	var guard resend.Guard
	ctx, cancel := context.WithCancelCause(r.Context()) // ends with the run
	guard.Sending(r, o.next)
	resp, err := o.next.RoundTrip(r.WithContext(guard.Watch(ctx, func() { cancel(resend.Err) })))
	switch {
	case err == nil:
		return resp, nil
	case guard.Sent():
		idempotency.MarkUnknown(r.Context())
	default:
		idempotency.MarkUndone(r.Context())
	}
	cancel(nil)
	return nil, err
}

// failedOnce responds in place of a target that did not.
func (x *request) failedOnce(ctx context.Context, w http.ResponseWriter, err error) {
	if p, ok := x.own(err); ok {
		x.problem(w, p)
		return
	}
	p := x.route.upstream("the service was unreachable or broke the connection")
	if d, ok := idempotency.Marked(ctx); ok && d == idempotency.Retry {
		p.Outcome = problem.Unsent
	}
	late := errors.Is(err, context.DeadlineExceeded)
	r := (&http.Request{}).WithContext(context.WithoutCancel(ctx))
	if f := httpretry.Classify(r, nil, err); f.Class == forbear.ClassTimeout || late {
		p.Type, p.Title, p.Status = problem.Namespace+"timeout", "Upstream timed out", http.StatusGatewayTimeout
	}
	x.logFailure(err, p.Status)
	x.problem(w, p)
}
