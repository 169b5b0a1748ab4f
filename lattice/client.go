package lattice

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/below"
)

// TokenPath is where the SDKs fetch their tokens. Requests to it carry no
// Authorization.
const TokenPath = "/api/v1/oauth/token"

// ErrNoAuthorization says that a request had no Authorization and was not sent
// . The SDKs swallow the error of a token that they could not get and send
// the request without one.
var ErrNoAuthorization = errors.New("lattice: the request has no Authorization and was not sent")

// Options says how a [Client] sends.
type Options struct {
	// Transport sends the attempts; nil means a transport of its own, with the
	// policy's connect timeout.
	Transport http.RoundTripper
	// Credentials, if set, authorize every attempt, and are refreshed once
	// after a 401. Without them the SDK's own Authorization is used as it is.
	Credentials *credential.Cache
	// HTTP are further options for the transport that retries.
	HTTP []httpretry.Option
}

// Client is the HTTP client under an SDK. It retries inside. It is safe for
// concurrent use; make one with [NewClient].
type Client struct {
	http *http.Client
	o    Options
}

// NewClient returns a client that retries as r decides. r's policy should be
// [Policy], or begin with it.
func NewClient(r *forbear.Retryer, o Options) *Client {
	opts := o.HTTP
	if o.Credentials != nil {
		opts = append([]httpretry.Option{httpretry.WithCredentials(o.Credentials)}, opts...)
	}
	next := o.Transport
	if next == nil {
		next = below.Transport(r.Policy().Connect)
	}
	guarded := &guard{next}
	return &Client{http: &http.Client{Transport: httpretry.NewTransport(guarded, r, opts...)}, o: o}
}

// Do sends a request, several times if need be. A response of a status that the
// SDK would retry comes back as a [*StopError] instead, because the SDK sleeps
// and retries on such a response and returns an error at once. Every other
// response comes back as it is, so that the SDK makes its own errors of it.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if c.o.Credentials == nil && !authorized(req) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrNoAuthorization
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL's query does not belong in an error
		}
		return nil, err
	}
	if !sdkRetries(resp.StatusCode) {
		return resp, nil
	}
	return nil, stopped(resp)
}

// CloseIdleConnections closes the idle connections below.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// sdkRetries reports whether the Go SDK would retry the status.
func sdkRetries(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// StopError is the end of a call whose last response the SDK would have retried.
// It unwraps to the [*forbear.Error] that says why it was not tried again.
type StopError struct {
	StatusCode int
	Header     http.Header
	// Body is the beginning of the response's body. It is not part of Error.
	Body     []byte
	Attempts int

	why error
}

// maxErrorBody bounds what is kept of a response's body.
const maxErrorBody = 64 << 10

// stopped returns the error for a response that the SDK would retry by itself. The
// body is read and closed here: the SDK, which gets an error, never sees it.
func stopped(resp *http.Response) *StopError {
	e := &StopError{StatusCode: resp.StatusCode, Header: resp.Header, Attempts: 1, why: httpretry.StatusError(resp.StatusCode)}
	if why, ok := httpretry.Outcome(resp); ok {
		e.Attempts, e.why = why.Attempts, why
	}
	e.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what there is of it
	_ = resp.Body.Close()
	return e
}

// Error says the status and why the call ended.
func (e *StopError) Error() string { return fmt.Sprintf("lattice: %v", e.why) }

// Unwrap returns the reason.
func (e *StopError) Unwrap() error { return e.why }

// guard is the last thing before the wire: no attempt and no redirect goes out
// without Authorization.
type guard struct{ next http.RoundTripper }

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if authorized(req) {
		return g.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, forbear.Terminal(ErrNoAuthorization)
}

// CloseIdleConnections closes the idle connections below.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// authorized reports whether a request may be sent: it carries an Authorization, or
// fetches the token for one.
func authorized(req *http.Request) bool {
	return strings.TrimSpace(req.Header.Get("Authorization")) != "" || req.URL != nil && req.URL.Path == TokenPath
}
