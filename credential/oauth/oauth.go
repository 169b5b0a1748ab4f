// Package oauth fetches access tokens by OAuth 2.0's client credentials grant
// (RFC 6749 section 4.4). It is the one place that does: the webhooks, the
// gateway and the profile for the Lattice SDKs differ only in the fields they
// set.
//
//	tokens := credential.New(&oauth.ClientCredentials{
//		URL:    "https://auth.internal/token",
//		ID:     "checkout",
//		Secret: oauth.Value(secret),
//	})
package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/internal/resend"
)

// ClientCredentials is a [credential.Source] that asks an authorization server
// for a token with the client's own id and secret. It keeps no token:
// [credential.New] adds that, and one request at a time. URL, ID and Secret are
// required.
//
// Its errors name the server's host. They show no secret, no query and nothing
// of a response but its status and the error codes of RFC 6749. One that the
// server declares final matches [credential.ErrRevoked].
//
// It is plain data, not to be changed once in use, and safe for concurrent use.
type ClientCredentials struct {
	URL string // of the token endpoint
	ID  string
	// Secret is called for each request, so that a reference to a secret may be
	// rotated. Its errors are passed on as they are. [Value] is for a fixed one.
	Secret func(context.Context) (string, error)
	Scopes []string
	// Form sends id and secret as parameters of the form, for servers that do
	// not take HTTP basic authentication (RFC 6749 section 2.3.1).
	Form bool
	// StatusIsFinal takes every 400 and 401 for a final refusal. Without it,
	// only an error code that says so is one: some servers respond with 400 to
	// an overload too.
	StatusIsFinal bool
	// Early is taken off the life of a token, but at most half of that life, so
	// that the next one is fetched in good time. The cache has a margin of its
	// own beyond that.
	Early time.Duration
	// Life is that of a token whose response names none. Default 5 min.
	Life time.Duration
	HTTP *http.Client // nil means http.DefaultClient
}

const (
	// maxResponse bounds what is read of a response, in bytes.
	maxResponse = 64 << 10
	defaultLife = 5 * time.Minute
	// maxLife bounds what is believed of expires_in, whose seconds could
	// otherwise overflow a Duration.
	maxLife = 30 * 24 * time.Hour
)

// Value returns a Secret that never changes. The secret is not part of what
// printing a [ClientCredentials] shows.
func Value(secret string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return secret, nil }
}

// Token implements [credential.Source].
func (c *ClientCredentials) Token(ctx context.Context) (credential.Token, error) {
	secret, err := c.Secret(ctx)
	if err != nil {
		return credential.Token{}, err
	}
	req, err := c.request(ctx, secret)
	if err != nil {
		// The parser's own words may quote a part of the address.
		return credential.Token{}, errors.New("the address of the token endpoint is not a URL")
	}
	t, err := c.fetch(req)
	if err != nil {
		return credential.Token{}, fmt.Errorf("token request to %s: %w", req.URL.Host, err)
	}
	return t, nil
}

func (c *ClientCredentials) request(ctx context.Context, secret string) (*http.Request, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.Scopes) > 0 {
		form.Set("scope", strings.Join(c.Scopes, " "))
	}
	if c.Form {
		form.Set("client_id", c.ID)
		form.Set("client_secret", secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !c.Form {
		// RFC 6749 section 2.3.1 wants both parts encoded as in a form.
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret))
	}
	return req, nil
}

// exchangeError is an error of net/http, whose text may quote what the server sent. Who
// writes a log can ask for that.
type exchangeError struct{ error }

func (e exchangeError) Unwrap() error { return e.error }

// Quotes reports that the text may hold the server's words.
func (exchangeError) Quotes() bool { return true }

func (c *ClientCredentials) fetch(req *http.Request) (credential.Token, error) {
	client := *cmp.Or(c.HTTP, http.DefaultClient)
	client.Transport = resend.Once(client.Transport)
	resp, err := client.Do(req)
	if err != nil {
		return credential.Token{}, exchangeError{withoutURL(err)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return credential.Token{}, exchangeError{err}
	}
	if resp.StatusCode != http.StatusOK {
		return credential.Token{}, c.refusal(resp.StatusCode, body)
	}
	return c.read(body)
}

// refusal returns the error for a response that is not 200, by the codes of RFC
// 6749 section 5.2. Only codes that are known here are repeated.
func (c *ClientCredentials) refusal(status int, body []byte) error {
	var refused struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &refused) // often no JSON at all
	switch refused.Error {
	case "invalid_client", "invalid_grant", "unauthorized_client":
		return fmt.Errorf("response %d: %s: %w", status, refused.Error, credential.ErrRevoked)
	}
	if c.StatusIsFinal && (status == http.StatusBadRequest || status == http.StatusUnauthorized) {
		return fmt.Errorf("response %d: %w", status, credential.ErrRevoked)
	}
	return fmt.Errorf("response %d", status)
}

// read takes the token out of a good response (RFC 6749 section 5.1).
func (c *ClientCredentials) read(body []byte) (credential.Token, error) {
	var t struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(body, &t); err != nil || !isToken(t.AccessToken) {
		return credential.Token{}, errors.New("the response cannot be read")
	}
	if !strings.EqualFold(cmp.Or(t.TokenType, "Bearer"), "Bearer") {
		return credential.Token{}, errors.New("the type of the token is not Bearer")
	}
	life := cmp.Or(c.Life, defaultLife)
	if t.ExpiresIn > 0 {
		life = time.Duration(min(t.ExpiresIn, int64(maxLife/time.Second))) * time.Second
	}
	return credential.Token{Value: "Bearer " + t.AccessToken, Expires: time.Now().Add(life - min(c.Early, life/2))}, nil
}

// isToken reports whether s can stand in a header: a line break in it would
// begin another one.
func isToken(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}

// withoutURL takes the address, which may hold a query, out of a client's error.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
