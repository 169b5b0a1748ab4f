package sqlstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// A message has three places: its id is with its deliveries, by which it is looked
// up; its body is apart, so that it can be encrypted and is written once for all
// endpoints; and the rest is the envelope, one text.

// encoded is a message as its row wants it. It is made before the transaction,
// so that no writer waits for a cipher.
type encoded struct {
	webhook.Message
	meta string        // an envelope, sealed
	body []byte        // sealed
	made int64         // microseconds
	wait time.Duration // until it may be sent

	fresh bool // the result: it is new at one of its endpoints
}

// envelope is what a row keeps of a message besides its id, time and body. Its
// names are on disk.
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
	Erased         bool             `json:"erased,omitempty"` // alone
}

// A message's row is found by its deliveries, which have its id: what is sealed of it is
// bound to that, and to when it was made, which two messages of one id differ in. The
// number of the row is not known when it is sealed.
func metaOf(id string, made int64) cell {
	return place("messages.meta", id, strconv.FormatInt(made, 10))
}

func bodyOf(id string, made int64) cell {
	return place("messages.body", id, strconv.FormatInt(made, 10))
}

// plain is the text of an envelope with nothing in it: such messages are not
// parsed when they are claimed.
const plain = ""

// encode makes a row of a message. Its not-before becomes a wait, so that the
// store's clock counts from when the row is written.
func (db *DB) encode(m webhook.Message) (encoded, error) {
	now := db.now()
	e := encoded{Message: m, made: m.Created.UnixMicro()}
	if m.Created.IsZero() {
		e.made = now.UnixMicro()
	}
	v := envelope{m.Type, m.Source, m.Subject, m.Key, m.IdempotencyKey, m.CorrelationID, m.ContentType, m.Headers, m.NotBefore, false}
	// Mostly they are the same: decode knows that.
	if v.CorrelationID == m.ID {
		v.CorrelationID = ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return e, err
	}
	// A message with nothing in it is not sealed: it has nothing to hide.
	if string(text) != "{}" {
		if e.meta, err = db.sealText(metaOf(m.ID, e.made), text); err != nil {
			return e, err
		}
	}
	// The column is NOT NULL, and a nil slice is NULL.
	if m.Body == nil {
		m.Body = []byte{}
	}
	if e.body, err = db.seal(bodyOf(m.ID, e.made), m.Body); err != nil {
		return e, err
	}
	if !m.NotBefore.IsZero() {
		e.wait = max(m.NotBefore.Sub(now), 0)
	}
	return e, nil
}

// decode is the inverse of encode, but for the endpoints, which are the
// deliveries.
func (db *DB) decode(id, meta string, made int64, body []byte) (m webhook.Message, err error) {
	v, err := db.openEnvelope(id, meta, made)
	if err != nil {
		return m, err
	}
	m = webhook.Message{
		ID: id, Type: v.Type, Source: v.Source, Subject: v.Subject, Key: v.Key, IdempotencyKey: v.IdempotencyKey,
		CorrelationID: cmp.Or(v.CorrelationID, id), ContentType: v.ContentType, Headers: v.Headers, NotBefore: v.NotBefore, Created: at(made),
	}
	m.Body, err = db.unseal(bodyOf(id, made), body)
	return m, err
}

// openEnvelope reads what a row keeps of a message besides its body.
func (db *DB) openEnvelope(id, meta string, made int64) (v envelope, err error) {
	if meta == plain {
		return v, nil
	}
	text, err := db.unsealText(metaOf(id, made), meta)
	if err != nil {
		return v, err
	}
	err = json.Unmarshal(text, &v)
	return v, err
}

// This file has what accepting, writing back and redriving need of a delivery's
// row: to add it, to know it, and to keep the order of its key.

// addMessage adds the message of deliveries that follow in the same transaction, and
// returns its number.
func (t *tx) addMessage(m *encoded) (seq int64, err error) {
	_, err = t.row([]any{&seq}, `INSERT INTO forbear_messages (meta, body, created) VALUES (?, ?, ?) RETURNING seq`, m.meta, m.body, m.made)
	return seq, err
}

// addDelivery adds one delivery, unless it is known; one that must keep its
// key's order is held while an earlier one is not finished.
func (t *tx) addDelivery(seq int64, endpoint string, m *encoded, ordered bool) (fresh bool, err error) {
	state, okey := waiting, any(nil)
	if ordered {
		okey = m.Key
		if state, err = t.place(endpoint, m.Key); err != nil {
			return false, err
		}
	}
	// Two calls that add the same one meet at the unique index of identities.
	n, err := t.exec(`INSERT INTO forbear_deliveries (message, message_id, endpoint, okey, state, due, start, written) VALUES (?, ?, ?, ?, ?, {t}, {t}, {t}) ON CONFLICT (message_id, endpoint) DO NOTHING`,
		seq, m.ID, endpoint, okey, state, after(m.wait), after(m.wait), after(0))
	return n == 1, err
}

// known is what is stored under the identity of a delivery.
type known struct {
	webhook.Message

	delivery int64
	state    rowState
	okey     string
	dropped  bool // the body is a digest of it
	erased   bool // the body is a digest of all of it
}

// errUnknown says that a delivery is not there.
var errUnknown = errors.New("the delivery no longer exists")

// knownQuery reads a delivery, d, with its message.
const knownQuery = `SELECT d.id, d.state, COALESCE(d.okey, ''), m.meta, m.body, m.created, m.dropped IS NOT NULL
	FROM forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message WHERE d.message_id = ? AND d.endpoint = ?`

// known reads a delivery with its message, by knownQuery or with what locks it. That it
// is not there, or cannot be read, is the call's own error.
func (t *tx) known(query, id, endpoint string) (k known, err error) {
	var meta string
	var body []byte
	var made int64
	found, err := t.row([]any{&k.delivery, &k.state, &k.okey, &meta, &body, &made, &k.dropped}, query, id, endpoint)
	if err != nil {
		return k, err
	}
	if !found {
		return k, own(errUnknown)
	}
	if k.Message, err = t.db.decode(id, meta, made, body); err != nil {
		err = own(fmt.Errorf("message %q to endpoint %q %w: %w", id, endpoint, webhook.ErrUnreadable, err))
	}
	if k.dropped && err == nil {
		var v envelope
		v, err = t.db.openEnvelope(id, meta, made)
		k.erased = v.Erased
	}
	return k, err
}

// ordering names a key at an endpoint.
type ordering struct {
	Endpoint string `json:"e"`
	Key      string `json:"k"`
}
