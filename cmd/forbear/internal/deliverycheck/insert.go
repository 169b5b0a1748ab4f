package deliverycheck

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// row is a row of forbear_outbox. Its values are of any type, because on SQLite
// every column takes every type. A missing column is left to its default.
type row map[string]any

// columns are those of the outbox that a row may set, in a fixed order. A fixed
// order makes the statements of equal seeds equal.
var columns = []string{
	"message_id", "endpoint", "application", "type", "source", "subject", "order_key", "idempotency_key", "correlation_id",
	"content_type", "headers", "not_before", "body",
}

// insert makes one transaction with a few offers, which is committed or rolled
// back. Offers of one transaction are committed or rolled back together, and their order within it is
// part of rule 6.
func (p *producer) insert(ctx context.Context) error {
	commit := !p.chance(rolledBack)
	offers, rows := make([]*Offer, 1+p.r.IntN(5)), []row(nil)
	tx := int(p.txs.Add(1))
	for i := range offers {
		var r row
		if p.chance(unsendable) {
			offers[i], r = p.nextInvalid()
		} else {
			offers[i] = p.next()
			r = p.row(offers[i])
		}
		offers[i].Tx, offers[i].Row = tx, i
		rows = append(rows, r)
	}
	return InsertRows(ctx, p.DB, p.Postgres, p.Clock, commit, offers, rows)
}

// InsertRows inserts the rows of the offers in one transaction, and takes down
// how it ended. The database is not what is killed here: an error is the run's. A
// commit that fails leaves its result unknown, and a run with an unknown result
// cannot be judged.
func InsertRows(ctx context.Context, db *sql.DB, postgres bool, clock *Clock, commit bool, offers []*Offer, rows []row) error {
	begin := clock.Tick()
	tx, err := fill(ctx, db, postgres, rows)
	if err != nil {
		return fmt.Errorf("transaction %d: %w", offers[0].Tx, err)
	}
	result, end := Committed, tx.Commit
	if !commit {
		result, end = RolledBack, tx.Rollback
	}
	if err := end(); err != nil {
		return fmt.Errorf("transaction %d may be committed or not: %w", offers[0].Tx, err)
	}
	done := clock.Tick()
	for _, o := range offers {
		o.Begin, o.Last, o.End, o.Result, o.Calls = begin, begin, done, result, 1
	}
	return nil
}

// fill begins a transaction and inserts the rows, as an application would: with a
// statement of its own, and only the columns that it has values for. Going through
// the library's own writer would test only what that writer can express. After an
// error nothing is left open.
func fill(ctx context.Context, db *sql.DB, postgres bool, rows []row) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		var names, marks []string
		var args []any
		for _, name := range columns {
			v, ok := r[name]
			if !ok {
				continue
			}
			names, args = append(names, name), append(args, v)
			if postgres {
				marks = append(marks, fmt.Sprint("$", len(args)))
			} else {
				marks = append(marks, "?")
			}
		}
		statement := "INSERT INTO forbear_outbox (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
		if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
			_ = tx.Rollback()
			return nil, err
		}
	}
	return tx, nil
}

// row writes the offer as a row of the outbox. Empty fields are left out rather than
// written as empty texts: the columns' defaults are under test too.
func (o *Offer) row() row {
	c := &o.Content
	r := row{"message_id": o.ID, "endpoint": o.Endpoints[0], "body": []byte(c.Body)}
	for name, v := range map[string]string{
		"type": c.Type, "source": c.Source, "subject": c.Subject, "order_key": c.Key,
		"idempotency_key": c.IdempotencyKey, "content_type": c.ContentType,
	} {
		if v != "" {
			r[name] = v
		}
	}
	if len(c.Headers) > 0 {
		text, _ := json.Marshal(c.Headers)
		r["headers"] = string(text)
	}
	return r
}

// row writes the offer as a row. What is no part of a message's content varies
// from row to row, and so does the type of a text on SQLite.
func (p *producer) row(o *Offer) row {
	r := o.row()
	if p.chance(0.2) {
		r["correlation_id"] = p.word("correlation")
	}
	if p.chance(0.02) {
		r["not_before"] = time.Now().Add(-time.Hour).UnixMicro()
	}
	if p.chance(0.3) {
		delete(r, "endpoint")
		r["application"] = applicationOf(o.Endpoints[0])
	}
	if !p.Postgres && o.Content.ContentType != raw && p.chance(0.3) {
		r["body"] = o.Content.Body // as a statement with a literal does
	}
	return r
}
