package gateway

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway/internal/forward"
)

// route is a Route at work. It does not change after newRoute, and serves
// requests concurrently.
type route struct {
	Route
	name    string // in logs and metrics
	target  forward.Target
	senders senders
	ingress http.Handler      // for requests with an idempotency key, or nil
	places  *breaker.Bulkhead // nil for any number of calls
	log     *slog.Logger
}

// newRoute puts a route to work over transports that others may share.
func newRoute(r Route, s senders, g *Gateway) *route {
	if r.Prefix != "/" {
		r.Prefix = strings.TrimSuffix(r.Prefix, "/")
	}
	r.Target = withoutEmptyPort(r.Target)
	r.Headers = canonical(r.Headers)
	rt := &route{Route: r, name: r.Host + r.Prefix, senders: s, log: g.log, target: forward.Target{
		URL: r.Target, Prefix: strings.TrimSuffix(r.Prefix, "/"), Origin: g.origin,
		BodyIdle: max(r.Retryer.Policy().BodyIdle, 0), MaxBody: r.MaxBody, Stream: r.Stream,
	}}
	if r.MaxConcurrent > 0 {
		rt.places = breaker.NewBulkhead(r.MaxConcurrent)
	}
	if r.KeepPrefix {
		rt.target.Prefix = ""
	}
	if r.Stream {
		rt.target.BodyIdle = 0
	}
	return rt
}

// withoutEmptyPort returns a target as net/http makes its requests: "host:" is "host"
// (RFC 3986 section 6.2.3), and the dependency knows itself by that name.
func withoutEmptyPort(u *url.URL) *url.URL {
	if !strings.HasSuffix(u.Host, ":") {
		return u
	}
	without := *u
	without.Host = strings.TrimSuffix(u.Host, ":")
	return &without
}

// canonical returns headers by the names that net/http gives them.
func canonical(h map[string]string) map[string]string {
	out := make(map[string]string, len(h))
	for name, value := range h {
		out[http.CanonicalHeaderKey(name)] = value
	}
	return out
}
