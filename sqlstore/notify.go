package sqlstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/wait"
)

// The PostgreSQL channels on which is made known accepted work, and which idempotency
// records have ended, by the digests of their keys.
const (
	channel     = "forbear_work"
	keysChannel = "forbear_keys"
)

// maxPayload is below PostgreSQL's bound of 8,000 bytes for one notification.
const maxPayload = 7900

// notifyEvery bounds how often: one notification wakes for everything.
const notifyEvery = 20 * time.Millisecond

// listenPause is the wait before a dropped connection is tried again. Polling
// goes on meanwhile.
const listenPause = time.Second

// notifier lets other processes know of work, and of idempotency records that have ended:
// coalesced, after the commits and on a connection of the pool, since a NOTIFY inside of a
// transaction would serialise the commits of all. What this process has claimed meanwhile is
// no news to the others: they would only look, and claim nothing.
type notifier struct {
	mu      sync.Mutex
	send    func(news bool, keys []string) // nil: there are no others
	pending bool
	news    bool                 // of another kind
	work    map[string]time.Time // endpoints with new work, and since when
	keys    []string             // of records that have ended
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
		news, keys := n.news || len(n.work) > 0, n.keys
		n.pending, n.news, n.work, n.keys = false, false, nil, nil
		n.mu.Unlock()
		n.send(news, keys)
	})
}

// ended lets other processes know that the record of id has ended. Where this process does
// not listen, others are not expected to.
func (db *DB) ended(id idempotency.ID, err error) {
	n := &db.notify
	if err != nil || db.listen == nil || n.send == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys = append(n.keys, id.Key)
	n.soon()
}

// sendNotify is best effort: polling finds what a notification missed. Keys go many at a
// time.
func (db *DB) sendNotify(news bool, keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	send := func(channel, payload string) {
		_, _ = db.reads.ExecContext(ctx, "SELECT pg_notify($1, $2)", channel, payload)
	}
	if news {
		send(channel, "")
	}
	var payload strings.Builder
	for i, k := range keys {
		payload.WriteString(k)
		payload.WriteByte(' ')
		if last := i == len(keys)-1; last || payload.Len()+len(keys[i+1]) >= maxPayload {
			send(keysChannel, payload.String())
			payload.Reset()
		}
	}
}

// Wakes implements store.Waker.
func (w *Webhooks) Wakes(ctx context.Context, wake func()) {
	w.db.follow(ctx, channel, func(string) { wake() })
}

// Wakes implements idempotency.Waker. Without a listener, see [WithListener], it
// returns at once.
func (i *Idempotency) Wakes(ctx context.Context, wake func(key string)) {
	i.db.follow(ctx, keysChannel, func(payload string) {
		if payload == "" {
			wake("")
		}
		for key := range strings.FieldsSeq(payload) {
			wake(key)
		}
	})
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
