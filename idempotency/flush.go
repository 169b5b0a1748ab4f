package idempotency

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// The waits between two tries of a store that is down, with full jitter, and
// how many ends are written side by side when it is back.
const (
	flushBase    = 100 * time.Millisecond
	flushCap     = 2 * time.Second
	flushWorkers = 8
)

// start begins to write what is kept, unless that goes on already. The goroutine
// ends with the last end that is kept, or with Close. b.mu is held.
func (b *Backlog) start() {
	if b.flushing || b.over || len(b.kept) == 0 {
		return
	}
	b.flushing = true
	go b.flush(b.closing())
}

// closing is closed when Close is called. b.mu is held.
func (b *Backlog) closing() chan struct{} {
	if b.closed == nil {
		b.closed = make(chan struct{})
	}
	return b.closed
}

// flush writes until nothing is kept.
func (b *Backlog) flush(closed <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	back := wait.Backoff{Base: flushBase, Cap: flushCap}
	for {
		if wait.Woken(ctx, back.Next(), closed) || b.idle() {
			return
		}
		if b.pass(ctx) > 0 {
			back.Reset()
		}
	}
}

// idle reports that nothing is kept, so that flush ends.
func (b *Backlog) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) > 0 {
		return false
	}
	b.flushing = false
	b.log(slog.LevelInfo, "idempotency: the store is back and has all outcomes", slog.Int("written", b.written))
	b.written = 0
	return true
}

// pass asks the store to take one end and, when it does, all others. It returns how many
// are kept no longer. It begins with any of them, so that an end that no store would take
// does not delay the others for long.
func (b *Backlog) pass(ctx context.Context) (done int) {
	b.mu.Lock()
	ends := slices.Collect(maps.Values(b.kept)) // in random order
	b.mu.Unlock()
	if len(ends) == 0 || !b.try(ctx, ends[0]) {
		return 0
	}
	var taken, failed atomic.Int64
	next := make(chan *keptEnding)
	var workers sync.WaitGroup
	for range min(flushWorkers, len(ends)) {
		workers.Go(func() {
			for k := range next {
				if b.try(ctx, k) {
					taken.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	for _, k := range ends[1:] {
		if failed.Load() >= flushWorkers || ctx.Err() != nil {
			break // it is down again
		}
		next <- k
	}
	close(next)
	workers.Wait()
	return 1 + int(taken.Load())
}

// try writes one end, and reports whether it is no longer kept. Otherwise its lease is
// renewed now and then: a store that does not take the end may take that.
func (b *Backlog) try(ctx context.Context, k *keptEnding) bool {
	e := &k.end
	switch err := b.write(ctx, e); {
	case err == nil:
		b.mu.Lock()
		b.written++
		b.remove(k)
		b.mu.Unlock()
		return true
	case isFenced(err) && b.stored(ctx, e): // an earlier try succeeded, and its response was lost
		b.drop(k, "", nil)
		return true
	case isFenced(err):
		b.drop(k, "idempotency: another run owns this key now: the kept outcome is dropped", nil)
		return true
	case e.Retention > 0 && time.Since(k.since) > e.Retention:
		b.drop(k, "idempotency: the store did not take this outcome within its retention: it is lost", err)
		return true
	}
	now := time.Now()
	b.mu.Lock()
	renew := e.Lease > 0 && now.Sub(k.renewed) > e.Lease/3 && ctx.Err() == nil
	if renew {
		k.renewed = now
	}
	b.mu.Unlock()
	if renew {
		limited, cancel := context.WithTimeout(ctx, endTimeout)
		defer cancel()
		_ = b.Store.Renew(limited, e.Token, e.Lease)
	}
	return false
}

// stored reports whether the record has ended by e itself.
func (b *Backlog) stored(ctx context.Context, e *Ending) bool {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	rec, err := b.Store.Get(ctx, e.Token.ID)
	ended := map[Disposition]State{Keep: Completed, Retry: Released, Hold: Held}[e.Disposition]
	return err == nil && rec.State == ended && rec.Owner == e.Token.Owner && rec.Fence == e.Token.Fence
}

// drop stops keeping an end that is not to be written, and logs why; an empty text logs
// nothing.
func (b *Backlog) drop(k *keptEnding, text string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text != "" && b.kept[k.end.Token.ID] == k {
		attrs := k.end.attrs()
		if err != nil {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		b.log(slog.LevelError, text, attrs...)
	}
	b.remove(k)
}

// Close writes what is kept, until ctx ends; what is in a spool already is tried
// once, and comes back at the next start. Each end that is lost is logged. A Backlog
// that is closed keeps nothing more. Close the store after it.
func (b *Backlog) Close(ctx context.Context) {
	b.mu.Lock()
	if b.over {
		b.mu.Unlock()
		return
	}
	b.over = true
	close(b.closing())
	b.mu.Unlock()
	back := wait.Backoff{Base: flushBase, Cap: flushCap}
	for b.Stats().Waiting > 0 {
		b.pass(ctx)
		if b.unspooled() == 0 || !wait.Sleep(ctx, back.Next()) {
			break
		}
	}
	lost := b.unspooled()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kept {
		if !k.spooled {
			b.log(slog.LevelError, "idempotency: the process ends while the store is down: the outcome of this key is lost", k.end.attrs()...)
		}
	}
	if spooled := len(b.kept) - lost; spooled > 0 {
		b.log(slog.LevelWarn, "idempotency: the store is down: the spool keeps the outcomes until the next start", slog.Int("spooled", spooled))
	}
	if err := b.file.close(); err != nil {
		b.log(slog.LevelError, "idempotency: the spool did not close cleanly", slog.String("error", err.Error()))
	}
	b.file = nil
}

// unspooled is the number of ends that would be lost with the process.
func (b *Backlog) unspooled() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kept {
		if !k.spooled {
			n++
		}
	}
	return n
}
