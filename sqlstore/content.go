package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// Contents implements store.Store. It reads the bodies one by one.
func (w *Webhooks) Contents(ctx context.Context, message string, at []string, limit int) (list []store.MessageContent, err error) {
	cond, args := atEndpoints(message, at)
	endpoints := map[int64][]string{}
	var seqs []int64
	err = w.db.each(ctx, func(r *sql.Rows) error {
		var seq int64
		var endpoint string
		err := r.Scan(&seq, &endpoint)
		if endpoints[seq] == nil {
			seqs = append(seqs, seq)
		}
		endpoints[seq] = append(endpoints[seq], endpoint)
		return err
	}, `SELECT message, endpoint FROM forbear_deliveries WHERE `+cond+` ORDER BY id`, args...)
	for _, seq := range seqs[:min(limit, len(seqs))] {
		if err == nil {
			err = w.db.each(ctx, func(r *sql.Rows) error {
				c, err := w.db.scanContent(r, message)
				c.Endpoints = endpoints[seq]
				list = append(list, c)
				return err
			}, contentQuery, seq)
		}
	}
	return list, err
}

// atEndpoints is the condition for the deliveries of a message at endpoints, or at all.
func atEndpoints(message string, endpoints []string) (cond string, args []any) {
	if len(endpoints) == 0 {
		return `message_id = ?`, []any{message}
	}
	return `message_id = ? AND endpoint IN (SELECT value FROM {texts} x)`, []any{message, asJSON{endpoints}}
}

// contentQuery reads what scanContent wants.
const contentQuery = `SELECT meta, body, created, dropped IS NOT NULL FROM forbear_messages WHERE seq = ?`

// scanContent reads the content of a message, but for its endpoints.
func (db *DB) scanContent(r *sql.Rows, id string) (c store.MessageContent, err error) {
	m, dropped, erased, err := db.scanKept(r, id)
	switch {
	case errors.Is(err, webhook.ErrUnreadable):
		return store.MessageContent{Created: m.Created, Dropped: dropped, Unreadable: err.Error()}, nil
	case err != nil:
		return c, err
	case erased:
		return store.MessageContent{Created: m.Created, Dropped: true, Erased: true}, nil
	}
	c = store.ContentOf(&m, nil)
	if c.Dropped = dropped; dropped {
		c.Payload = nil
	}
	return c, nil
}

// scanKept reads a message as far as it is kept. Of one that is [webhook.ErrUnreadable]
// there is when it was accepted.
func (db *DB) scanKept(r *sql.Rows, id string) (m webhook.Message, dropped, erased bool, err error) {
	var meta string
	var body []byte
	var created int64
	if err = r.Scan(&meta, &body, &created, &dropped); err != nil {
		return m, dropped, false, err
	}
	v, err := db.openEnvelope(id, meta, created)
	if err == nil {
		m, err = db.decode(id, meta, created, body)
	}
	if err != nil {
		return webhook.Message{ID: id, Created: at(created)}, dropped, false, fmt.Errorf("message %q %w: %w", id, webhook.ErrUnreadable, err)
	}
	return m, dropped, v.Erased, nil
}

// Erase implements store.Store.
func (w *Webhooks) Erase(ctx context.Context, message string, endpoints []string, by string) (int, error) {
	n, err := do(ctx, w.db, func(t *tx) (int, error) { return t.erase(message, endpoints, by) })
	w.db.notify.wake() // others of its key may go
	if err == nil {
		w.db.d.overwritten(ctx, w.db)
	}
	return n, err
}

// EraseAll erases messages of a list, each in a transaction of its own, and says what
// became of it. Those that are erased, or under way, are left.
func (w *Webhooks) EraseAll(ctx context.Context, list []store.MessageInfo, by string) ([]store.MessageResult, error) {
	var results []store.MessageResult
	defer func() {
		w.db.notify.wake() // others of their keys may go
		w.db.d.overwritten(ctx, w.db)
	}()
	for _, m := range list {
		r := store.MessageResult{ID: m.ID, Endpoint: m.Endpoint, State: m.State, Why: store.WhyErased}
		if !m.Erased {
			switch n, err := do(ctx, w.db, func(t *tx) (int, error) { return t.erase(m.ID, []string{m.Endpoint}, by) }); {
			case errors.Is(err, store.ErrSending):
				r.Why = store.WhyUnderWay
			case err != nil:
				return results, err
			case n > 0:
				r.Why, r.Done = "", true
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// erase erases a message wherever it is stored.
func (t *tx) erase(message string, endpoints []string, by string) (n int, err error) {
	// Bodies are not dropped, and nothing is swept, while it is looked at.
	if err := t.db.d.lock(t, sweepLock); err != nil {
		return 0, err
	}
	if err := t.db.d.overwrite(t, true); err != nil {
		return 0, err
	}
	list, letters, err := t.erasable(message, endpoints)
	if err != nil {
		return 0, err
	}
	if err := t.cancel(unsent(list)); err != nil {
		return 0, err
	}
	if err := t.eraseDeliveries(message, list); err != nil {
		return 0, err
	}
	for _, l := range letters {
		if err := t.eraseLetter(l); err != nil {
			return 0, err
		}
	}
	rows, err := t.eraseOutbox(message, endpoints)
	if n = len(list) + len(letters) + rows; err != nil || n == 0 {
		return 0, err
	}
	entry := queue.Entry{Who: by, Action: "message-erase", Target: message, Detail: fmt.Sprintf("%d deliveries, %d dead letters, %d rows of the outbox", len(list), len(letters), rows)}
	if err := t.audit(entry); err != nil {
		return 0, err
	}
	return n, t.db.d.overwrite(t, false)
}

// erasable finds the deliveries and the letters of a message, at some endpoints or at
// all. It refuses what is under way: whoever sends it has it in memory.
func (t *tx) erasable(message string, endpoints []string) (list []target, letters []deadletter.Letter, err error) {
	cond, args := atEndpoints(message, endpoints)
	ids, err := collect(t, one[int64], `SELECT id FROM forbear_deliveries WHERE `+cond+` ORDER BY id`, args...)
	if err == nil && len(ids) > 0 {
		list, err = t.targets(ids)
	}
	if err != nil {
		return nil, nil, err
	}
	var ours []string // letters that are redriven by a delivery which is canceled
	for _, g := range list {
		if g.state == leased {
			return nil, nil, own(fmt.Errorf("message %q at endpoint %q: %w", message, g.Endpoint, store.ErrSending))
		}
		ours = append(ours, g.letter)
	}
	cond, args = `event_id = ? AND queue IN (?, ?)`, []any{message, webhook.Queue, webhook.AlertQueue}
	if len(endpoints) > 0 {
		cond, args = cond+` AND dest IN (SELECT value FROM {texts} x)`, append(args, asJSON{endpoints})
	}
	letters, err = collect(t, t.db.scanAnyLetter, `SELECT `+letterColumns+` FROM forbear_letters WHERE `+cond+` ORDER BY seq`, args...)
	for _, l := range letters {
		if err == nil && l.State == deadletter.Redriving && !slices.Contains(ours, l.ID) {
			err = own(fmt.Errorf("dead letter %q: %w", l.ID, store.ErrSending))
		}
	}
	return list, letters, err
}

// eraseDeliveries erases what deliveries have: their messages, and what receivers
// responded. Their rows stay.
func (t *tx) eraseDeliveries(message string, list []target) error {
	if len(list) == 0 {
		return nil
	}
	ids := make([]int64, len(list))
	for i, g := range list {
		ids[i] = g.id
	}
	for _, text := range []string{
		`UPDATE forbear_attempts SET response = NULL, cause = NULL WHERE delivery IN ({ids})`,
		`UPDATE forbear_deliveries SET okey = NULL, progress = NULL WHERE id IN ({ids})`,
	} {
		if _, err := t.exec(text, asJSON{ids}); err != nil {
			return err
		}
	}
	seqs, err := collect(t, one[int64], `SELECT DISTINCT message FROM forbear_deliveries WHERE id IN ({ids})`, asJSON{ids})
	for _, seq := range seqs {
		if err == nil {
			err = t.eraseMessage(message, seq, ids)
		}
	}
	return err
}

// eraseMessage puts a digest in the place of all that is kept of a message. Where it is
// kept for other endpoints, the deliveries get a row of their own.
func (t *tx) eraseMessage(id string, seq int64, ids []int64) error {
	var m webhook.Message
	var dropped, erased bool
	err := t.each(func(r *sql.Rows) (err error) {
		m, dropped, erased, err = t.db.scanKept(r, id)
		return err
	}, contentQuery, seq)
	if errors.Is(err, webhook.ErrUnreadable) { // what it was is not known: the same one again is a conflict
		err = nil
	}
	if err != nil || erased {
		return err
	}
	if !dropped {
		m = m.Dropped()
	}
	m = m.Erased()
	e := encoded{made: m.Created.UnixMicro()}
	if e.meta, err = t.db.sealText(metaOf(id, e.made), []byte(`{"erased":true}`)); err == nil {
		e.body, err = t.db.seal(bodyOf(id, e.made), m.Body)
	}
	if err != nil {
		return err
	}
	var one int
	shared, err := t.row([]any{&one}, `SELECT 1 FROM forbear_deliveries WHERE message_id = ? AND message = ? AND id NOT IN ({ids}) LIMIT 1`, id, seq, asJSON{ids})
	if err != nil {
		return err
	}
	if shared {
		other, err := t.addMessage(&e)
		if err == nil {
			_, err = t.exec(`UPDATE forbear_deliveries SET message = ? WHERE message = ? AND id IN ({ids})`, other, seq, asJSON{ids})
		}
		if err != nil {
			return err
		}
		seq = other
	}
	_, err = t.exec(`UPDATE forbear_messages SET meta = ?, body = ?, dropped = {t} WHERE seq = ?`, e.meta, e.body, after(0), seq)
	return err
}

// eraseLetter leaves of a letter why and when it died. It is not redriven any more.
func (t *tx) eraseLetter(l deadletter.Letter) error {
	row, err := t.db.encodeLetter(l.Erased())
	if err != nil {
		return err
	}
	if _, err = t.exec(`UPDATE forbear_letters SET `+setCause+` WHERE id = ?`, append(row.cause(), l.ID)...); err != nil {
		return err
	}
	// A row that was too large for it.
	if _, err := t.exec(`DELETE FROM forbear_outbox_refused WHERE letter = ?`, l.ID); err != nil {
		return err
	}
	_, err = t.exec(`UPDATE forbear_letters SET `+letterDiscarded+`, discard = 'erased' WHERE id = ? AND `+letterDead, l.ID)
	return err
}

// eraseOutbox deletes rows that wait aside for an application which is suspended. They
// were accepted nowhere.
func (t *tx) eraseOutbox(message string, endpoints []string) (deleted int, err error) {
	cond, args := `message_id = ?`, []any{message}
	if len(endpoints) > 0 {
		cond += ` AND CASE WHEN COALESCE(application, '') = '' THEN endpoint ELSE ? || application END IN (SELECT value FROM {texts} x)`
		args = append(args, store.DestinationOf(&webhook.Message{}), asJSON{endpoints})
	}
	n, err := t.exec(`DELETE FROM forbear_outbox_aside WHERE `+cond, args...)
	return int(n), err
}

// sameErased reports whether m is the message that was erased.
func (k *known) sameErased(m *webhook.Message) bool {
	d := m.Dropped()
	e := d.Erased()
	return bytes.Equal(e.Body, k.Body)
}
