package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/idempotency"
)

// censusSteps bounds the steps of one census: with scanCount, about 50,000 names
// of each node.
const censusSteps = 100

// errCounting is that of a census before the first one is complete.
var errCounting = errors.New("the records are still being counted")

// censuses is the latest complete census of each node, and the one under way.
type censuses struct {
	mu sync.Mutex
	at map[string]*nodeCensus
}

type nodeCensus struct {
	cursor   uint64
	part     idempotency.Census
	latest   idempotency.Census
	complete bool
}

// Census implements idempotency.Counter. Redis has no index of what waits: each
// call looks at about 50,000 names of each node, and the next one goes on from
// there. What is returned is the latest count that is complete; before there is
// one, it is an error.
func (i *Idempotency) Census(ctx context.Context) (total idempotency.Census, err error) {
	i.censuses.mu.Lock()
	defer i.censuses.mu.Unlock()
	if i.censuses.at == nil {
		i.censuses.at = map[string]*nodeCensus{}
	}
	var mu sync.Mutex
	err = i.nodes(ctx, func(ctx context.Context, node string, c redis.Cmdable) error {
		mu.Lock()
		defer mu.Unlock()
		n := i.censuses.at[node]
		if n == nil {
			n = &nodeCensus{}
			i.censuses.at[node] = n
		}
		if err := i.count(ctx, c, n); err != nil {
			return err
		}
		if !n.complete {
			return errCounting
		}
		sum(&total.Requests, n.latest.Requests)
		sum(&total.Events, n.latest.Events)
		return nil
	})
	return total, failed("census", err)
}

// count continues the census of a node.
func (i *Idempotency) count(ctx context.Context, c redis.Cmdable, n *nodeCensus) error {
	now, err := c.Time(ctx).Result()
	if err != nil {
		return err
	}
	steps := 0
	return scan(ctx, c, n.cursor, i.all(), func(names []string, next uint64) (bool, error) {
		err := i.read(ctx, c, names, func(rec idempotency.Record) {
			rec.HoldAbandoned(now)
			n.part.Add(&rec, now)
		})
		if err != nil {
			return false, err
		}
		if n.cursor = next; next == 0 {
			n.latest, n.part, n.complete = n.part, idempotency.Census{}, true
		}
		steps++
		return steps < censusSteps, nil
	})
}

// sum adds what waits on one node to that of others.
func sum(total *idempotency.Waiting, w idempotency.Waiting) {
	total.Held += w.Held
	total.Overdue += w.Overdue
	total.HeldFor = max(total.HeldFor, w.HeldFor)
	total.OverdueFor = max(total.OverdueFor, w.OverdueFor)
}
