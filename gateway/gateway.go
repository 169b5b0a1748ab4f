package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
)

// Route sends requests to a dependency. Prefix or Host is set, or both.
type Route struct {
	// Prefix is matched against whole segments of the path and then taken off:
	// "/payments" takes /payments and /payments/1 but not /payments2. Of several
	// the longest wins; "/" takes everything. A route without one takes all paths of its
	// Host.
	Prefix string
	// KeepPrefix leaves it in the path that is sent on.
	KeepPrefix bool
	// Host is matched against the request's host, without its port. A host that a route
	// names belongs to the routes that name it.
	Host string
	// Methods and Headers, where set, narrow a route: to these methods, and to requests
	// that have each of these headers with just this value. Of the routes of one prefix
	// those with most headers come first, and then those with methods.
	Methods []string
	Headers map[string]string
	// Limits bounds the calls of this route; the policy bounds those of the dependency.
	Limits
	// Target is the base URL of the dependency: http or https, without user,
	// query and fragment.
	Target *url.URL
	// Retryer decides about the dependency's calls. Routes to the same
	// dependency share one.
	Retryer *forbear.Retryer
	// Credentials, where set, authorize every attempt of a request that brought
	// no Authorization of its own, and are refreshed once after a 401. Override
	// gives them precedence over what the caller sent.
	Credentials *credential.Cache
	Override    bool
	// Transport sends the attempts, below the retries. Routes to the same
	// dependency share one. Nil means an [upstream.Upstream] for each dependency.
	Transport http.RoundTripper
	// Ingress, where set, makes the route honor idempotency keys.
	Ingress *Ingress
}

// Config says what a Gateway does.
type Config struct {
	Routes []Route
	// Wrap is put around the transport of each dependency, below the retries:
	// it sees every attempt. Nil wraps nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Options are passed to the retrying transport of each route.
	Options []httpretry.Option
	// TrustedProxies are the addresses of proxies in front of the gateway. What they say
	// of where a request comes from (X-Forwarded-*, Forwarded) is passed on; what any
	// other caller says of it is replaced.
	TrustedProxies []netip.Prefix
	// Observe is called at the end of each call, on its goroutine and with its context;
	// it may be nil. Requests for the gateway's own health are not calls.
	Observe func(context.Context, *Record)
	// Ready says whether requests should be sent here for now, and if not why, in words
	// that anyone may read: the health endpoint repeats them. It is asked for each probe,
	// and does not block. Nil means always.
	Ready func() (state string, ok bool)
	// Logger gets the calls that failed. Nil means slog.Default(). Retries are logged
	// by the Retryers.
	Logger *slog.Logger
}

// Gateway is the egress gateway, an [http.Handler]. Make it with [New]. It is
// safe for concurrent use.
type Gateway struct {
	hosts    map[string]*table // by name, in lower case; "" is for all others
	origin   forward.Origin
	log      *slog.Logger
	observe  func(context.Context, *Record) // or nil
	ready    func() (state string, ok bool) // or nil
	draining atomic.Bool
}

// New returns a Gateway, or all faults of its configuration.
func New(c Config) (*Gateway, error) {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	g := &Gateway{
		hosts: map[string]*table{}, log: c.Logger, observe: c.Observe, ready: c.Ready,
		origin: forward.Origin{Trusted: c.TrustedProxies, Pseudonym: forward.NewPseudonym()},
	}
	shared := newTransports(&c)
	var errs []error
	for i, r := range c.Routes {
		if err := g.open(r, shared); err != nil {
			errs = append(errs, fmt.Errorf("route %d: %w", i+1, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return g, nil
}

// open checks a route, builds it and adds it.
func (g *Gateway) open(r Route, transports *transports) error {
	if err := r.check(); err != nil {
		return err
	}
	t, err := transports.of(&r)
	if err != nil {
		return err
	}
	rt := newRoute(r, t, g)
	if r.Ingress != nil {
		if err := rt.honorKeys(t.below, transports.config); err != nil {
			return err
		}
	}
	return g.add(rt)
}

// check says what is wrong with a route. It does not show the target, which
// might hold credentials.
func (r *Route) check() error {
	switch {
	case r.Prefix == "" && r.Host == "":
		return errors.New("want a prefix or a host")
	case r.Prefix != "" && (r.Prefix[0] != '/' || forward.Dotted(r.Prefix) || strings.Contains(r.Prefix, "//")):
		return fmt.Errorf("prefix %q is not a clean path", r.Prefix)
	case r.Retryer == nil:
		return errors.New("no retryer")
	case r.Credentials != nil && r.Ingress != nil:
		return errors.New("a route with idempotency keys forwards its callers' Authorization, so it cannot have credentials: drop one of the two")
	case r.Ingress != nil && r.Stream:
		return errors.New("a route for streams cannot have idempotency keys, which store whole responses: drop one of the two")
	case r.Target == nil:
		return errors.New("no target")
	case r.Target.Scheme != "http" && r.Target.Scheme != "https" || strings.TrimSuffix(r.Target.Host, ":") == "":
		return errors.New("the target is not an http or https address")
	case r.Target.User != nil || r.Target.RawQuery != "" || r.Target.Fragment != "":
		return errors.New("the target has a user, a query or a fragment")
	}
	return r.Limits.check()
}

// Drain makes the gateway report that it is not ready, ahead of a shutdown. It
// goes on serving.
func (g *Gateway) Drain() { g.draining.Store(true) }

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	routes, named := g.table(r.Host)
	if !named && strings.HasPrefix(r.URL.Path, healthPrefix) {
		g.health(w, r)
		return
	}
	rt, allow := routes.match(r)
	x := newRequest(r, named)
	whole := false
	if g.observe != nil {
		w = x.meter.begin(w)
		defer func() { // a response that breaks off is a panic
			c := x.record()
			c.Broken = !whole && c.Status != 0 && r.Context().Err() == nil
			g.observe(x, &c)
		}()
	}
	g.serve(w, x, rt, allow)
	whole = true
}

// serve takes a request the whole way, or as far as it goes.
func (g *Gateway) serve(w http.ResponseWriter, x *request, rt *route, allow []string) {
	if !g.admit(w, x, rt, allow) {
		return
	}
	x.route = rt
	ctx, leave, ok := x.enter(w)
	if !ok {
		return
	}
	defer leave()
	if rt.ingress != nil && rt.keyed(x.in) {
		x.forwardKeyed(ctx, w)
		return
	}
	x.forward(ctx, w)
}
