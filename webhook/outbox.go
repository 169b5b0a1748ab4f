package webhook

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// Outbox inserts a message into forbear's outbox table within an application's
// own transaction: it is delivered if that transaction commits, and never
// existed otherwise. The table is in the application's database, PostgreSQL or
// SQLite; placeholder is "$" or "?" accordingly. It returns the message's id. The
// message takes the trace context of ctx along: see [Message.Trace].
//
// Without Go, the statement is, for one endpoint:
//
//	INSERT INTO forbear_outbox (message_id, endpoint, type, body)
//	VALUES ('order-4711-shipped', 'acme', 'order.shipped', '{"order":4711}')
//
// All columns: message_id, endpoint and body, which are required; type, source,
// subject, order_key, idempotency_key, correlation_id, content_type; headers, a
// JSON array of {"name","value"}, traceparent among them; not_before, in microseconds since 1970. A
// message_id names one message at each endpoint: see [ErrConflict].
func Outbox(ctx context.Context, tx *sql.Tx, placeholder string, m Message) (id string, err error) {
	m.Trace(ctx)
	if err := m.check(); err != nil {
		return "", err
	}
	m.ID = cmp.Or(m.ID, NewID("msg"))
	var headers, notBefore any
	if len(m.Headers) > 0 {
		text, err := json.Marshal(m.Headers)
		if err != nil {
			return "", err
		}
		headers = string(text)
	}
	if !m.NotBefore.IsZero() {
		notBefore = m.NotBefore.UnixMicro()
	}
	values := "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
	if placeholder == "$" {
		values = "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12"
	}
	if m.Body == nil {
		m.Body = []byte{}
	}
	for _, e := range m.Endpoints {
		_, err := tx.ExecContext(ctx, `INSERT INTO forbear_outbox (message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, not_before, body) VALUES (`+values+`)`,
			m.ID, e, m.Type, m.Source, m.Subject, m.Key, m.IdempotencyKey, m.CorrelationID, m.ContentType, headers, notBefore, m.Body)
		if err != nil {
			return "", fmt.Errorf("outbox: %w", err)
		}
	}
	return m.ID, nil
}
