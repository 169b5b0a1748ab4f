package sqlstore

import (
	"errors"
	"fmt"

	"github.com/forbear-go/forbear/webhook"
)

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
var errUnknown = errors.New("delivery is gone")

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
