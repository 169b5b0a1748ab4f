package redisstore

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/internal/gather"
)

// Scripts that are to run while others are under way go as one pipeline: one
// write and, under appendfsync always, one sync of the server's disk. No one waits
// for a pipeline to fill, and what comes alone goes alone.

// run is one run of a script on one record.
type run struct {
	script *redis.Script
	key    string
	args   []any
}

const (
	// Two pipelines are under way at most: while the server syncs one, the next
	// is on its way.
	batchWidth = 2
	batchMax   = 256
	batchBytes = 1 << 20 // of the responses in one pipeline
	// batchTime bounds a pipeline whose callers have no deadlines.
	batchTime = 10 * time.Second
)

// gather prepares the batches.
func (i *Idempotency) gather() {
	i.runs.Width, i.runs.Max, i.runs.Bytes, i.runs.Do = batchWidth, batchMax, batchBytes, i.pipe
}

// pipe runs a batch. Each script succeeds or fails for itself: a pipeline is no
// transaction, and no more is promised of what is in it than of each alone.
func (i *Idempotency) pipe(batch []*gather.Call[run, *redis.Cmd]) {
	left := gather.Present(batch) // a caller that has left claims nothing
	alone := func(c *gather.Call[run, *redis.Cmd]) {
		c.End(c.Arg.script.Run(c.Ctx, i.client, []string{c.Arg.key}, c.Arg.args...), nil)
	}
	switch len(left) {
	case 0:
		return
	case 1:
		alone(left[0])
		return
	}
	ctx, cancel := gather.Lasting(left, batchTime)
	defer cancel()
	pipe := i.client.Pipeline()
	cmds := make([]*redis.Cmd, len(left))
	for n, c := range left {
		cmds[n] = c.Arg.script.EvalSha(ctx, pipe, []string{c.Arg.key}, c.Arg.args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for n, c := range left {
		if redis.HasErrorPrefix(cmds[n].Err(), "NOSCRIPT") {
			go alone(c) // after a restart of the server: sent whole
			continue
		}
		c.End(cmds[n], nil)
	}
}
