package sqlstore

import (
	"context"
	"errors"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// acceptEnd is what became of the last write that was to accept messages. What the store
// refuses by itself, such as a conflict, would have been written.
type acceptEnd struct {
	at     time.Time
	err    error
	failed int // in a row, this one among them
}

// How long an outcome counts when no other follows. A disk that is full has room for what
// is small, so that a probe alone would not see it. One that failed may have itself to
// blame, and the next ones would be taken: as many as this say that it is the database.
const (
	successLasts = 2 * time.Second
	failureLasts = 10 * time.Second
	failuresTell = 3
)

// accepted notes the end of a write that was to accept messages.
func (db *DB) accepted(err error) {
	end := &acceptEnd{at: time.Now(), err: err}
	if before := db.last.Load(); err != nil && !errors.Is(err, errOwn) {
		end.failed = 1
		if before != nil {
			end.failed += before.failed
		}
	}
	db.last.Store(end)
}

// probeWrites is the least time between two probes that write while all is well: each of
// them is 20 KiB in the log of an SQLite file.
const probeWrites = 30 * time.Second

// Probe returns why the database accepts no messages, or nil when it does. It takes the
// way of a write that accepts one, where that is undone: nothing is
// stored. What became of a message within the last seconds counts instead. Now and then,
// and as long as it fails, the probe goes on to the disk.
func (db *DB) Probe(ctx context.Context) error {
	if o := db.last.Load(); o != nil {
		ago := time.Since(o.at)
		switch {
		case o.failed == 0 && ago < successLasts:
			return nil
		case o.failed >= failuresTell && ago < failureLasts:
			return o.err
		}
	}
	began := time.Now()
	write := began.UnixNano()-db.probed.Load() >= int64(probeWrites)
	_, err := doAs(ctx, db, op{volatile: true}, func(t *tx) (struct{}, error) {
		err := t.couldAccept(probeEndpoints)
		if err == nil && !write {
			err = errTaken
		}
		return struct{}{}, err
	})
	switch {
	case errors.Is(err, errTaken):
		return nil
	case err != nil:
		db.probed.Store(0)
	default:
		db.probed.Store(began.UnixNano())
	}
	return err
}

// probeEndpoints are where a message is for that is accepted for a try only.
var probeEndpoints = []string{"probe"}

// couldAccept returns why a message without any peculiarity cannot be accepted now. What
// it does is undone in any case.
func (t *tx) couldAccept(endpoints []string) error {
	plain, err := t.db.encode(webhook.Message{ID: webhook.NewID("probe"), Endpoints: endpoints})
	if err != nil {
		return err
	}
	err = t.sheltered(func() error {
		if err := t.acceptAll([]*acceptance{{rows: []encoded{plain}}}); err != nil {
			return err
		}
		return errTaken
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// errTaken undoes what was accepted for a try only: it rolls back.
var errTaken = errors.New("taken")
