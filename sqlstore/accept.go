package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
	made int64
	wait time.Duration

	fresh bool // the answer: the id was not known
}

// envelope is what a row keeps of a message besides its id, time and body.
type envelope struct {
	Type           string           `json:"type,omitempty"`
	Source         string           `json:"source,omitempty"`
	Subject        string           `json:"subject,omitempty"`
	Key            string           `json:"key,omitempty"`
	IdempotencyKey string           `json:"idempotency_key,omitempty"`
	CorrelationID  string           `json:"correlation_id,omitempty"` // when it is not the message's id
	ContentType    string           `json:"content_type,omitempty"`
	Headers        []webhook.Header `json:"headers,omitempty"`
	NotBefore      time.Time        `json:"not_before,omitzero"`
}

// plain is the text of an envelope with nothing in it: such messages are not
// parsed when they are claimed.
const plain = ""

func (s *Store) encode(m webhook.Message) (encoded, error) {
	e := encoded{Message: m, made: m.Created.UnixMicro()}
	v := envelope{m.Type, m.Source, m.Subject, m.Key, m.IdempotencyKey, m.CorrelationID, m.ContentType, m.Headers, m.NotBefore}
	if v.CorrelationID == m.ID {
		v.CorrelationID = ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return e, err
	}
	if string(text) != "{}" {
		if e.meta, err = s.sealText(text); err != nil {
			return e, err
		}
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	if e.body, err = s.seal(m.Body); err != nil {
		return e, err
	}
	now := s.d.now()
	if m.Created.IsZero() {
		e.made = now.UnixMicro()
	}
	if !m.NotBefore.IsZero() {
		e.wait = max(m.NotBefore.Sub(now), 0)
	}
	return e, nil
}

// decode is the inverse of encode, but for the endpoints, which are the
// deliveries.
func (s *Store) decode(id, meta string, made int64, body []byte) (m webhook.Message, err error) {
	if meta != plain {
		text, err := s.unsealText(meta)
		if err != nil {
			return m, err
		}
		var v envelope
		if err := json.Unmarshal(text, &v); err != nil {
			return m, err
		}
		m = webhook.Message{
			Type: v.Type, Source: v.Source, Subject: v.Subject, Key: v.Key, IdempotencyKey: v.IdempotencyKey,
			CorrelationID: v.CorrelationID, ContentType: v.ContentType, Headers: v.Headers, NotBefore: v.NotBefore,
		}
	}
	m.ID, m.CorrelationID, m.Created = id, cmp.Or(m.CorrelationID, id), at(made)
	m.Body, err = s.unseal(body)
	return m, err
}

// Accept implements webhook.Store.
func (s *Store) Accept(ctx context.Context, msgs []webhook.Message, ordered map[string]bool) ([]webhook.Accepted, error) {
	a := &acceptance{rows: make([]encoded, len(msgs)), ordered: ordered}
	for i, m := range msgs {
		var err error
		if a.rows[i], err = s.encode(m); err != nil {
			return nil, fmt.Errorf("message %q: %w", m.ID, err)
		}
	}
	if err := s.submit(ctx, &op{accept: a, done: make(chan error, 1)}); err != nil {
		return nil, err
	}
	answers := make([]webhook.Accepted, len(msgs))
	for i := range a.rows {
		answers[i] = webhook.Accepted{ID: a.rows[i].ID, Duplicate: !a.rows[i].fresh}
	}
	s.notify.wake()
	return answers, nil
}

// acceptance is one call of Accept.
type acceptance struct {
	rows    []encoded
	ordered map[string]bool
}

// acceptAll adds the messages of several calls.
func (t *tx) acceptAll(calls []*acceptance) error {
	if t.d.postgres {
		return t.acceptTogether(calls)
	}
	for _, a := range calls {
		for i := range a.rows {
			if err := t.accept(&a.rows[i], a.ordered); err != nil {
				return err
			}
		}
	}
	return nil
}

// accept adds one message, and notes whether its id was new.
func (t *tx) accept(m *encoded, ordered map[string]bool) error {
	seq, fresh, err := t.addMessage(m)
	m.fresh = fresh
	if err != nil || !fresh {
		return err
	}
	for _, e := range m.Endpoints {
		if err := t.addDelivery(seq, e, m, ordered[e]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) addMessage(m *encoded) (seq int64, fresh bool, err error) {
	const text = `INSERT INTO forbear_messages (id, meta, body, created) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`
	if !t.d.postgres {
		return t.insert(text, m.ID, m.meta, m.body, m.made)
	}
	fresh, err = t.row([]any{&seq}, text+` RETURNING seq`, m.ID, m.meta, m.body, m.made)
	return seq, fresh, err
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
