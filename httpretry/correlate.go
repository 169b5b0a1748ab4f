package httpretry

import (
	"net/http"
	"strings"

	"github.com/forbear-go/forbear"
)

// headerTrace is W3C Trace Context's, in its canonical form.
const headerTrace = "Traceparent"

// correlated returns req under the correlation id that its headers have, where
// neither its context nor its trace says one: the log of its retries
// then names it.
func correlated(r *forbear.Retryer, req *http.Request) *http.Request {
	h := req.Header
	if len(h) == 0 || len(h[headerTrace]) == 0 && len(h["X-Correlation-Id"]) == 0 && len(h["X-Request-Id"]) == 0 {
		return req
	}
	if r.CorrelationID(req.Context()) != "" {
		return req
	}
	id := TraceID(h)
	if id == "" {
		id = correlation(h)
	}
	if id == "" {
		return req
	}
	return req.WithContext(forbear.WithCorrelationID(req.Context(), id))
}

// TraceID returns the id of the trace that the headers of a request name, by W3C
// Trace Context, or "".
func TraceID(h http.Header) string {
	parts := strings.Split(bounded(h.Get(headerTrace)), "-")
	if len(parts) < 4 || len(parts[0]) != 2 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" ||
		strings.Trim(parts[1], "0123456789abcdef") != "" {
		return ""
	}
	return parts[1]
}
