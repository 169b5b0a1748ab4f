package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

	fresh bool // the response: it is new at one of its endpoints
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
	if err := a.distinct(); err != nil {
		return nil, err
	}
	if err := s.submit(ctx, &op{accept: a, keys: a.keys()}); err != nil {
		return nil, err
	}
	if a.refused != nil {
		return nil, a.refused
	}
	responses := make([]webhook.Accepted, len(msgs))
	for i := range a.rows {
		responses[i] = webhook.Accepted{ID: a.rows[i].ID, Duplicate: !a.rows[i].fresh}
	}
	s.notify.wake()
	return responses, nil
}

// acceptance is one call of Accept, or one row of the outbox: all of it is
// accepted, or nothing.
type acceptance struct {
	rows    []encoded
	ordered map[string]bool
	refused error // the response: an ErrConflict
}

// keys returns the locks of the keys whose order the call decides about.
func (a *acceptance) keys() (k keyLocks) {
	for i := range a.rows {
		m := &a.rows[i]
		for _, e := range m.Endpoints {
			if a.orders(m, e) {
				k.add(e, m.Key)
			}
		}
	}
	return k
}

// orders reports whether a message must keep its key's order at an endpoint.
func (a *acceptance) orders(m *encoded, endpoint string) bool {
	return m.Key != "" && a.ordered[endpoint]
}

// identity is what a message is known by.
type identity struct{ id, endpoint string }

// distinct takes out what a call says twice.
func (a *acceptance) distinct() error {
	if len(a.rows) == 1 && len(a.rows[0].Endpoints) == 1 {
		return nil
	}
	known := make(map[identity]*encoded, len(a.rows))
	for i := range a.rows {
		m := &a.rows[i]
		endpoints := make([]string, 0, len(m.Endpoints))
		for _, e := range m.Endpoints {
			switch other := known[identity{m.ID, e}]; {
			case other == nil:
				known[identity{m.ID, e}] = m
				endpoints = append(endpoints, e)
			case !m.SameContent(&other.Message):
				return conflict(m.ID, e)
			}
		}
		m.Endpoints = endpoints
	}
	return nil
}

func conflict(id, endpoint string) error {
	return fmt.Errorf("message %q to endpoint %q: %w", id, endpoint, webhook.ErrConflict)
}

// acceptAll adds the messages of several calls. Each call learns by itself that
// it was refused: that is no error of the transaction that it shares.
func (t *tx) acceptAll(calls []*acceptance) error {
	for _, a := range calls {
		a.refused = nil
		for i := range a.rows {
			a.rows[i].fresh = false
		}
	}
	if t.d.postgres {
		return t.acceptTogether(calls)
	}
	for _, a := range calls {
		if err := t.accept(a); err != nil {
			return err
		}
	}
	return nil
}

// accept adds the messages of one call on SQLite, one by one.
func (t *tx) accept(a *acceptance) error {
	added := false
	for i := range a.rows {
		m := &a.rows[i]
		seq, err := t.addMessage(m)
		if err != nil {
			return err
		}
		for _, e := range m.Endpoints {
			fresh, err := t.addDelivery(seq, e, m, a.orders(m, e))
			if err != nil {
				return err
			}
			if m.fresh = m.fresh || fresh; fresh {
				continue
			}
			known, err := t.known(m.ID, e, false)
			if err != nil {
				return err
			}
			if a.refused == nil && !m.SameContent(&known.Message) {
				a.refused = conflict(m.ID, e)
			}
		}
		if added = added || m.fresh; m.fresh {
			continue
		}
		if _, err := t.exec(`DELETE FROM forbear_messages WHERE seq = ?`, seq); err != nil {
			return err
		}
	}
	return a.undo(added)
}

// undo makes the transaction fail when a refused call has added something. It
// is replayed alone then, and rolled back alone.
func (a *acceptance) undo(added bool) error {
	if a.refused != nil && added {
		return own(a.refused)
	}
	return nil
}

func (t *tx) addMessage(m *encoded) (seq int64, err error) {
	const text = `INSERT INTO forbear_messages (meta, body, created) VALUES (?, ?, ?)`
	if !t.d.postgres {
		seq, _, err = t.insert(text, m.meta, m.body, m.made)
		return seq, err
	}
	_, err = t.row([]any{&seq}, text+` RETURNING seq`, m.meta, m.body, m.made)
	return seq, err
}

// addDelivery adds one delivery, unless it is known; one that must keep its
// key's order is held while an earlier one is not finished.
func (t *tx) addDelivery(seq int64, endpoint string, m *encoded, ordered bool) (fresh bool, err error) {
	state, okey := waiting, any(nil)
	if ordered {
		okey = m.Key
		busy, err := t.busy(endpoint, m.Key)
		if err != nil {
			return false, err
		}
		if busy {
			state = held
		}
	}
	n, err := t.exec(`INSERT INTO forbear_deliveries (message, message_id, endpoint, okey, state, due, start) VALUES (?, ?, ?, ?, ?, {t}, {t}) ON CONFLICT (message_id, endpoint) DO NOTHING`,
		seq, m.ID, endpoint, okey, state, after(m.wait), after(m.wait))
	return n == 1, err
}

// busy reports whether a key has deliveries that are not finished. The
// transaction holds its lock.
func (t *tx) busy(endpoint, key string) (bool, error) {
	var one int
	return t.row([]any{&one}, `SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND okey = ? AND state IN (0, 1, 4) LIMIT 1`, endpoint, key)
}

// stored is what is known by an identity.
type stored struct {
	webhook.Message

	delivery int64
	state    int
	letter   string
	okey     string
}

// errUnknown says that a delivery is not there.
var errUnknown = errors.New("delivery is gone")

// known reads a delivery with its message, and locks it when it is to be
// changed.
func (t *tx) known(id, endpoint string, change bool) (k stored, err error) {
	lock := ""
	if change && t.d.postgres {
		lock = " FOR UPDATE OF d"
	}
	var meta string
	var body []byte
	var made int64
	found, err := t.row([]any{&k.delivery, &k.state, &k.letter, &k.okey, &meta, &body, &made}, `SELECT d.id, d.state, COALESCE(d.letter, ''), COALESCE(d.okey, ''), m.meta, m.body, m.created
		FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.message_id = ? AND d.endpoint = ?`+lock, id, endpoint)
	if err != nil {
		return k, err
	}
	if !found {
		return k, errUnknown
	}
	k.Message, err = t.s.decode(id, meta, made, body)
	return k, err
}

// ordering names a key at an endpoint.
type ordering struct {
	Endpoint string `json:"e"`
	Key      string `json:"k"`
}

// promote lets the next message of each key go, whose locks the transaction
// holds. The states are told twice for SQLite, which takes a partial index only
// for its own words.
func (t *tx) promote(keys []ordering) error {
	if len(keys) == 0 {
		return nil
	}
	spec, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	from := `(SELECT value ->> 'e' AS e, value ->> 'k' AS k FROM json_each(?)) x`
	if t.d.postgres {
		from = `json_to_recordset(?::json) AS x(e text, k text)`
	}
	_, err = t.exec(`UPDATE forbear_deliveries SET state = 0 WHERE id IN (
		SELECT (SELECT min(h.id) FROM forbear_deliveries h WHERE h.endpoint = x.e AND h.okey = x.k AND h.state IN (0, 1, 4) AND h.state = 4)
		FROM `+from+` WHERE NOT EXISTS (SELECT 1 FROM forbear_deliveries a WHERE a.endpoint = x.e AND a.okey = x.k AND a.state IN (0, 1)))`, string(spec))
	return err
}

// placeholders returns "?, ?, ?".
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }
