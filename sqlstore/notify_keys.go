package sqlstore

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/forbear-go/forbear/idempotency"
)

// keysChannel is the PostgreSQL channel on which it is made known which idempotency
// records have ended, by the digests of their keys.
const keysChannel = "forbear_keys"

// maxPayload is below PostgreSQL's bound of 8,000 bytes for one notification.
const maxPayload = 7900

// endings gathers the keys of records that have ended, and lets other processes know
// soon: one notification for many, after the commits and off their way.
type endings struct {
	mu      sync.Mutex
	keys    []string
	pending bool
}

// ended lets other processes know that the record of id has ended. Best effort: they
// poll, too. Where this process does not listen, others are not expected to.
func (db *DB) ended(id idempotency.ID, err error) {
	if err != nil || db.listen == nil || db.notify.send == nil {
		return
	}
	e := &db.endings
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keys = append(e.keys, id.Key)
	if !e.pending {
		e.pending = true
		time.AfterFunc(notifyEvery, db.sendEndings)
	}
}

// sendEndings sends what has been gathered.
func (db *DB) sendEndings() {
	e := &db.endings
	e.mu.Lock()
	keys := e.keys
	e.keys, e.pending = nil, false
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var payload strings.Builder
	for i, k := range keys {
		payload.WriteString(k)
		payload.WriteByte(' ')
		if last := i == len(keys)-1; last || payload.Len()+len(keys[i+1]) >= maxPayload {
			if _, err := db.reads.ExecContext(ctx, "SELECT pg_notify($1, $2)", keysChannel, payload.String()); err != nil {
				return // polling finds what a notification missed
			}
			payload.Reset()
		}
	}
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
