package idempotency

import (
	"context"
	"log/slog"
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
	if b.closed == nil {
		b.closed = make(chan struct{})
	}
	if b.flushing || b.over || len(b.kept) == 0 {
		return
	}
	b.flushing = true
	go b.run(b.closed)
}

// run writes until nothing is kept.
func (b *Backlog) run(closed <-chan struct{}) {
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

// idle reports that nothing is kept, and that run may end therefore.
func (b *Backlog) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) > 0 {
		return false
	}
	b.flushing = false
	b.log(slog.LevelInfo, "idempotency: the store is back, the ends of all runs are in it", slog.Int("written", b.written))
	b.written = 0
	return true
}

// pass tries the end that waits longest and, when the store takes it, all others.
// It returns how many it was rid of. An end that fails goes behind the others, so
// that one that no store would take holds up none.
func (b *Backlog) pass(ctx context.Context) int {
	first := b.next()
	if first == nil {
		return 0
	}
	if !b.try(ctx, first) {
		b.setDown(true)
		return 0
	}
	b.setDown(false)
	var done, failed atomic.Int64
	done.Add(1)
	b.mu.Lock()
	left := len(b.queue)
	b.mu.Unlock()
	var turns atomic.Int64
	var workers sync.WaitGroup
	for range min(flushWorkers, left) {
		workers.Go(func() {
			for turns.Add(1) <= int64(left) && failed.Load() < flushWorkers && ctx.Err() == nil {
				k := b.next()
				switch {
				case k == nil:
					return
				case b.try(ctx, k):
					done.Add(1)
				default:
					failed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return int(done.Load())
}

// next takes the first end off the queue that is still kept. The caller puts it
// back or lets it go.
func (b *Backlog) next() *keptEnding {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		k := b.queue[0]
		b.queue = b.queue[1:]
		if !k.gone {
			return k
		}
	}
	return nil
}

// try writes one end, and reports whether it is no longer kept. Otherwise it goes
// behind the others, and its lease is renewed where a store that does not take the
// end may take that.
func (b *Backlog) try(ctx context.Context, k *keptEnding) bool {
	b.mu.Lock()
	file := b.file
	b.mu.Unlock()
	e, err := k.whole(file)
	if err != nil { // a damaged file: no try can mend it
		b.drop(k, "idempotency: an end that was kept cannot be read: its outcome is unknown now", err)
		return true
	}
	switch err := b.write(ctx, &e); {
	case err == nil:
		b.mu.Lock()
		b.written++
		b.remove(k)
		b.mu.Unlock()
		return true
	case isFenced(err) && b.stored(ctx, &e):
		b.drop(k, "", nil) // an earlier try was done, and its response lost
		return true
	case isFenced(err):
		b.drop(k, "idempotency: another has decided this key meanwhile, the end that was kept is dropped", nil)
		return true
	case e.Retention > 0 && time.Since(k.since) > e.Retention:
		b.drop(k, "idempotency: the store has not taken this end for as long as it is kept: its outcome is lost", err)
		return true
	}
	if now := time.Now(); e.Lease > 0 && now.Sub(k.renewed) > e.Lease/3 && ctx.Err() == nil {
		k.renewed = now
		limited := limit(ctx, endTimeout)
		_ = b.Store.Renew(limited, e.Token, e.Lease)
		limited.end()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !k.gone {
		b.queue = append(b.queue, k)
	}
	return false
}

// stored reports whether the record has ended by e itself.
func (b *Backlog) stored(ctx context.Context, e *Ending) bool {
	limited := limit(ctx, endTimeout)
	defer limited.end()
	rec, err := b.Store.Get(limited, e.Token.ID)
	ended := map[Disposition]State{Keep: Completed, Retry: Released, Hold: Held}[e.Disposition]
	return err == nil && rec.State == ended && rec.Owner == e.Token.Owner && rec.Fence == e.Token.Fence
}

// drop lets an end go that is not to be written, and says why; an empty text says
// nothing.
func (b *Backlog) drop(k *keptEnding, text string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text != "" && !k.gone {
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
	if b.closed == nil {
		b.closed = make(chan struct{})
	}
	close(b.closed)
	b.mu.Unlock()
	back := wait.Backoff{Base: flushBase, Cap: flushCap}
	for b.Stats().Waiting > 0 {
		b.pass(ctx)
		if b.unspooled() == 0 || !wait.Sleep(ctx, back.Next()) {
			break
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	spooled := 0
	for _, k := range b.kept {
		if k.at.length > 0 {
			spooled++
			continue
		}
		b.log(slog.LevelError, "idempotency: the store is down and the process ends: the outcome of this key is lost", k.end.attrs()...)
	}
	if spooled > 0 {
		b.log(slog.LevelWarn, "idempotency: the store is down, ends of runs are in the spool and come back at the next start", slog.Int("spooled", spooled))
	}
	if err := b.file.close(); err != nil {
		b.log(slog.LevelError, "idempotency: the spool was not closed well", slog.String("error", err.Error()))
	}
	b.file = nil
}

// unspooled is the number of ends that would be lost with the process.
func (b *Backlog) unspooled() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.kept {
		if k.at.length == 0 {
			n++
		}
	}
	return n
}
