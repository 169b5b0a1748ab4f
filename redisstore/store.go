package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/budget"
	"github.com/redis/go-redis/v9"
)

//go:embed sync.lua
var syncSource string

var syncScript = redis.NewScript(syncSource)

// Store is a [budget.Store] on Redis 5 or later, or Valkey. One Store
// serves any number of budgets. It is safe for concurrent use.
type Store struct {
	client redis.Scripter
	prefix string
	close  func() error
}

// New returns a store over a client that the caller keeps and closes. Its
// options should have ContextTimeoutEnabled, or an unresponsive server holds
// a report for the client's own time-outs, and MaxRetries -1: the budget
// reports again by itself.
func New(client redis.Scripter) *Store {
	return &Store{client: client, prefix: "forbear:budget:", close: func() error { return nil }}
}

// Open returns a store for a URL such as redis://user:password@host:6379/0 or
// rediss:// for TLS, with a client of its own that is set up as [New] wishes.
// Close ends it. Nothing is dialed yet.
func Open(url string) (*Store, error) {
	opts, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	opts.PoolSize = 2
	client := redis.NewClient(opts)
	s := New(client)
	s.close = client.Close
	return s, nil
}

// parseURL returns the options of a client that keeps to its contexts and
// does not retry by itself: a retry inside the client would be a second
// layer of retries.
func parseURL(url string) (*redis.Options, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		// The error of a URL that cannot be parsed repeats it, password included.
		return nil, errors.New("redisstore: want a URL redis://[user:password@]host:port/database")
	}
	opts.ContextTimeoutEnabled = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	return opts, nil
}

// Close closes the client of a store that was made by [Open].
func (s *Store) Close() error { return s.close() }

// slots is how many parts a window has, here and in the script.
const slots = 30

// Sync implements [budget.Store] in one round trip; after a restart of
// the server it takes a second one, to load the script.
func (s *Store) Sync(ctx context.Context, key string, window time.Duration, r budget.Report) (budget.Reading, error) {
	if window < slots*time.Millisecond {
		return budget.Reading{}, fmt.Errorf("redisstore: window %v is shorter than %v", window, slots*time.Millisecond)
	}
	// The braces keep the keys of a budget on one node of a cluster.
	name := s.prefix + "{" + key + "}"
	got, err := syncScript.Run(ctx, s.client, []string{name + ":window", name + ":known", name + ":leases"},
		(window / slots).Microseconds(), r.Instance, r.Total.Initial, r.Total.Retries, r.Hold,
		r.Want, r.Limit, r.Lease.Milliseconds(), bit(r.Leave), window.Milliseconds(), recent(r.Recent)).Int64Slice()
	if err != nil {
		return budget.Reading{}, failed("sync", err)
	}
	if len(got) != 5 {
		return budget.Reading{}, fmt.Errorf("redisstore: sync: %d numbers, want 5", len(got))
	}
	return budget.Reading{
		Usage: budget.Usage{Initial: got[0], Retries: got[1]},
		Held:  got[2], Granted: got[3], Instances: int(got[4]),
	}, nil
}

// recent writes slots as "initial retries;", the newest first. One text is
// cheaper than sixty arguments.
func recent(slots []budget.Usage) string {
	b := make([]byte, 0, 16*len(slots))
	for _, u := range slots {
		b = fmt.Appendf(b, "%d %d;", u.Initial, u.Retries)
	}
	return string(b)
}
