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
// commits of all. What this process has claimed meanwhile is no news to the others:
// they would only look, and claim nothing.
type notifier struct {
	mu      sync.Mutex
	send    func() // nil: there are no others
	pending bool
	news    bool                 // of another kind
	work    map[string]time.Time // endpoints with new work, and since when
}

// wake lets others know soon.
func (n *notifier) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.news = true
	n.soon()
}

// accepted lets others know of messages soon, unless they are claimed here first.
func (n *notifier) accepted(rows []encoded) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.send == nil {
		return
	}
	if n.work == nil {
		n.work = map[string]time.Time{}
	}
	now := time.Now()
	for i := range rows {
		for _, e := range rows[i].Endpoints {
			n.work[e] = now
		}
	}
	n.soon()
}

// drained notes that a claim which began at a time has left nothing due for
// endpoints.
func (n *notifier) drained(endpoints []string, began time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range endpoints {
		if since, ok := n.work[e]; ok && began.After(since) {
			delete(n.work, e)
		}
	}
}

// soon sends what there is to let others know of. The first of many calls does it for
// all. The caller holds mu.
func (n *notifier) soon() {
	if n.send == nil || n.pending {
		return
	}
	n.pending = true
	// Later, and off this goroutine: the caller has its commit and waits for no
	// notification.
	time.AfterFunc(notifyEvery, func() {
		n.mu.Lock()
		news := n.news || len(n.work) > 0
		n.pending, n.news, n.work = false, false, nil
		n.mu.Unlock()
		if news {
			n.send()
		}
	})
}

// sendNotify is best effort: polling finds what a notification missed.
func (db *DB) sendNotify() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = db.reads.ExecContext(ctx, "SELECT pg_notify('"+channel+"', '')")
}

// Wakes implements store.Waker.
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
