package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A body may go earlier than the delivery that it was for. What stays of it is a
// digest in its place, sealed like the body was, so that the same message again is
// still told from another one.

// ended is a delivery that a sweep has come to. finished and id are how far the sweep of
// bodies is, in the order of their end. Without that each sweep would pass all that have
// lost theirs.
type ended struct {
	finished, id int64
	message      int64
	messageID    string
	state        rowState
}

// endedColumns are what scanEnded reads.
const endedColumns = `finished, id, message, message_id, state`

func scanEnded(r *sql.Rows) (e ended, err error) {
	err = r.Scan(&e.finished, &e.id, &e.message, &e.messageID, &e.state)
	return e, err
}

// bodySweep is the name of the sweep's row in forbear_sweeps.
const bodySweep = "bodies"

// DropBodies implements store.Store. Bodies are read and their digests made
// outside of the writers, for a body never changes. A batch takes as many round trips as
// one message.
func (w *Webhooks) DropBodies(ctx context.Context, age time.Duration, limit int) (int, error) {
	var from ended
	// A mark that is too young is of a clock that was ahead: what ended since is before it,
	// and all are looked at anew.
	err := w.db.each(ctx, func(r *sql.Rows) error { return r.Scan(&from.finished, &from.id) },
		`SELECT CASE WHEN finished > {t} THEN 0 ELSE finished END, delivery FROM forbear_sweeps WHERE name = ?`, after(ahead-age), bodySweep)
	if err != nil {
		return 0, err
	}
	list, err := readAll(ctx, w.db, scanEnded, `SELECT `+endedColumns+` FROM forbear_deliveries
		WHERE finished >= ? AND (finished > ? OR id > ?) AND finished < {now} ORDER BY finished, id LIMIT ?`, from.finished, from.finished, from.id, after(-age), limit)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	digests, err := w.digests(ctx, list)
	if err != nil {
		return 0, err
	}
	return do(ctx, w.db, func(t *tx) (int, error) {
		if mine, err := t.db.d.tryLock(t, sweepLock); err != nil || !mine {
			return 0, err
		}
		if err := t.dropBodies(list, digests, after(-age)); err != nil {
			return 0, err
		}
		to := list[len(list)-1]
		_, err := t.exec(`INSERT INTO forbear_sweeps (name, finished, delivery) VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET finished = EXCLUDED.finished, delivery = EXCLUDED.delivery`, bodySweep, to.finished, to.id)
		return len(list), err
	})
}

// bodyDigest is what is kept of a message's body.
type bodyDigest struct {
	Message int64  `json:"id"`
	Hex     string `json:"hex"` // sealed
}

// digests returns what is kept of the bodies of messages that have arrived, by the
// message. A body that cannot be read stays until its history goes.
func (w *Webhooks) digests(ctx context.Context, list []ended) (map[int64]bodyDigest, error) {
	var ids []int64
	names := map[int64]string{}
	for _, e := range list {
		if e.state == delivered {
			ids = append(ids, e.message)
			names[e.message] = e.messageID
		}
	}
	digests := make(map[int64]bodyDigest, len(ids))
	err := w.db.each(ctx, func(r *sql.Rows) error {
		var id, made int64
		var sealed []byte
		if err := r.Scan(&id, &sealed, &made); err != nil {
			return err
		}
		at := bodyOf(names[id], made)
		body, err := w.db.unseal(at, sealed)
		if err != nil {
			return nil
		}
		sealed, err = w.db.seal(at, (&webhook.Message{Body: body}).Dropped().Body)
		digests[id] = bodyDigest{id, hex.EncodeToString(sealed)}
		return err
	}, `SELECT seq, body, created FROM forbear_messages WHERE seq {in ids} AND dropped IS NULL`, asJSON{ids})
	return digests, err
}

// dropBodies drops the bodies of messages, and with them what receivers
// responded, who may have quoted them. A body stays while another delivery of its message
// is not that old, or may be redriven. Rows are locked in the order of the messages,
// as what is encrypted anew is.
func (t *tx) dropBodies(list []ended, digests map[int64]bodyDigest, before after) error {
	var messages []ordering
	for _, e := range list {
		if digests[e.message] != (bodyDigest{}) {
			messages = append(messages, ordering{e.messageID, strconv.FormatInt(e.message, 10)})
		}
	}
	if len(messages) == 0 {
		return nil
	}
	free, err := collect(t, one[int64], `SELECT m.seq FROM {keys} JOIN forbear_messages m ON m.seq = CAST(x.k AS BIGINT) WHERE m.dropped IS NULL AND NOT EXISTS (
		SELECT 1 FROM forbear_deliveries d WHERE d.message_id = x.e AND d.message = m.seq AND (NOT d.`+stateDelivered+` OR d.finished >= {t})) ORDER BY m.seq {lock message}`, asJSON{messages}, before)
	if err != nil || len(free) == 0 {
		return err
	}
	var drop []bodyDigest
	for _, id := range slices.Compact(free) {
		drop = append(drop, digests[id])
	}
	if _, err := t.exec(`UPDATE forbear_messages SET body = x.body, dropped = {t} FROM {blobs} WHERE forbear_messages.seq = x.id`, after(0), asJSON{drop}); err != nil {
		return err
	}
	deliveries, err := collect(t, one[int64], `SELECT d.id FROM {keys} JOIN forbear_deliveries d ON d.message_id = x.e AND d.message = CAST(x.k AS BIGINT) WHERE d.message {in ids}`, asJSON{messages}, asJSON{free})
	if err == nil {
		_, err = t.exec(`UPDATE forbear_attempts SET response = NULL WHERE response IS NOT NULL AND delivery {in ids}`, asJSON{deliveries})
	}
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
