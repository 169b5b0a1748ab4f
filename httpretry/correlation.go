package httpretry

import (
	"cmp"
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/inbound"
)

// correlated returns req under the correlation id that its headers have, where
// neither its context nor its trace says one: the log of its retries
// then names it.
func correlated(r *forbear.Retryer, req *http.Request) *http.Request {
	h := req.Header
	if len(h) == 0 || len(h["Traceparent"]) == 0 && len(h["X-Correlation-Id"]) == 0 && len(h["X-Request-Id"]) == 0 {
		return req
	}
	if r.CorrelationID(req.Context()) != "" {
		return req
	}
	id := cmp.Or(inbound.Trace(h), inbound.Correlation(h))
	if id == "" {
		return req
	}
	return req.WithContext(forbear.WithCorrelationID(req.Context(), id))
}
