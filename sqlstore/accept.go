package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// The states of a delivery.
const (
	waiting   = 0
	leased    = 1
	delivered = 2
	dead      = 3
	held      = 4
)

// encoded is a message as its row wants it.
type encoded struct {
	webhook.Message
	meta string
	body []byte
	wait time.Duration
}

func (s *Store) encode(m webhook.Message) (encoded, error) {
	e := encoded{Message: m}
	endpoints := m.Endpoints
	m.Endpoints = nil // they are the deliveries
	plain, err := json.Marshal(m)
	if err != nil {
		return e, err
	}
	if e.meta, err = s.sealText(plain); err != nil {
		return e, err
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	if e.body, err = s.seal(m.Body); err != nil {
		return e, err
	}
	if !m.NotBefore.IsZero() {
		e.wait = max(m.NotBefore.Sub(s.d.now()), 0)
	}
	e.Endpoints = endpoints
	return e, nil
}

// Accept implements webhook.Store.
func (s *Store) Accept(ctx context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error) {
	rows := make([]encoded, len(msgs))
	for i, m := range msgs {
		var err error
		if rows[i], err = s.encode(m); err != nil {
			return nil, fmt.Errorf("message %q: %w", m.ID, err)
		}
	}
	answers, err := do(ctx, s, func(t *tx) ([]webhook.Accepted, error) {
		answers := make([]webhook.Accepted, len(rows))
		for i := range rows {
			fresh, err := t.accept(&rows[i], ordered)
			if err != nil {
				return nil, err
			}
			answers[i] = webhook.Accepted{ID: rows[i].ID, Duplicate: !fresh}
		}
		return answers, nil
	})
	if err == nil {
		s.notify.wake()
	}
	return answers, err
}

// accept adds one message; fresh is false when its id is known.
func (t *tx) accept(m *encoded, ordered map[string]bool) (fresh bool, err error) {
	plain := m.Key == "" || !slices.ContainsFunc(m.Endpoints, func(e string) bool { return ordered[e] })
	if t.d.postgres && plain {
		return t.acceptAtOnce(m)
	}
	var seq int64
	fresh, err = t.row([]any{&seq}, `INSERT INTO forbear_messages (id, meta, body, created) VALUES (?, ?, ?, {t}) ON CONFLICT (id) DO NOTHING RETURNING seq`,
		m.ID, m.meta, m.body, after(0))
	if err != nil || !fresh {
		return false, err
	}
	for _, e := range m.Endpoints {
		if err := t.addDelivery(seq, e, m, ordered[e]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// acceptAtOnce is accept in one round trip.
func (t *tx) acceptAtOnce(m *encoded) (fresh bool, err error) {
	if len(m.Endpoints) == 1 {
		n, err := t.exec(`WITH m AS (INSERT INTO forbear_messages (id, meta, body, created) VALUES (?, ?, ?, {t}) ON CONFLICT (id) DO NOTHING RETURNING seq)
			INSERT INTO forbear_deliveries (message, endpoint, state, due, start) SELECT seq, ?::text, 0, {t}, {t} FROM m`,
			m.ID, m.meta, m.body, after(0), m.Endpoints[0], after(m.wait), after(m.wait))
		return n > 0, err
	}
	list, err := json.Marshal(m.Endpoints)
	if err != nil {
		return false, err
	}
	n, err := t.exec(`WITH m AS (INSERT INTO forbear_messages (id, meta, body, created) VALUES (?, ?, ?, {t}) ON CONFLICT (id) DO NOTHING RETURNING seq)
		INSERT INTO forbear_deliveries (message, endpoint, state, due, start)
		SELECT m.seq, e.value, 0, {t}, {t} FROM m, json_array_elements_text(?::json) e ON CONFLICT DO NOTHING`,
		m.ID, m.meta, m.body, after(0), after(m.wait), after(m.wait), string(list))
	return n > 0, err
}

// addDelivery adds one delivery; one that must keep its key's order is held
// while an earlier one is not finished.
func (t *tx) addDelivery(seq int64, endpoint string, m *encoded, ordered bool) error {
	state, okey := waiting, any(nil)
	if ordered && m.Key != "" {
		okey = m.Key
		if err := t.lockKey(endpoint, m.Key); err != nil {
			return err
		}
		var one int
		busy, err := t.row([]any{&one}, `SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND state IN (0, 1, 4) LIMIT 1`, endpoint, m.Key)
		if err != nil {
			return err
		}
		if busy {
			state = held
		}
	}
	_, err := t.exec(`INSERT INTO forbear_deliveries (message, endpoint, okey, state, due, start) VALUES (?, ?, ?, ?, {t}, {t}) ON CONFLICT DO NOTHING`,
		seq, endpoint, okey, state, after(m.wait), after(m.wait))
	return err
}

// lockKey serialises what decides about the order of one key. SQLite has one
// writer anyway.
func (t *tx) lockKey(endpoint, key string) error {
	if !t.d.postgres {
		return nil
	}
	_, err := t.exec(`SELECT pg_advisory_xact_lock(hashtextextended(?::text, 7))`, endpoint+"\n"+key)
	return err
}

// promote lets the next message of a key go.
func (t *tx) promote(endpoint, key string) error {
	if key == "" {
		return nil
	}
	if err := t.lockKey(endpoint, key); err != nil {
		return err
	}
	_, err := t.exec(`UPDATE forbear_deliveries SET state = 0 WHERE id =
		(SELECT min(id) FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND state = 4)
		AND NOT EXISTS (SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND state IN (0, 1))`,
		endpoint, key, endpoint, key)
	return err
}

// placeholders returns "?, ?, ?".
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
