package sqlstore

import (
	"context"
	"sync"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// channel is the PostgreSQL channel on which accepted work is made known.
const channel = "forbear_work"

// notifyEvery bounds how often: one notification wakes for everything.
const notifyEvery = 20 * time.Millisecond

// listenPause is the wait before a dropped connection is tried again. Polling
// goes on meanwhile.
const listenPause = time.Second

// notifier lets other processes know of work, coalesced, after the commit and on a
// connection of the pool: a NOTIFY inside of a transaction would serialise the
// commits of all.
type notifier struct {
	mu      sync.Mutex
	send    func() // nil: there are no others
	pending bool
}

// wake lets others know soon. The first of many calls does it for all.
func (n *notifier) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.send == nil || n.pending {
		return
	}
	n.pending = true
	// Later, and off this goroutine: the caller has its commit and waits for no
	// notification.
	time.AfterFunc(notifyEvery, func() {
		n.mu.Lock()
		n.pending = false
		n.mu.Unlock()
		n.send()
	})
}

// sendNotify is best effort: polling finds what a notification missed.
func (db *DB) sendNotify() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = db.reads.ExecContext(ctx, "SELECT pg_notify('"+channel+"', '')")
}

// Wakes implements webhook.Waker.
func (w *Webhooks) Wakes(ctx context.Context, wake func()) {
	w.db.follow(ctx, channel, func(string) { wake() })
}

// follow listens to a channel until ctx ends, on one connection after the other.
func (db *DB) follow(ctx context.Context, channel string, wake func(payload string)) {
	if db.listen == nil {
		return
	}
	for ctx.Err() == nil {
		_ = db.listen(ctx, channel, wake) // the connection may drop
		wait.Sleep(ctx, listenPause)
	}
}
