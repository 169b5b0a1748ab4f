package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/forbear-go/forbear/webhook"
)

// Heads implements webhook.Store. It hops from endpoint to endpoint on the
// index of waiting deliveries: its cost is that of the endpoints, not of the
// deliveries.
func (s *Store) Heads(ctx context.Context) (heads []webhook.Head, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		h, ok, err := scanHead(r)
		if ok {
			heads = append(heads, h)
		}
		return err
	}, `WITH RECURSIVE e (endpoint) AS (
			SELECT min(endpoint) FROM forbear_deliveries WHERE state = 0
			UNION ALL
			SELECT (SELECT min(d.endpoint) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint > e.endpoint) FROM e WHERE e.endpoint IS NOT NULL)
		SELECT endpoint, (SELECT min(due) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint = e.endpoint) - {t} FROM e WHERE endpoint IS NOT NULL`, after(0))
	return heads, err
}

// next tells when the first waiting delivery of each endpoint is due.
func (t *tx) next(endpoints []string) (heads []webhook.Head, err error) {
	if len(endpoints) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(endpoints)
	if err != nil {
		return nil, err
	}
	text := `SELECT e.value, (SELECT min(due) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint = e.value) - {t} FROM json_each(?) e`
	args := []any{after(0), string(list)}
	if t.d.postgres {
		text = `SELECT e.value, (SELECT min(due) FROM forbear_deliveries d WHERE d.state = 0 AND d.endpoint = e.value) - {t} FROM json_array_elements_text(?::json) e`
	}
	rows, err := t.query(text, args...)
	if err != nil {
		return nil, err
	}
	err = each(rows, func(r *sql.Rows) error {
		h, ok, err := scanHead(r)
		if ok {
			heads = append(heads, h)
		}
		return err
	})
	return heads, err
}

func scanHead(r *sql.Rows) (h webhook.Head, ok bool, err error) {
	var in sql.NullInt64
	err = r.Scan(&h.Endpoint, &in)
	h.In = time.Duration(in.Int64) * time.Microsecond
	return h, in.Valid, err
}

// claimed are the columns that scanClaim reads.
const claimed = `d.id, d.fence, d.claims, d.endpoint, COALESCE(d.okey, ''), d.due, d.start, COALESCE(d.progress, ''), COALESCE(d.letter, ''), d.message_id, m.created, m.meta, m.body`

func (s *Store) scanClaim(r *sql.Rows) (d webhook.Delivery, err error) {
	var due, start, made int64
	var progress, id, meta string
	var body []byte
	if err := r.Scan(&d.ID, &d.Fence, &d.Claims, &d.Endpoint, &d.OrderKey, &due, &start, &progress, &d.Letter, &id, &made, &meta, &body); err != nil {
		return d, err
	}
	d.Due, d.Start = at(due), at(start)
	if progress != "" {
		if err := json.Unmarshal([]byte(progress), &d.Progress); err != nil {
			return d, fmt.Errorf("delivery %d: %w", d.ID, err)
		}
	}
	d.Message, err = s.decode(id, meta, made, body)
	return d, err
}

// Overdue implements webhook.Store. It looks outside of the writers, since the
// look may have to pass a million that are scheduled, and mostly finds nothing.
func (s *Store) Overdue(ctx context.Context, owner string, lease, age time.Duration, lane webhook.Lane) ([]webhook.Delivery, error) {
	found := false
	err := s.query(ctx, func(*sql.Rows) error { found = true; return nil },
		`SELECT 1 FROM forbear_deliveries WHERE endpoint = ? AND state = 0 AND start < {now} LIMIT 1`, lane.Endpoint, after(-age))
	if err != nil || !found {
		return nil, err
	}
	c := claim{owner: owner, lease: lease, lanes: []webhook.Lane{lane}, which: `start < {now} ORDER BY start`, bound: after(-age)}
	end := time.Now().Add(lease)
	list, err := doLast(ctx, s, func(t *tx) ([]webhook.Delivery, error) { return s.claim(t, c) })
	return until(list, end), err
}

// claim says what to take.
type claim struct {
	owner string
	lease time.Duration
	lanes []webhook.Lane
	which string // the condition and the order, with one bound
	bound after
}

func (s *Store) claim(t *tx, c claim) ([]webhook.Delivery, error) {
	if len(c.lanes) == 0 {
		return nil, nil
	}
	if s.d.postgres {
		return s.claimPostgres(t, c)
	}
	return s.claimSQLite(t, c)
}

// until notes when the leases end. They are counted from before the question,
// on the monotonic clock: they end here no later than in the database.
func until(list []webhook.Delivery, end time.Time) []webhook.Delivery {
	for i := range list {
		list[i].LeaseEnd = end
	}
	return list
}

// Reclaim implements webhook.Store. The attempt that may have been made is
// recorded as interrupted: a possible duplicate, in plain sight.
func (s *Store) Reclaim(ctx context.Context, limit int) (int, error) {
	lock := ""
	if s.d.postgres {
		lock = " FOR UPDATE SKIP LOCKED"
	}
	return doLast(ctx, s, func(t *tx) (n int, err error) {
		type lost struct {
			id, due, lease, claims int64
			owner, progress        string
		}
		var list []lost
		rows, err := t.query(`SELECT id, due, lease, claims, owner, COALESCE(progress, '') FROM forbear_deliveries WHERE state = 1 AND lease < {now} ORDER BY lease LIMIT ?`+lock, after(0), limit)
		if err != nil {
			return 0, err
		}
		err = each(rows, func(r *sql.Rows) error {
			var l lost
			err := r.Scan(&l.id, &l.due, &l.lease, &l.claims, &l.owner, &l.progress)
			list = append(list, l)
			return err
		})
		if err != nil {
			return 0, err
		}
		for _, l := range list {
			var p webhook.Progress
			if l.progress != "" {
				if err := json.Unmarshal([]byte(l.progress), &p); err != nil {
					return 0, err
				}
			}
			if _, err := t.exec(`INSERT INTO forbear_attempts (delivery, claim, n, due, at, took, wait, error_type, status, worker) VALUES (?, ?, ?, ?, ?, 0, 0, 'interrupted', 0, ?) ON CONFLICT DO NOTHING`,
				l.id, l.claims, p.Attempts+1, l.due, l.lease, l.owner); err != nil {
				return 0, err
			}
			if _, err := t.exec(`UPDATE forbear_deliveries SET state = 0 WHERE id = ?`, l.id); err != nil {
				return 0, err
			}
		}
		return len(list), nil
	})
}
