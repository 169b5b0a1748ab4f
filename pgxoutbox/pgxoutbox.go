// Package pgxoutbox inserts messages into forbear's outbox table within transactions of
// pgx, many of them by COPY:
//
//	var outbox pgxoutbox.Outbox
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		if _, err := tx.Exec(ctx, `UPDATE orders SET shipped = true WHERE id = $1`, order); err != nil {
//			return err
//		}
//		_, err := outbox.Insert(ctx, tx, webhook.Message{Endpoints: []string{"acme"}, Type: "order.shipped", Body: body})
//		return err
//	})
//
// For database/sql, and for SQLite, there is [webhook.Outbox]. The guide is
// docs/guides/outbox-postgresql.md.
//
// Experimental: what this package exports may change in any version.
package pgxoutbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/forbear-go/forbear/webhook"
)

// Outbox is [webhook.Outbox] for pgx. It has no state, and may be used concurrently as
// the transactions may.
type Outbox struct {
	// CheckEndpoints refuses messages to endpoints and applications that do not exist: see
	// [webhook.Outbox].
	CheckEndpoints bool
	// MaxPayload is the limit of bodies, in bytes: that of forbear serve --max-payload,
	// whose default is that of 0, [webhook.DefaultMaxPayload].
	MaxPayload int
}

const table = "forbear_outbox"

// Insert inserts messages, in their order, and returns their ids: one is made for each
// message without. It takes the trace context of ctx along. What is wrong with any of the
// messages is found before the first statement, and all of it is in the error, which matches
// [webhook.ErrInvalid], [webhook.ErrConflict] or [webhook.ErrUnknownEndpoint]: then nothing
// was inserted, and the transaction is as it was.
//
// Several rows go by COPY, with one wait for the server's response however many they are.
func (o Outbox) Insert(ctx context.Context, tx pgx.Tx, msgs ...webhook.Message) (ids []string, err error) {
	b, err := webhook.NewOutboxBatch(ctx, msgs, o.MaxPayload)
	if err != nil {
		return nil, err
	}
	if o.CheckEndpoints {
		if err := checkEndpoints(ctx, tx, b); err != nil {
			return nil, err
		}
	}
	switch columns := b.Columns(); b.Len() {
	case 0:
	case 1: // COPY would ask for the types of the columns first
		_, err = tx.Exec(ctx, insert(columns), b.Row(0)...)
	default:
		_, err = tx.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromSlice(b.Len(), func(i int) ([]any, error) { return b.Row(i), nil }))
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return b.IDs(), nil
}

// insert returns the statement for one row.
func insert(columns []string) string {
	places := make([]string, len(columns))
	for i := range places {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	return `INSERT INTO ` + table + ` (` + strings.Join(columns, ", ") + `) VALUES (` + strings.Join(places, ", ") + `)`
}

// checkEndpoints refuses a batch to endpoints or applications that do not exist.
func checkEndpoints(ctx context.Context, tx pgx.Tx, b *webhook.OutboxBatch) error {
	endpoints, err := existing(ctx, tx, "forbear_endpoints WHERE deleted IS NULL AND id", b.Endpoints())
	if err != nil {
		return err
	}
	applications, err := existing(ctx, tx, "forbear_applications WHERE id", b.Applications())
	if err != nil {
		return err
	}
	return b.Known(endpoints, applications)
}

// existing returns those of the ids that are there: of a table's rows WHERE id.
func existing(ctx context.Context, tx pgx.Tx, where string, ids []string) (known []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT id FROM `+where+` = ANY($1)`, ids)
	if err == nil {
		known, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		err = fmt.Errorf("outbox: cannot read the endpoints: %w", err)
	}
	return known, err
}
