package webhook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Outbox inserts messages into forbear's outbox table within an application's own
// transaction: they are delivered if that transaction commits, and never existed
// otherwise. The table is in the application's database. The zero value is for
// PostgreSQL. It has no state, and may be used concurrently as the transactions may.
//
// For pgx.Tx, and COPY, there is the module pgxoutbox. Without Go a plain INSERT does, and on
// PostgreSQL the function forbear_send: see docs/guides/outbox-postgresql.md.
type Outbox struct {
	// SQLite says that the database is SQLite.
	SQLite bool
	// CheckEndpoints refuses messages to endpoints and applications that do not exist, with
	// [ErrUnknownEndpoint] or [ErrUnknownApplication], at the cost of a look at
	// forbear_endpoints or forbear_applications: the application's role must be permitted to
	// read their columns id, and deleted of the former. Without it, such a message becomes a dead letter with the reason
	// invalid once it is committed.
	CheckEndpoints bool
	// MaxPayload is the limit of bodies, in bytes: that of forbear serve --max-payload,
	// whose default is that of 0, [DefaultMaxPayload].
	MaxPayload int
}

// OutboxTx is the part of a transaction that an [Outbox] needs: that of [sql.Tx] and of
// what wraps one.
type OutboxTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	// Rollback is not called: pools have none, so that no one passes a pool.
	Rollback() error
}

// Insert inserts messages, in their order, and returns their ids: one is made for each
// message without. It takes the trace context of ctx along (see [Message.Trace]). What is
// wrong with any of the messages is found before the first statement, and all of it is in
// the error (see [NewOutboxBatch]): then nothing was inserted, and the transaction is as it
// was. After an error of the database it can only be rolled back, as after any statement.
//
// Many messages take few statements: 500 rows share one.
func (o Outbox) Insert(ctx context.Context, tx OutboxTx, msgs ...Message) (ids []string, err error) {
	b, err := NewOutboxBatch(ctx, msgs, o.MaxPayload)
	if err != nil {
		return nil, err
	}
	if o.CheckEndpoints {
		if err := o.checkEndpoints(ctx, tx, b); err != nil {
			return nil, err
		}
	}
	text := insertOutboxPostgres
	if o.SQLite {
		text = insertOutboxSQLite
	}
	for rows := range slices.Chunk(b.rows, outboxChunk) {
		table, bodies, err := encodeOutbox(rows)
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		if _, err := tx.ExecContext(ctx, text, bodies, table); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
	}
	return b.IDs(), nil
}

// outboxChunk is how many rows share a statement. Their bodies are joined in memory, and
// have 1 KiB each, usually.
const outboxChunk = 500

// A statement gets its rows as JSON and their bodies as one value, of which each row takes
// its part: no driver is needed that knows arrays, and no body is written as text.
var insertOutboxPostgres = `INSERT INTO forbear_outbox (` + strings.Join(outboxColumns, ", ") + `)
	SELECT x.` + strings.Join(outboxColumns[:len(outboxColumns)-1], ", x.") + `, substr($1::bytea, x.at, x.size)
	FROM json_to_recordset($2::json) AS x(n int, at int, size int, message_id text, endpoint text, type text, source text, subject text, order_key text,
		idempotency_key text, correlation_id text, content_type text, headers text, application text, not_before bigint) ORDER BY x.n`

// COALESCE is for drivers that bind an empty value as NULL.
var insertOutboxSQLite = `INSERT INTO forbear_outbox (` + strings.Join(outboxColumns, ", ") + `)
	SELECT value->>'` + strings.Join(outboxColumns[:len(outboxColumns)-1], "', value->>'") + `', COALESCE(substr(?, value->>'at', value->>'size'), x'')
	FROM json_each(?) ORDER BY key`

// encodeOutbox returns rows as the statements take them.
func encodeOutbox(rows []outboxRow) (table string, bodies []byte, err error) {
	list := make([]map[string]any, len(rows))
	bodies = []byte{}
	for i, r := range rows {
		// The endpoints of a message share its body.
		if i == 0 || rows[i-1].m != r.m {
			bodies = append(bodies, r.m.Body...)
		}
		list[i] = map[string]any{"n": i, "at": len(bodies) - len(r.m.Body) + 1, "size": len(r.m.Body)} // at counts from 1
		for k, v := range r.values() {
			list[i][outboxColumns[k]] = v
		}
	}
	text, err := json.Marshal(list)
	return string(text), bodies, err
}

// checkEndpoints refuses a batch to endpoints or applications that do not exist.
func (o Outbox) checkEndpoints(ctx context.Context, tx OutboxTx, b *OutboxBatch) error {
	endpoints, err := o.existing(ctx, tx, "forbear_endpoints WHERE deleted IS NULL AND id", b.Endpoints())
	if err != nil {
		return err
	}
	applications, err := o.existing(ctx, tx, "forbear_applications WHERE id", b.Applications())
	if err != nil {
		return err
	}
	return b.Known(endpoints, applications)
}

// existing returns those of the ids that are there: of a table's rows WHERE id.
func (o Outbox) existing(ctx context.Context, tx OutboxTx, where string, ids []string) (known []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("outbox: cannot read the endpoints: %w", err)
		}
	}()
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	among := `json_array_elements_text($1::json)`
	if o.SQLite {
		among = `value FROM json_each(?)`
	}
	rows, err := tx.QueryContext(ctx, `SELECT id FROM `+where+` IN (SELECT `+among+`)`, string(list))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		known = append(known, id)
	}
	return known, rows.Err()
}
