package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Wakes implements idempotency.Waker, on a connection of its own. The scripts publish
// the end of a run under the name of its record; a cluster passes it on to all nodes.
// The client subscribes again when the connection was lost.
func (i *Idempotency) Wakes(ctx context.Context, wake func(key string)) {
	sub := i.client.PSubscribe(ctx, i.all())
	defer func() { _ = sub.Close() }()
	heard := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-heard:
			if !ok {
				return
			}
			switch m := m.(type) {
			case *redis.Subscription: // it begins, or begins again
				wake("")
			case *redis.Message:
				if id, ok := i.parse(m.Channel); ok {
					wake(id.Key)
				}
			}
		}
	}
}
