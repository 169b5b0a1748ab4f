package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// outboxRow is one row that an application inserted.
type outboxRow struct {
	id  int64
	msg webhook.Message
	bad error
}

// Relay implements webhook.Store. Rows are found by being there, never by "id
// greater than the last one": ids are given out before their transactions
// commit.
func (s *Store) Relay(ctx context.Context, limit int, ordered map[string]bool, check func(*webhook.Message) error) (int, error) {
	n := 0
	if err := s.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM (SELECT 1 FROM forbear_outbox LIMIT 1) x`); err != nil || n == 0 {
		return 0, err
	}
	lock := ""
	if s.d.postgres {
		lock = " FOR UPDATE SKIP LOCKED"
	}
	return do(ctx, s, func(t *tx) (int, error) {
		rows, err := t.query(`SELECT id, message_id, endpoint, COALESCE(type, ''), COALESCE(source, ''), COALESCE(subject, ''), COALESCE(order_key, ''), COALESCE(idempotency_key, ''),
			COALESCE(correlation_id, ''), COALESCE(content_type, ''), COALESCE(headers, ''), COALESCE(not_before, 0), body FROM forbear_outbox ORDER BY id LIMIT ?`+lock, limit)
		if err != nil {
			return 0, err
		}
		var list []outboxRow
		err = each(rows, func(r *sql.Rows) error {
			o, err := scanOutbox(r)
			list = append(list, o)
			return err
		})
		if err != nil {
			return 0, err
		}
		for i := range list {
			o := &list[i]
			if o.bad == nil {
				o.bad = check(&o.msg)
			}
			if err := s.relay(t, o, ordered); err != nil {
				return 0, err
			}
			if _, err := t.exec(`DELETE FROM forbear_outbox WHERE id = ?`, o.id); err != nil {
				return 0, err
			}
		}
		return len(list), nil
	})
}

func scanOutbox(r *sql.Rows) (o outboxRow, err error) {
	m := &o.msg
	var endpoint, headers string
	var notBefore int64
	if err := r.Scan(&o.id, &m.ID, &endpoint, &m.Type, &m.Source, &m.Subject, &m.Key, &m.IdempotencyKey, &m.CorrelationID, &m.ContentType, &headers, &notBefore, &m.Body); err != nil {
		return o, err
	}
	m.Endpoints, m.NotBefore = []string{endpoint}, at(notBefore)
	if headers != "" {
		if err := json.Unmarshal([]byte(headers), &m.Headers); err != nil {
			o.bad = fmt.Errorf("headers are no JSON array of name and value: %w", err)
		}
	}
	return o, nil
}

// relay accepts one row. One that cannot be accepted is not dropped and holds
// nobody up: it becomes a dead letter.
func (s *Store) relay(t *tx, o *outboxRow, ordered map[string]bool) error {
	if o.bad == nil {
		m, err := s.encode(o.msg)
		if err != nil {
			return err
		}
		if err := t.accept(&m, ordered); err != nil || m.fresh {
			return err
		}
		// The id is known: another endpoint of the same message, or the same
		// row again.
		var seq int64
		if _, err := t.row([]any{&seq}, `SELECT seq FROM forbear_messages WHERE id = ?`, m.ID); err != nil {
			return err
		}
		return t.addDelivery(seq, m.Endpoints[0], &m, ordered[m.Endpoints[0]])
	}
	l, err := s.prepare(deadletter.Letter{
		ID: fmt.Sprintf("dlq_outbox_%d_%.64s", o.id, o.msg.ID), Queue: webhook.Queue, Destination: o.msg.Endpoints[0], EventID: o.msg.ID,
		Source: o.msg.Source, Type: o.msg.Type, Subject: o.msg.Subject, PartitionKey: o.msg.Key, IdempotencyKey: o.msg.IdempotencyKey, CorrelationID: o.msg.CorrelationID,
		Payload: o.msg.Body, ContentType: o.msg.ContentType, Headers: o.msg.Headers,
		Reason: deadletter.ReasonInvalid, Description: fmt.Sprintf("%.1024s", o.bad.Error()), State: deadletter.Dead, EnqueuedAt: s.d.now(), DeadAt: s.d.now(),
	})
	if err != nil {
		return err
	}
	return t.putLetter(l)
}
