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

// Sweep implements idempotency.Store. The server deletes expired records by itself, an
// hour after their time; a sweep looks at all names and frees the memory sooner.
func (i *Idempotency) Sweep(ctx context.Context, limit int) (n int, err error) {
	var mu sync.Mutex
	err = i.nodes(ctx, func(ctx context.Context, _ string, c redis.Cmdable) error {
		return scan(ctx, c, 0, i.all(), func(names []string, _ uint64) (bool, error) {
			expired, err := living(ctx, c, names, func(ttl time.Duration) bool { return ttl >= 0 && ttl <= grace })
			mu.Lock()
			defer mu.Unlock()
			for _, name := range expired[:min(len(expired), limit-n)] {
				// The script looks again: it may have been claimed meanwhile.
				gone, err := sweepScript.Run(ctx, i.client, []string{name}).Int()
				if err != nil {
					return false, err
				}
				n += gone
			}
			return n < limit, err
		})
	})
	return n, failed("sweep", err)
}
