package deliverycheck

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/forbear-go/forbear/webhook"
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
	write := p.manner()
	for i := range offers {
		var r row
		if p.chance(unsendable) {
			offers[i], r = p.nextInvalid()
			write = bySQL(plain) // the others refuse it
		} else {
			offers[i] = p.next()
			r = p.row(offers[i])
		}
		offers[i].Tx, offers[i].Row = tx, i
		rows = append(rows, r)
	}
	return insertRows(ctx, p.DB, p.Postgres, p.Clock, commit, offers, rows, write)
}

// transaction inserts rows in one transaction, and ends it.
type transaction = func(ctx context.Context, db *sql.DB, postgres, commit bool, rows []row) error

// writer inserts rows within a transaction.
type writer = func(ctx context.Context, tx *sql.Tx, postgres bool, rows []row) error

// The parts of the transactions that go by [webhook.Outbox], and on PostgreSQL by
// pgxoutbox with COPY and by forbear_send.
const (
	byLibrary  = 0.3
	byCopy     = 0.2
	byFunction = 0.2
)

// manner chooses how a transaction inserts its rows.
func (p *producer) manner() transaction {
	switch x := p.r.Float64(); {
	case x < byLibrary:
		return bySQL(library)
	case !p.Postgres:
	case x < byLibrary+byCopy:
		return copied
	case x < byLibrary+byCopy+byFunction:
		return bySQL(called)
	}
	return bySQL(plain)
}

// InsertRows inserts the rows of the offers in one transaction, and takes down
// how it ended. The database is not what is killed here: an error is the run's. A
// commit that fails leaves its result unknown, and a run with an unknown result
// cannot be judged.
func InsertRows(ctx context.Context, db *sql.DB, postgres bool, clock *Clock, commit bool, offers []*Offer, rows []row) error {
	return insertRows(ctx, db, postgres, clock, commit, offers, rows, bySQL(plain))
}

func insertRows(ctx context.Context, db *sql.DB, postgres bool, clock *Clock, commit bool, offers []*Offer, rows []row, write transaction) error {
	begin := clock.Tick()
	if err := write(ctx, db, postgres, commit, rows); err != nil {
		return fmt.Errorf("transaction %d may be committed or not: %w", offers[0].Tx, err)
	}
	result := Committed
	if !commit {
		result = RolledBack
	}
	done := clock.Tick()
	for _, o := range offers {
		o.Begin, o.Last, o.End, o.Result, o.Calls = begin, begin, done, result, 1
	}
	return nil
}

// bySQL is a transaction of database/sql.
func bySQL(write writer) transaction {
	return func(ctx context.Context, db *sql.DB, postgres, commit bool, rows []row) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := write(ctx, tx, postgres, rows); err != nil {
			_ = tx.Rollback()
			return err
		}
		if !commit {
			return tx.Rollback()
		}
		return tx.Commit()
	}
}

// plain inserts the rows as an application would: with a statement of its own, and only
// the columns that it has values for. Going through the library's own writer alone would
// test only what that writer can express.
func plain(ctx context.Context, tx *sql.Tx, postgres bool, rows []row) error {
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
			return err
		}
	}
	return nil
}

// library inserts the rows as messages. Two that are in conflict are refused before
// there is a statement, and go as an application would insert them.
func library(ctx context.Context, tx *sql.Tx, postgres bool, rows []row) error {
	msgs, err := messages(rows)
	if err != nil {
		return err
	}
	_, err = webhook.Outbox{SQLite: !postgres, CheckEndpoints: true}.Insert(ctx, tx, msgs...)
	if errors.Is(err, webhook.ErrConflict) {
		return plain(ctx, tx, postgres, rows)
	}
	return err
}

// messages are the rows as messages.
func messages(rows []row) (msgs []webhook.Message, err error) {
	msgs = make([]webhook.Message, len(rows))
	for i, r := range rows {
		if msgs[i], err = r.message(); err != nil {
			return nil, err
		}
	}
	return msgs, nil
}

// message is the row as a message.
func (r row) message() (m webhook.Message, err error) {
	text := func(column string) string {
		switch v := r[column].(type) {
		case string:
			return v
		case []byte:
			return string(v)
		}
		return ""
	}
	m = webhook.Message{
		ID: text("message_id"), Application: text("application"), Type: text("type"), Source: text("source"), Subject: text("subject"),
		Key: text("order_key"), IdempotencyKey: text("idempotency_key"), CorrelationID: text("correlation_id"),
		ContentType: text("content_type"), Body: []byte(text("body")),
	}
	if e := text("endpoint"); e != "" {
		m.Endpoints = []string{e}
	}
	if us, ok := r["not_before"].(int64); ok {
		m.NotBefore = time.UnixMicro(us)
	}
	if h := text("headers"); h != "" {
		err = json.Unmarshal([]byte(h), &m.Headers)
	}
	return m, err
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
