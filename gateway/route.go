package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
)

// The headers that the gateway adds to a response that is a failure.
const (
	// HeaderStop says why it was not retried (further), as
	// [forbear.Reason.String] says it.
	HeaderStop = "Forbear-Stop"
	// HeaderAttempts says how many attempts were made.
	HeaderAttempts = "Forbear-Attempts"
)

// route is a Route at work. It does not change after newRoute, and serves
// requests concurrently.
type route struct {
	Route
	forward forward.Forwarder
	ingress http.Handler      // for POST and PATCH, or nil
	places  *breaker.Bulkhead // nil for any number of calls
	log     *slog.Logger
}

// newRoute puts a route to work. It is given the transport, since routes share what is
// below.
func newRoute(r Route, t http.RoundTripper, g *Gateway) *route {
	if r.Prefix != "/" {
		r.Prefix = strings.TrimSuffix(r.Prefix, "/")
	}
	r.Target = withoutEmptyPort(r.Target)
	rt := &route{Route: r, log: g.log, places: newPlaces(r.MaxConcurrent)}
	rt.Headers = canonical(r.Headers)
	rt.forward = forward.Forwarder{
		Target: r.Target, Prefix: strings.TrimSuffix(r.Prefix, "/"), Origin: g.origin, Send: t,
		BodyIdle: max(r.Retryer.Policy().BodyIdle, 0), MaxBody: r.MaxBody,
		Prepare: rt.prepare, Accept: rt.accept, Failed: rt.failed,
		Upgraded: func(ctx context.Context) { incomingOf(ctx).meter.status = http.StatusSwitchingProtocols }, Cut: rt.cut,
	}
	if r.KeepPrefix {
		rt.forward.Prefix = ""
	}
	if r.Stream {
		rt.forward.BodyIdle = 0
		rt.forward.Streams = func(*http.Response) bool { return true }
	}
	return rt
}

// withoutEmptyPort returns a target as net/http makes its requests: "host:" is "host"
// (RFC 3986 section 6.2.3), for the dependency too, whose own name that is.
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

// name is how logs and metrics call the route.
func (rt *route) name() string { return rt.Host + rt.Prefix }

// prepare completes the headers of a request.
func (rt *route) prepare(out *http.Request) {
	h := out.Header
	h[headerCorrelation] = incomingOf(out.Context()).id[:1:1]
	// The attempts from here on are our own.
	delete(h, httpretry.HeaderAttempt)
	delete(h, "X-Envoy-Attempt-Count")
}

// accept completes what the dependency sent. Upgraded connections are left
// alone: their headers belong to the protocol they switch to.
func (rt *route) accept(resp *http.Response) error {
	ownWords(resp.Header)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	x := incomingOf(resp.Request.Context())
	resp.Header[headerCorrelation] = x.id[:1:1]
	if e, ok := httpretry.Outcome(resp); ok {
		x.meter.reason = e.Reason
		x.stopped(resp.Header, e)
	}
	return nil
}

// ownWords takes off what the gateway alone says of a call: a caller would take the
// dependency's word for it.
func ownWords(h http.Header) {
	delete(h, HeaderStop)
	delete(h, HeaderAttempts)
}

// stopped writes into h why a call ended. A failure that no retry could have
// mended needs no such word.
func (x *incoming) stopped(h http.Header, e *forbear.Error) {
	if e.Reason == forbear.ReasonTerminal && e.Attempts == 1 {
		return
	}
	h.Set(HeaderStop, e.Reason.String())
	h.Set(HeaderAttempts, strconv.Itoa(e.Attempts))
	if x.rpc != nil {
		x.rpc.pushback(h, e)
		return
	}
	if forbear.ExhaustedBelow(e) {
		h.Set(httpretry.HeaderExhausted, e.Reason.String())
	}
}
