package gateway

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
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
	proxy   httputil.ReverseProxy
	ingress http.Handler  // for POST and PATCH, or nil
	idle    time.Duration // of a request's body
}

// newRoute puts the standard library's proxy to work for a route. It is given the
// transport, since routes share what is below.
func newRoute(r Route, t http.RoundTripper, logger *slog.Logger) *route {
	if r.Prefix != "/" {
		r.Prefix = strings.TrimSuffix(r.Prefix, "/")
	}
	rt := &route{Route: r, idle: r.Retryer.Policy().BodyIdle}
	rt.proxy = httputil.ReverseProxy{
		Rewrite:        rt.rewrite,
		Transport:      t,
		ModifyResponse: rt.response,
		ErrorHandler:   rt.failed,
		BufferPool:     &buffers,
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	return rt
}

// rewrite aims the request at the target: the prefix of the route is replaced
// by the target's own path. Escapes stay as the caller wrote them, since a %2F
// in a path is not a slash to every server.
func (rt *route) rewrite(pr *httputil.ProxyRequest) {
	out, in := pr.Out, pr.In
	path, raw := in.URL.Path, in.URL.RawPath
	if rt.Prefix != "" && rt.Prefix != "/" {
		path = strings.TrimPrefix(path, rt.Prefix)
		if raw != "" {
			// A prefix has no escapes, but the caller may have escaped it.
			stripped, ok := strings.CutPrefix(raw, rt.Prefix)
			if raw = stripped; !ok {
				raw = ""
			}
		}
	}
	out.URL.Scheme, out.URL.Host = rt.Target.Scheme, rt.Target.Host
	out.URL.Path, out.URL.RawPath = join(rt.Target.Path, path), ""
	if raw != "" || rt.Target.RawPath != "" {
		if raw == "" {
			out.URL.Path = path
			raw = out.URL.EscapedPath()
			out.URL.Path = join(rt.Target.Path, path)
		}
		out.URL.RawPath = join(rt.Target.EscapedPath(), raw)
	}
	out.URL.RawQuery = in.URL.RawQuery // byte for byte
	out.Host = ""

	h := out.Header
	if chain := in.Header["X-Forwarded-For"]; len(chain) > 0 {
		h["X-Forwarded-For"] = chain
	}
	pr.SetXForwarded()
	h[headerCorrelation] = incomingOf(out).id[:1:1]
	delete(h, httpretry.HeaderAttempt) // the attempts from here on are our own
}

// join puts the base path of a target before a path, with one slash between.
func join(base, path string) string {
	if base != "" && base[0] != '/' {
		base = "/" + base
	}
	switch {
	case path == "":
		return base
	case base == "":
		return path
	default:
		return strings.TrimSuffix(base, "/") + "/" + strings.TrimPrefix(path, "/")
	}
}

// response completes what the dependency sent. Upgraded connections are left
// alone: their headers belong to the protocol they switch to.
func (rt *route) response(resp *http.Response) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	resp.Header[headerCorrelation] = incomingOf(resp.Request).id[:1:1]
	if e, ok := httpretry.Outcome(resp); ok {
		stopped(resp.Header, e)
	}
	return nil
}

// stopped writes into h why a call ended. A failure that no retry could have
// mended needs no such word.
func stopped(h http.Header, e *forbear.Error) {
	if e.Reason == forbear.ReasonTerminal && e.Attempts == 1 {
		return
	}
	h.Set(HeaderStop, e.Reason.String())
	h.Set(HeaderAttempts, strconv.Itoa(e.Attempts))
	if forbear.ExhaustedBelow(e) {
		h.Set(httpretry.HeaderExhausted, e.Reason.String())
	}
}
