package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// client is the one kind of client that both contenders have. It counts its
// round trips. A nil client is that of who has no Redis.
type client struct {
	*redis.Client
	sent atomic.Int64
}

// client connects to an emptied server.
func (s server) client() (*client, error) {
	c := &client{Client: redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true, MaxRetries: -1})}
	c.AddHook(hook{c})
	return c, c.FlushAll(context.Background()).Err()
}

func (c *client) close() {
	if c != nil {
		_ = c.Close()
	}
}

func (c *client) trips() int64 {
	if c == nil {
		return 0
	}
	return c.sent.Load()
}

// cpuTime is what the server has used so far.
func (c *client) cpuTime(ctx context.Context) time.Duration {
	if c == nil {
		return 0
	}
	sum := 0.0
	for line := range strings.Lines(c.Info(ctx, "cpu").Val()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var seconds float64
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			if _, err := fmt.Sscan(value, &seconds); err == nil {
				sum += seconds
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// hook counts the commands of a client.
type hook struct{ c *client }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.c.sent.Add(1)
		return next(ctx, cmds)
	}
}
