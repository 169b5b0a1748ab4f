package durable

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
)

// tokenAge is for how long a token that was looked up is good without another look:
// as long as one that was revoked elsewhere still works.
const tokenAge = 5 * time.Second

// maxTokens bounds what a cache holds: only tokens that exist are in it.
const maxTokens = 10_000

// tokenCache looks tokens up in the store, and each of them once in a while only. It
// is safe for concurrent use.
type tokenCache struct {
	store *sqlstore.Tokens
	log   *slog.Logger

	mu     sync.Mutex
	known  map[[sha256.Size]byte]knownToken // by digest
	exists bool                             // whether there is any, or was
	gone   bool                             // the last one, which was logged
	looked time.Time                        // when exists was read
}

type knownToken struct {
	sqlstore.Token
	until time.Time
}

// find returns the token of a text; see [sqlstore.Tokens.Find].
func (c *tokenCache) find(ctx context.Context, text string) (sqlstore.Token, error) {
	now, digest := time.Now(), sha256.Sum256([]byte(text))
	c.mu.Lock()
	k, ok := c.known[digest]
	c.mu.Unlock()
	if ok && now.Before(k.until) && now.Before(k.Expires) {
		return k.Token, nil
	}
	t, err := c.store.Find(ctx, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		delete(c.known, digest)
		return t, err
	case c.known == nil || len(c.known) >= maxTokens:
		c.known = map[[sha256.Size]byte]knownToken{}
	}
	c.known[digest] = knownToken{t, now.Add(tokenAge)}
	return t, nil
}

// any reports whether there is a token, or has been: with the last one the API does not
// open to those who have none. That there is one is not forgotten when the
// store is away.
func (c *tokenCache) any(ctx context.Context) (bool, error) {
	c.mu.Lock()
	exists, fresh := c.exists, time.Since(c.looked) < tokenAge
	c.mu.Unlock()
	if fresh {
		return exists, nil
	}
	exists, err := c.store.Any(ctx)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looked = time.Now(); !exists && c.exists && !c.gone {
		c.log.Warn("the last token of the delivery API was revoked: all calls are refused until forbear token create makes another")
	}
	c.gone = !exists && c.exists
	c.exists = c.exists || exists
	return c.exists, nil
}

// forget makes changes by this process known to it at once.
func (c *tokenCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.looked = nil, time.Time{}
}
