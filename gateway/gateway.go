package gateway

import (
	"cmp"
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
	"github.com/forbear-go/forbear/internal/grpcwire"
)

// Route sends requests to a dependency. Either Prefix or Host is set.
type Route struct {
	// Prefix is matched against whole segments of the path and then taken off:
	// "/payments" takes /payments and /payments/1 but not /payments2. Of several
	// the longest wins; "/" takes everything.
	Prefix string
	// Host is matched against the request's host, without its port.
	Host string
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
	// TrustedProxies are the addresses of those in front of the gateway whose word on
	// where a request comes from (X-Forwarded-*, Forwarded) is passed on. What any
	// other caller says of it is replaced.
	TrustedProxies []netip.Prefix
	// Logger gets the calls that failed. Nil means slog.Default(). Retries are logged
	// by the Retryers.
	Logger *slog.Logger
}

// Gateway is the egress gateway, an [http.Handler]. Make it with [New]. It is
// safe for concurrent use.
type Gateway struct {
	hosts     map[string]*route
	prefixes  map[string]*route
	maxPrefix int
	origin    forward.Origin
	log       *slog.Logger
	draining  atomic.Bool
}

// New returns a Gateway, or all faults of its configuration.
func New(c Config) (*Gateway, error) {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	g := &Gateway{
		hosts: map[string]*route{}, prefixes: map[string]*route{}, log: c.Logger,
		origin: forward.Origin{Trusted: c.TrustedProxies, Pseudonym: forward.NewPseudonym()},
	}
	transports := wires{config: &c, below: map[*forbear.Retryer]http.RoundTripper{}, made: map[wire]http.RoundTripper{}}
	var errs []error
	for i, r := range c.Routes {
		if err := g.open(r, &transports); err != nil {
			errs = append(errs, fmt.Errorf("route %d: %w", i+1, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return g, nil
}

// open checks a route, builds it and adds it.
func (g *Gateway) open(r Route, transports *wires) (err error) {
	if err := r.check(); err != nil {
		return err
	}
	t, err := transports.of(&r)
	if err != nil {
		return err
	}
	rt := newRoute(r, t, g)
	if r.Ingress != nil {
		if rt.ingress, err = r.Ingress.handler(rt, transports.below[r.Retryer], transports.config); err != nil {
			return err
		}
	}
	return g.add(rt)
}

// check says what is wrong with a route. It does not show the target, which
// might hold credentials.
func (r *Route) check() error {
	switch {
	case (r.Prefix == "") == (r.Host == ""):
		return errors.New("want either a prefix or a host")
	case r.Prefix != "" && (r.Prefix[0] != '/' || forward.Dotted(r.Prefix) || strings.Contains(r.Prefix, "//")):
		return fmt.Errorf("prefix %q is no clean path", r.Prefix)
	case r.Retryer == nil:
		return errors.New("no retryer")
	case r.Credentials != nil && r.Ingress != nil:
		return errors.New("a route that honors idempotency keys passes its callers' Authorization on and has no credentials of its own")
	case r.Target == nil:
		return errors.New("no target")
	case r.Target.Scheme != "http" && r.Target.Scheme != "https" || r.Target.Host == "":
		return errors.New("the target is no http or https address")
	case r.Target.User != nil || r.Target.RawQuery != "" || r.Target.Fragment != "":
		return errors.New("the target has a user, a query or a fragment")
	}
	return nil
}

// add enters a route under its host, in lower case, or its prefix. Two routes of
// one key are a fault: which of them won would depend on the order of a file.
func (g *Gateway) add(rt *route) error {
	table, key := g.hosts, strings.ToLower(rt.Host)
	if rt.Prefix != "" {
		table, key = g.prefixes, rt.Prefix
		g.maxPrefix = max(g.maxPrefix, len(key))
	}
	if table[key] != nil {
		return fmt.Errorf("%s is routed already", key)
	}
	table[key] = rt
	return nil
}

// Drain makes the gateway report that it is not ready, ahead of a shutdown. It
// goes on serving.
func (g *Gateway) Drain() { g.draining.Store(true) }

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rt := g.host(r.Host)
	if rt == nil {
		if strings.HasPrefix(r.URL.Path, healthPrefix) {
			g.health(w, r)
			return
		}
		rt = g.prefix(r.URL.Path)
	}
	x := newIncoming(r)
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		x.problem(w, badMethod)
	case r.ProtoMajor == 1 && grpcwire.Is(r.Header):
		x.problem(w, needsHTTP2)
	case forward.Dotted(r.URL.Path):
		x.problem(w, badPath)
	case rt == nil:
		x.problem(w, noRoute)
	case g.origin.Loops(r):
		x.problem(w, loop)
	default:
		x.forward(w, rt)
	}
}

// host returns the route of a Host header, which may have a port.
func (g *Gateway) host(host string) *route {
	if len(g.hosts) == 0 {
		return nil
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return g.hosts[strings.ToLower(host)]
}

// prefix returns the route with the longest prefix of path, by whole segments.
func (g *Gateway) prefix(path string) *route {
	p := path
	if len(p) > g.maxPrefix {
		p = p[:g.maxPrefix+1]
		if p[g.maxPrefix] != '/' {
			p = p[:max(strings.LastIndexByte(p, '/'), 0)]
		} else {
			p = p[:g.maxPrefix]
		}
	}
	for {
		if rt := g.prefixes[p]; rt != nil {
			return rt
		}
		cut := strings.LastIndexByte(p, '/')
		if cut < 0 {
			break
		}
		p = p[:cut]
	}
	if strings.HasPrefix(path, "/") {
		return g.prefixes["/"]
	}
	return nil
}
