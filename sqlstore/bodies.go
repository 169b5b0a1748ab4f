package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A body may go earlier than the delivery that it was for. What stays of it is a
// digest in its place, sealed like the body was, so that the same message again is
// still told from another one.

// finishedMark is how far the sweep of bodies is among the finished deliveries, in
// the order of their end. Without it each sweep would pass all that have lost
// theirs.
type finishedMark struct {
	finished, id int64
}

// ended is a delivery that a sweep of bodies has come to.
type ended struct {
	finishedMark

	message   int64
	messageID string
	state     rowState
}

func scanEnded(r *sql.Rows) (e ended, err error) {
	err = r.Scan(&e.finished, &e.id, &e.message, &e.messageID, &e.state)
	return e, err
}

// bodySweep is the name of the sweep's row in forbear_sweeps.
const bodySweep = "bodies"

// DropBodies implements webhook.Store. Bodies are read and their digests made
// outside of the writers, for a body never changes.
func (w *Webhooks) DropBodies(ctx context.Context, age time.Duration, limit int) (int, error) {
	var from finishedMark
	err := w.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&from.finished, &from.id) },
		`SELECT finished, delivery FROM forbear_sweeps WHERE name = ?`, bodySweep)
	if err != nil {
		return 0, err
	}
	list, err := readAll(ctx, w.db, scanEnded, `SELECT finished, id, message, message_id, state FROM forbear_deliveries
		WHERE finished >= ? AND (finished > ? OR id > ?) AND finished < {now} ORDER BY finished, id LIMIT ?`, from.finished, from.finished, from.id, after(-age), limit)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	digests := make(map[int64][]byte, len(list))
	for _, e := range list {
		if e.state != delivered || digests[e.message] != nil {
			continue
		}
		if digests[e.message], err = w.digest(ctx, e.message); err != nil {
			return 0, err
		}
	}
	return do(ctx, w.db, func(t *tx) (int, error) {
		if mine, err := t.db.d.tryLock(t, sweepLock); err != nil || !mine {
			return 0, err
		}
		for _, e := range list {
			if err := t.dropBody(e, digests[e.message], after(-age)); err != nil {
				return 0, err
			}
		}
		to := list[len(list)-1].finishedMark
		_, err := t.exec(`INSERT INTO forbear_sweeps (name, finished, delivery) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET finished = EXCLUDED.finished, delivery = EXCLUDED.delivery`, bodySweep, to.finished, to.id)
		return len(list), err
	})
}

// digest returns what is kept of a message's body, or nil when the body has gone
// already.
func (w *Webhooks) digest(ctx context.Context, message int64) (digest []byte, err error) {
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var sealed []byte
		if err := r.Scan(&sealed); err != nil {
			return err
		}
		body, err := w.db.unseal(sealed)
		if err != nil {
			return err
		}
		digest, err = w.db.seal((&webhook.Message{Body: body}).Dropped().Body)
		return err
	}, `SELECT body FROM forbear_messages WHERE seq = ? AND dropped IS NULL`, message)
	return digest, err
}

// dropBody drops the body of a delivery's message, and with it what receivers
// responded, who may have quoted it. It stays while another delivery of the message
// is not that old, or may be redriven.
func (t *tx) dropBody(e ended, digest []byte, before after) error {
	if digest == nil {
		return nil
	}
	n, err := t.exec(`UPDATE forbear_messages SET body = ?, dropped = {t} WHERE seq = ? AND dropped IS NULL AND NOT EXISTS (
		SELECT 1 FROM forbear_deliveries d WHERE d.message_id = ? AND d.message = ? AND (NOT d.`+stateDelivered+` OR d.finished >= {t}))`,
		digest, after(0), e.message, e.messageID, e.message, before)
	if err != nil || n == 0 {
		return err
	}
	_, err = t.exec(`UPDATE forbear_attempts SET response = NULL WHERE response IS NOT NULL AND delivery IN (
		SELECT d.id FROM forbear_deliveries d WHERE d.message_id = ? AND d.message = ?)`, e.messageID, e.message)
	return err
}

// same reports whether m is the message that is stored.
func (k *known) same(m *webhook.Message) bool {
	switch {
	case k.erased:
		return k.sameErased(m)
	case !k.dropped:
		return m.SameContent(&k.Message)
	}
	digest := m.Dropped()
	return digest.SameContent(&k.Message)
}
