package httpretry

import (
	"net/http"
	"net/url"

	"github.com/forbear-go/forbear"
)

// WithCredentials authorizes every attempt with a token of c, which replaces
// the request's own Authorization. An expired token is refreshed before the
// attempt, and one that a 401 refused is refreshed once, outside the count of
// retries; a 401 stays the answer when there is none but the refused one.
// When no token can be had the call ends with that error: no attempt goes out
// without one. A redirect to another origin carries none.
func WithCredentials(c *forbear.Credentials) Option {
	return func(t *transport) { t.credentials = c }
}

const headerAuthorization = "Authorization"

// authorized reports whether the attempts of the request carry a token.
func (x *exchange) authorized() bool { return x.t.credentials != nil && sameOrigin(x.req) }

// authorize gives an attempt its token.
func (x *exchange) authorize(a *attempt) error {
	if !x.authorized() {
		return nil
	}
	token, err := forbear.Token{}, x.unrefreshed
	if err == nil {
		token, err = x.t.credentials.Token(a.parent)
	}
	if err != nil {
		x.r.Refreshed(a.parent, err)
		return err
	}
	if x.token.Value != "" && x.token.Value != token.Value {
		x.r.Refreshed(a.parent, nil)
	}
	x.token = token
	a.req.Header.Set(headerAuthorization, token.Value)
	return nil
}

// refused drops the token of an attempt that was answered with 401, and looks
// for another one while that answer can still be handed over. A source that has
// the same one again has nothing fresher: that would only be refused again.
func (x *exchange) refused(s *forbear.State, resp *http.Response) {
	if x.token.Value == "" || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		return
	}
	x.t.credentials.Refused(x.token)
	if s.Refreshes > 0 {
		return
	}
	var fresh forbear.Token
	fresh, x.unrefreshed = x.t.credentials.Token(x.req.Context())
	s.Refreshable = x.unrefreshed != nil || fresh.Value != x.token.Value
}

// sameOrigin reports whether req goes where the chain of redirects that led to
// it began.
func sameOrigin(req *http.Request) bool {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	return origin(first.URL) == origin(req.URL)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
