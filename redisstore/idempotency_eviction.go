package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ErrEviction refuses a server that may evict idempotency records: a
// repeated request would then be carried out again.
var ErrEviction = errors.New("the server evicts keys under memory pressure: set maxmemory-policy noeviction")

// inspect reads the settings of every server: one node that evicts is enough
// to lose records.
func (i *Idempotency) inspect(ctx context.Context) error {
	var mu sync.Mutex
	i.durable = true
	return i.nodes(ctx, func(ctx context.Context, _ string, c redis.Cmdable) error {
		memory, err := info(ctx, c, "memory")
		if err != nil {
			return err
		}
		persistence, err := info(ctx, c, "persistence")
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if policy := memory["maxmemory_policy"]; policy != "noeviction" {
			if !i.opts.Evicting {
				return fmt.Errorf("%w, not %q", ErrEviction, policy)
			}
			i.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "idempotency records may be evicted before their time (R-6)", slog.String("maxmemory_policy", policy))
		}
		if persistence["aof_enabled"] != "1" {
			i.durable = false
			i.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "idempotency records are lost when the Redis server restarts: set appendonly yes")
		}
		return nil
	})
}

// info returns a section of the server's INFO, which needs no
// administrator's rights, unlike CONFIG.
func info(ctx context.Context, c redis.Cmdable, section string) (map[string]string, error) {
	text, err := c.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("the server does not show its settings: %w", err)
	}
	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts, nil
}
