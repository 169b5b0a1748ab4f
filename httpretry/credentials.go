package httpretry

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/resend"
)

// WithCredentials authorizes every attempt with a token of c, which replaces
// the request's own Authorization. An expired token is refreshed before the
// attempt, and one that a 401 refused is refreshed once, outside the count of
// retries; when the source has none but the refused one, the 401 is handed over.
// When no token can be had the call ends with that error: no attempt goes out
// without one. A redirect to another origin carries none.
func WithCredentials(c *credential.Cache) Option {
	return func(t *transport) { t.credentials = c }
}

const headerAuthorization = "Authorization"

// authorized reports whether the attempts of the request carry a token.
func (x *exchange) authorized() bool { return x.t.credentials != nil && sameOrigin(x.req) }

// authorize gives an attempt its token.
func (x *exchange) authorize(a *attempt, call *edge.Call) error {
	if !x.authorized() {
		return nil
	}
	token, err := credential.Token{}, x.unrefreshed
	if err == nil {
		token, err = x.obtain(a.parent, call)
	}
	if err != nil {
		edge.Refreshed(a.parent, x.r, err)
		return err
	}
	if x.token.Value != "" && x.token.Value != token.Value {
		edge.Refreshed(a.parent, x.r, nil)
	}
	x.token = token
	a.req.Header.Set(headerAuthorization, token.Value)
	return nil
}

// refused drops the token of an attempt whose response is 401, and looks for
// another one while that response can still be handed over. A source that has
// the same one again has nothing fresher: that would only be refused again.
func (x *exchange) refused(call *edge.Call, resp *http.Response) {
	if x.token.Value == "" || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		return
	}
	x.t.credentials.Refused(x.token)
	if call.State().Refreshes > 0 {
		return
	}
	var fresh credential.Token
	fresh, x.unrefreshed = x.obtain(x.req.Context(), call)
	call.State().Refreshable = x.unrefreshed != nil || fresh.Value != x.token.Value
}

// obtain returns a token. Waiting for one is part of the call, whose total is
// hard.
func (x *exchange) obtain(ctx context.Context, call *edge.Call) (credential.Token, error) {
	if token, ok := x.t.credentials.Current(); ok {
		return token, nil
	}
	limited, cancel := context.WithTimeout(resend.Untraced(ctx), call.Limit(x.total))
	defer cancel()
	token, err := x.t.credentials.Token(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: no response in time", credential.ErrRefreshFailed)
	}
	return token, err
}

// sameOrigin reports whether req goes where the chain of redirects that led to
// it began, and never left: a way back was chosen by another server.
func sameOrigin(req *http.Request) bool {
	here := origin(req.URL)
	for at := req; at.Response != nil && at.Response.Request != nil; {
		if at = at.Response.Request; origin(at.URL) != here {
			return false
		}
	}
	return true
}

// origin is what must stay the same for a credential to be sent again: scheme and
// host with port (RFC 6454 section 4).
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
