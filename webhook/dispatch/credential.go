package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	tokens "github.com/forbear-go/forbear/credential"
	"github.com/forbear-go/forbear/credential/oauth"
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
		err = errors.New("the secret is empty")
	}
	return "", fmt.Errorf("%w: %s: %w", ErrSecret, ref, err)
}

// ErrSecret is what errors about secrets match.
var ErrSecret = errors.New("secret not available")

// LocalSecrets reads "env:NAME" from the environment variable prefix + NAME and
// "file:NAME" from a file in dir. The prefix and the folder limit which secrets
// the configuration of an endpoint can name.
func LocalSecrets(prefix, dir string) Secrets {
	return func(_ context.Context, ref string) (string, error) {
		kind, name, _ := strings.Cut(ref, ":")
		switch {
		case kind == "env" && prefix != "":
			v, set := os.LookupEnv(prefix + name)
			switch {
			case v != "":
				return v, nil
			case set:
				return "", fmt.Errorf("%w: %s: environment variable %s%s is empty", ErrSecret, ref, prefix, name)
			}
			return "", fmt.Errorf("%w: %s: environment variable %s%s is not set: start the process with it", ErrSecret, ref, prefix, name)
		case kind == "env":
			return "", fmt.Errorf("%w: %s: env: references are not allowed here", ErrSecret, ref)
		case kind == "file" && dir == "":
			return "", fmt.Errorf("%w: %s: no folder for file: references: start forbear serve with --secrets-dir", ErrSecret, ref)
		case kind == "file":
			text, err := secretFile(dir, name)
			if err == nil && text == "" {
				err = errors.New("the file is empty")
			}
			if err != nil {
				return "", fmt.Errorf("%w: %s: %w", ErrSecret, ref, err)
			}
			return text, nil
		}
		return "", fmt.Errorf("%w: reference %q: want env:NAME or file:NAME", ErrSecret, ref)
	}
}

func secretFile(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	b, err := root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no such file in the folder of --secrets-dir: %w", fs.ErrNotExist)
	}
	return strings.TrimSpace(string(b)), err
}

// authorization is the Authorization of one endpoint, had for each attempt. It is
// never persisted, and when it cannot be had nothing is sent: a retry never goes
// out with less than the original had.
type authorization struct {
	auth    *webhook.Auth
	secrets Secrets
	cache   *tokens.Cache // nil unless tokens are fetched
}

// early is how long before its end a token is not used any more, beyond the
// cache's own margin of 10 s: an attempt may take as long to begin.
const early = 20 * time.Second

// newAuthorization returns the credential that auth asks for, which may be none.
// fetched observes each fetch of a token.
func newAuthorization(auth *webhook.Auth, d *Dispatcher, fetched func(context.Context, error)) *authorization {
	c := &authorization{auth: auth, secrets: d.cfg.Secrets}
	if !c.refreshable() {
		return c
	}
	client := d.client
	if !strings.HasPrefix(auth.TokenURL, "https://") {
		client = d.inside // of a name the address is known no earlier
	}
	source := &oauth.ClientCredentials{
		URL: auth.TokenURL, ID: auth.ClientID, Scopes: auth.Scopes, Early: early, HTTP: client,
		Secret: func(ctx context.Context) (string, error) { return c.secrets.lookup(ctx, auth.ClientSecret) },
	}
	c.cache = tokens.New(tokens.SourceFunc(func(ctx context.Context) (tokens.Token, error) {
		t, err := source.Token(ctx)
		if errors.Is(err, webhook.ErrBlocked) {
			err = webhook.ErrBlocked // what a name resolves to inside is for the operator alone
		}
		if err != nil && !errors.Is(err, ErrSecret) {
			err = fmt.Errorf("%w: %w", ErrSecret, err)
		}
		fetched(ctx, err)
		if err != nil {
			err = fetchError{err}
		}
		return t, err
	}))
	return c
}

// fetchError brings the error of a fetch through the cache, which puts words of
// its own before it: an operator reads what is not available, and where.
type fetchError struct{ error }

// refreshable reports whether a refused credential can be replaced.
func (c *authorization) refreshable() bool { return c.auth != nil && c.auth.TokenURL != "" }

// drop forgets a token that was refused.
func (c *authorization) drop() {
	if c.cache == nil {
		return
	}
	if t, ok := c.cache.Current(); ok {
		c.cache.Refused(t)
	}
}

// value returns the Authorization, or "" when the endpoint has none.
func (c *authorization) value(ctx context.Context) (string, error) {
	switch {
	case c.auth == nil:
		return "", nil
	case c.cache == nil:
		return c.secrets.lookup(ctx, c.auth.Secret)
	}
	t, err := c.cache.Token(ctx)
	if err == nil {
		return t.Value, nil
	}
	if e, ok := errors.AsType[fetchError](err); ok {
		return "", e.error
	}
	return "", fmt.Errorf("%w: token request: %w", ErrSecret, err)
}

// ready records that a look which began at the given time found all credentials that an
// attempt needs. When the endpoint was held, its deliveries go on at once.
func (r *receiver) ready(look time.Time) {
	r.mu.Lock()
	defer r.unlock()
	r.found(credential, look)
}

// unready records that an attempt lacked one, and reports whether that counts: see
// [hold.missing].
func (r *receiver) unready(a *attempt) (counts bool) {
	r.mu.Lock()
	defer r.unlock()
	return r.missing(credential, a.missing(), a.look)
}

// lacks returns which credential is not to be had; "" when none is missing, as far as is
// known.
func (r *receiver) lacks() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holds[credential].why
}

// bare takes the URL, which may hold a query, out of a client's error.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
