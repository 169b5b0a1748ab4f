package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// grace is how long a record outlives its expiry, so that its fence survives
// a late write. The scripts' prelude has the same figure.
const grace = time.Hour

// sweepSteps bounds the steps of one sweep: with scanCount, about 10,000
// names.
const sweepSteps = 20

// cursors remember how far the sweeps of each node have come.
type cursors struct {
	mu sync.Mutex
	at map[string]uint64
}

// Sweep implements idempotency.Store. The server deletes expired records by
// itself, an hour after their time; a sweep frees the memory sooner. Each
// looks at about 10,000 names of each node at most, and the next one goes on
// from there.
func (i *Idempotency) Sweep(ctx context.Context, limit int) (n int, err error) {
	i.sweeps.mu.Lock()
	defer i.sweeps.mu.Unlock()
	if i.sweeps.at == nil {
		i.sweeps.at = map[string]uint64{}
	}
	var mu sync.Mutex
	err = i.nodes(ctx, func(ctx context.Context, node string, c redis.Cmdable) error {
		mu.Lock()
		defer mu.Unlock()
		swept, err := i.sweep(ctx, c, node, limit-n)
		n += swept
		return err
	})
	return n, failed("sweep", err)
}

// sweep deletes at most limit records of a node.
func (i *Idempotency) sweep(ctx context.Context, c redis.Cmdable, node string, limit int) (n int, err error) {
	match := escape(i.opts.Prefix) + "*"
	for step := 0; step < sweepSteps && n < limit; step++ {
		names, next, err := c.Scan(ctx, i.sweeps.at[node], match, scanCount).Result()
		if err != nil {
			return n, err
		}
		expired, err := living(ctx, c, names, func(ttl time.Duration) bool { return ttl >= 0 && ttl <= grace })
		if err != nil {
			return n, err
		}
		left := len(expired) > limit-n // for the next sweep, which looks here again
		for _, name := range expired[:min(len(expired), limit-n)] {
			// Looked at anew: it may have been claimed meanwhile.
			gone, err := c.Eval(ctx, sweepSource, []string{name}).Int()
			if err != nil {
				return n, err
			}
			n += gone
		}
		if left {
			break
		}
		if i.sweeps.at[node] = next; next == 0 {
			break
		}
	}
	return n, nil
}
