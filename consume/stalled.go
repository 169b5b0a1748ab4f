package consume

import (
	"context"
	"log/slog"
	"time"
)

// Stalled counts what of a consumer does not move. It is for metrics: see the packages
// promretry and otelretry.
type Stalled struct {
	Sources  int // that bring nothing, since events that wait for retries have all places
	Handlers int // that go on after their context has ended, see [Options.Grace]
}

// Stalled returns what does not move now.
func (c *Consumer) Stalled() Stalled { return Stalled{int(c.full.Load()), int(c.left.Load())} }

// Full is for adapters: events that wait for their retries have all places of a source,
// such as a partition, and it brings nothing until one of them is done. It writes a line
// to the log, and so does moves, which is to be called once when that is over.
func (c *Consumer) Full(source string, waiting int) (moves func()) {
	began := time.Now()
	c.full.Add(1)
	tell := func(level slog.Level, text string, more slog.Attr) {
		c.Logger.LogAttrs(context.Background(), level, text, slog.String("group", c.Group), slog.String("source", source), more)
	}
	tell(slog.LevelWarn, "events that wait for retries occupy all slots: no other events are handled", slog.Int("waiting", waiting))
	return func() {
		c.full.Add(-1)
		tell(slog.LevelInfo, "events are handled again", slog.Duration("stood", time.Since(began)))
	}
}
