package credential

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Cache hands out one token to all attempts, and fetches a new one when it has
// expired or was refused. However many calls ask, one fetch is under way
// at a time, and no lock is held meanwhile. It is safe for concurrent use. Make
// it with [New].
type Cache struct {
	source Source

	mu     sync.Mutex
	token  Token
	fetch  *fetch // under way, or nil
	scheme string // of the first token; later ones must not be weaker
}

// fetch is one run of the source that many callers may wait for. Its token and
// error may be read once done is closed.
type fetch struct {
	done  chan struct{}
	token Token
	err   error
}

const (
	// expiryMargin is how long before its end a token is replaced: one that
	// expires on its way is refused.
	expiryMargin = 10 * time.Second
	// fetchLimit bounds one fetch. The callers' own contexts bound only their
	// waits for it.
	fetchLimit = 10 * time.Second
)

// New returns a cache of the tokens of source.
func New(source Source) *Cache { return &Cache{source: source} }

// Token returns a token that has not expired, fetching one if need be. Its
// error matches [ErrRefreshFailed], or [ErrWeak] when the source changed to
// another scheme or to nothing; when ctx ends first, it is the cause of that.
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
		// The fetch serves all callers that wait, so it outlives the first.
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

// Refused drops a token that a server did not accept. A newer one, which another
// call has fetched meanwhile, stays.
func (c *Cache) Refused(t Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token.Value == t.Value {
		c.token = Token{}
	}
}

// fresh reports whether the token is there and good; c.mu is held.
func (c *Cache) fresh() bool {
	return c.token.Value != "" && (c.token.Expires.IsZero() || time.Until(c.token.Expires) > expiryMargin)
}

// errLeft is the error of a source that does not return, since it has called
// runtime.Goexit as a test's FailNow does: its callers would wait for ever.
var errLeft = errors.New("the credential source ended its goroutine")

// run asks the source and ends f with what it says.
func (c *Cache) run(ctx context.Context, f *fetch) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	t, err := Token{}, errLeft
	defer func() { c.end(f, t, err) }()
	t, err = c.source.Token(ctx)
}

// end ends f with what the source has said.
func (c *Cache) end(f *fetch, t Token, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		f.err = fmt.Errorf("%w: %w", ErrRefreshFailed, err)
	case t.Value == "" || c.scheme != "" && t.scheme() != c.scheme:
		f.err = ErrWeak
	default:
		c.token, c.scheme = t, t.scheme()
		f.token = t
	}
	c.fetch = nil
	close(f.done)
}
