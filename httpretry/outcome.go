package httpretry

import (
	"context"
	"net/http"

	"github.com/forbear-go/forbear"
)

// outcomeKey is where a request's context has the outcome.
type outcomeKey struct{}

// withOutcome attaches the reason why the retrying stopped to the request that
// the response belongs to, so that it survives any wrapping of the body.
func withOutcome(resp *http.Response, req *http.Request, e *forbear.Error) {
	if resp.Request != nil {
		req = resp.Request
	}
	resp.Request = req.WithContext(context.WithValue(req.Context(), outcomeKey{}, e))
}

// Outcome returns why a transport of this package stopped retrying and handed
// resp over as it was. ok is false for a response that is not a failure, or
// that did not come through such a transport.
func Outcome(resp *http.Response) (e *forbear.Error, ok bool) {
	if resp == nil || resp.Request == nil {
		return nil, false
	}
	e, ok = resp.Request.Context().Value(outcomeKey{}).(*forbear.Error)
	return e, ok
}
