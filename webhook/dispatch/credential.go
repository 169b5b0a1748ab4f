package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// Secrets finds what references name. Its errors show the reference, never a
// secret.
type Secrets func(ctx context.Context, ref string) (string, error)

// lookup finds what one reference names. An empty secret is none: without this,
// an attempt would go out with less than it should have.
func (f Secrets) lookup(ctx context.Context, ref string) (string, error) {
	value, err := f(ctx, ref)
	switch {
	case err == nil && value != "":
		return value, nil
	case errors.Is(err, ErrSecret):
		return "", err
	case err == nil:
		err = errors.New("it is empty")
	}
	return "", fmt.Errorf("%w: %s: %w", ErrSecret, ref, err)
}

// ErrSecret is what errors about secrets match.
var ErrSecret = errors.New("secret not available")

// LocalSecrets reads "env:NAME" from the environment variable prefix + NAME and
// "file:NAME" from a file in dir. The prefix and the folder bound what whoever
// may configure an endpoint can have sent to it.
func LocalSecrets(prefix, dir string) Secrets {
	return func(_ context.Context, ref string) (string, error) {
		kind, name, _ := strings.Cut(ref, ":")
		switch {
		case kind == "env" && prefix != "":
			if v := os.Getenv(prefix + name); v != "" {
				return v, nil
			}
			return "", fmt.Errorf("%w: %s: environment variable %s%s is empty", ErrSecret, ref, prefix, name)
		case kind == "file" && dir != "":
			text, err := secretFile(dir, name)
			if err == nil && text == "" {
				err = errors.New("the file is empty")
			}
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrSecret, ref, err)
			}
			return text, nil
		}
		return "", fmt.Errorf("%w: reference %q: want env:NAME or file:NAME, and a place configured for it", ErrSecret, ref)
	}
}

func secretFile(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	b, err := root.ReadFile(name)
	return strings.TrimSpace(string(b)), err
}

// credential fetches the Authorization of one endpoint for each attempt. It is
// never persisted, and when it cannot be had nothing is sent: a retry never
// goes out with less than the original had.
type credential struct {
	auth    *webhook.Auth
	secrets Secrets
	client  *http.Client
	now     func() time.Time
	fetched func(context.Context, error) // told of each fetch of a token

	// One fetch at a time. Not a mutex, since who waits may have to give up.
	fetching chan struct{}

	mu      sync.Mutex
	token   string
	expires time.Time
	err     error     // of the latest fetch, when it failed
	failed  time.Time // then, on the monotonic clock
}

func newCredential(auth *webhook.Auth, d *Dispatcher, fetched func(context.Context, error)) *credential {
	return &credential{auth: auth, secrets: d.cfg.Secrets, client: d.client, now: d.now, fetched: fetched, fetching: make(chan struct{}, 1)}
}

// early is how long before its end a token is not used any more.
const early = 30 * time.Second

// refreshable reports whether a refused credential can be replaced.
func (c *credential) refreshable() bool { return c.auth != nil && c.auth.TokenURL != "" }

// drop forgets a token that was refused.
func (c *credential) drop() {
	c.mu.Lock()
	c.token = ""
	c.mu.Unlock()
}

// value returns the Authorization, or "" when the endpoint has none.
func (c *credential) value(ctx context.Context) (string, error) {
	switch {
	case c.auth == nil:
		return "", nil
	case c.auth.TokenURL == "":
		return c.secrets.lookup(ctx, c.auth.Secret)
	}
	asked := time.Now()
	if token, err := c.known(asked); token != "" || err != nil {
		return token, err
	}
	select {
	case c.fetching <- struct{}{}:
		defer func() { <-c.fetching }()
	case <-ctx.Done():
		return "", fmt.Errorf("%w: token request: %w", ErrSecret, context.Cause(ctx))
	}
	if token, err := c.known(asked); token != "" || err != nil {
		return token, err
	}
	token, expires, err := c.fetch(ctx)
	c.fetched(ctx, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.expires, c.err, c.failed = token, expires, err, time.Now()
	return token, err
}

// known returns the token that is good, or how the fetch failed that ended
// after the caller had asked.
func (c *credential) known(asked time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil && c.failed.After(asked):
		return "", c.err
	case c.token != "" && c.now().Before(c.expires.Add(-early)):
		return c.token, nil
	}
	return "", nil
}

// fetch asks for a token: RFC 6749 section 4.4.
func (c *credential) fetch(ctx context.Context) (token string, expires time.Time, err error) {
	secret, err := c.secrets.lookup(ctx, c.auth.ClientSecret)
	if err != nil {
		return "", expires, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(c.auth.Scopes) > 0 {
		form.Set("scope", strings.Join(c.auth.Scopes, " "))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.auth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", expires, fmt.Errorf("%w: token_url: %w", ErrSecret, bare(err))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(c.auth.ClientID), url.QueryEscape(secret))
	resp, err := c.client.Do(req)
	if err != nil {
		return "", expires, fmt.Errorf("%w: token request to %s: %w", ErrSecret, req.URL.Host, bare(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", expires, fmt.Errorf("%w: token request to %s: response %d", ErrSecret, req.URL.Host, resp.StatusCode)
	}
	var t struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&t); err != nil || t.AccessToken == "" {
		return "", expires, fmt.Errorf("%w: token request to %s: the response cannot be read", ErrSecret, req.URL.Host)
	}
	if kind := cmp.Or(t.TokenType, "Bearer"); !strings.EqualFold(kind, "Bearer") {
		return "", expires, fmt.Errorf("%w: token request to %s: the type of the token is not Bearer", ErrSecret, req.URL.Host)
	}
	return "Bearer " + t.AccessToken, c.now().Add(time.Duration(cmp.Or(t.ExpiresIn, 300)) * time.Second), nil
}

// bare takes the URL, which may hold a query, out of a client's error.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
