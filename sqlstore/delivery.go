package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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

var stateNames = [...]string{waiting: "waiting", leased: "sending", delivered: "delivered", dead: "dead", held: "held"}

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

// Deliveries implements webhook.Store.
func (s *Store) Deliveries(ctx context.Context, message string) (list []webhook.Info, err error) {
	var ids []int64
	err = s.query(ctx, func(r *sql.Rows) error {
		var id, due int64
		var state int
		var progress string
		i := webhook.Info{Message: message}
		if err := r.Scan(&id, &i.Endpoint, &state, &due, &i.Claims, &progress); err != nil {
			return err
		}
		var p webhook.Progress
		if progress != "" {
			if err := json.Unmarshal([]byte(progress), &p); err != nil {
				return err
			}
		}
		i.State, i.Due, i.Postponed = stateNames[state], at(due), p.Postponed
		ids, list = append(ids, id), append(list, i)
		return nil
	}, `SELECT id, endpoint, state, due, claims, COALESCE(progress, '') FROM forbear_deliveries WHERE message_id = ? ORDER BY id`, message)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		list[i].History = []webhook.Attempt{}
		err := s.query(ctx, func(r *sql.Rows) error {
			a, err := scanAttempt(r)
			list[i].History = append(list[i].History, a)
			list[i].Attempts = max(list[i].Attempts, a.Number)
			return err
		}, historyQuery, id)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Sweep implements webhook.Store. One process does it at a time.
func (s *Store) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	return do(ctx, s, func(t *tx) (int, error) {
		if mine, err := t.tryLock(sweepLock); err != nil || !mine {
			return 0, err
		}
		type old struct {
			id, message int64
			name        string
		}
		var list []old
		rows, err := t.query(`SELECT id, message, message_id FROM forbear_deliveries WHERE finished < {now} ORDER BY finished LIMIT ?`, after(-age), limit)
		if err != nil {
			return 0, err
		}
		err = each(rows, func(r *sql.Rows) error {
			var o old
			err := r.Scan(&o.id, &o.message, &o.name)
			list = append(list, o)
			return err
		})
		if err != nil {
			return 0, err
		}
		for _, o := range list {
			for _, text := range []string{`DELETE FROM forbear_attempts WHERE delivery = ?`, `DELETE FROM forbear_deliveries WHERE id = ?`} {
				if _, err := t.exec(text, o.id); err != nil {
					return 0, err
				}
			}
			// Deliveries of one message have its id: their index is by that.
			if _, err := t.exec(`DELETE FROM forbear_messages WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM forbear_deliveries WHERE message_id = ? AND message = ?)`, o.message, o.name, o.message); err != nil {
				return 0, err
			}
		}
		return len(list), nil
	})
}
