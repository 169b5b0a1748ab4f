package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Token is a credential as it goes into an Authorization header, scheme
// included: "Bearer abc". It is redacted wherever it is printed or logged.
type Token struct {
	Value string
	// Expires is when it stops being good; zero means that nobody knows.
	Expires time.Time
}

// String returns a stand-in: a token is a secret.
func (t Token) String() string { return "[redacted]" }

// GoString returns the same stand-in, for %#v.
func (t Token) GoString() string { return t.String() }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// scheme returns the part before the first space, in lower case.
func (t Token) scheme() string {
	s, _, _ := strings.Cut(t.Value, " ")
	return strings.ToLower(s)
}

// Source fetches a token. An oauth2.Source fits with three lines. An
// error that matches [ErrRevoked] is final.
type Source interface {
	Token(ctx context.Context) (Token, error)
}

// SourceFunc is a function that is a [Source].
type SourceFunc func(ctx context.Context) (Token, error)

// Token calls f.
func (f SourceFunc) Token(ctx context.Context) (Token, error) { return f(ctx) }

// ErrRevoked is what a [Source] returns, wrapped or not, when no
// token will ever be had again with the credentials at hand.
var ErrRevoked = errors.New("token permanently revoked")

// What errors of a [Cache] match.
var (
	ErrRefreshFailed = errors.New("credentials could not be refreshed")
	ErrWeak          = errors.New("a retry would carry a weaker credential or none")
)

// Cache hands out one token to all attempts, and fetches a new one when
// it has expired or was refused. However many calls ask, one fetch is
// under way at a time, and no lock is held meanwhile. It is safe for concurrent
// use. Make it with [New].
type Cache struct {
	source Source
	early  time.Duration

	mu     sync.Mutex
	token  Token
	fetch  *fetch // under way, or nil
	scheme string // of the first token; later ones must not be weaker
}

// fetch is one run of the source that many callers may wait for.
type fetch struct {
	done  chan struct{}
	token Token
	err   error
}

const (
	// expiryMargin is how long before its end a token is replaced.
	expiryMargin = 10 * time.Second
	// fetchLimit bounds one fetch, whoever waits for it.
	fetchLimit = 10 * time.Second
)

// New returns credentials that come from source.
func New(source Source) *Cache {
	return &Cache{source: source, early: expiryMargin}
}

// Token returns a token that has not expired, fetching one if need be. Its
// error matches [ErrRefreshFailed], or [ErrWeak] when the source
// changed to another scheme or to nothing.
func (c *Cache) Token(ctx context.Context) (Token, error) {
	c.mu.Lock()
	if c.fresh() {
		defer c.mu.Unlock()
		return c.token, nil
	}
	f := c.fetch
	if f == nil {
		f = &fetch{done: make(chan struct{})}
		c.fetch = f
		// The fetch serves everybody who waits, so it outlives its first caller.
		go c.run(context.WithoutCancel(ctx), f)
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.token, f.err
	case <-ctx.Done():
		return Token{}, context.Cause(ctx)
	}
}

// Current returns the token at hand, if it has not expired. It fetches nothing.
func (c *Cache) Current() (Token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token, c.fresh()
}

// fresh reports whether the token is there and good; c.mu is held.
func (c *Cache) fresh() bool {
	return c.token.Value != "" && (c.token.Expires.IsZero() || time.Until(c.token.Expires) > c.early)
}

func (c *Cache) run(ctx context.Context, f *fetch) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	t, err := c.source.Token(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrRefreshFailed, err)
	case t.Value == "" || c.scheme != "" && t.scheme() != c.scheme:
		err = ErrWeak
	default:
		c.token, c.scheme = t, t.scheme()
		f.token = t
	}
	f.err = err
	c.fetch = nil
	close(f.done)
}

// Refused tells that the server did not accept t. Only that very token is
// dropped: a newer one that another call has fetched meanwhile stays.
func (c *Cache) Refused(t Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token.Value == t.Value {
		c.token = Token{}
	}
}
