package httpretry

import (
	"net/http"

	"github.com/forbear-go/forbear"
)

// outcomeKey is where a request's context has the outcome. The body of the response
// has it, too: what wraps a transport may replace either, and seldom both.
type outcomeKey struct{}

// Outcome returns why a transport of this package stopped retrying and handed
// resp over as it was. ok is false for a response that is not a failure, or
// that did not come through such a transport.
func Outcome(resp *http.Response) (e *forbear.Error, ok bool) {
	if resp == nil {
		return nil, false
	}
	if resp.Request != nil {
		if e, ok = resp.Request.Context().Value(outcomeKey{}).(*forbear.Error); ok {
			return e, true
		}
	}
	if b, had := resp.Body.(*responseBody); had && b.outcome != nil {
		return b.outcome, true
	}
	return nil, false
}
