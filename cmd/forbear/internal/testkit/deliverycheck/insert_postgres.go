package deliverycheck

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/forbear-go/forbear/pgxoutbox"
	"github.com/forbear-go/forbear/webhook"
)

// copied inserts the rows by pgxoutbox, several of them with COPY. Two that are in
// conflict are refused before there is a statement, and go as an application would
// insert them.
func copied(ctx context.Context, db *sql.DB, postgres, commit bool, rows []row) error {
	msgs, err := messages(rows)
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(c any) error {
		tx, err := c.(*stdlib.Conn).Conn().Begin(ctx)
		if err != nil {
			return err
		}
		return copyIn(ctx, tx, commit, msgs)
	})
	if err = errors.Join(err, conn.Close()); errors.Is(err, webhook.ErrConflict) {
		return bySQL(plain)(ctx, db, postgres, commit, rows)
	}
	return err
}

// copyIn inserts the messages with a transaction, and ends it.
func copyIn(ctx context.Context, tx pgx.Tx, commit bool, msgs []webhook.Message) error {
	if _, err := (pgxoutbox.Outbox{CheckEndpoints: true}).Insert(ctx, tx, msgs...); err != nil {
		return errors.Join(err, tx.Rollback(ctx))
	}
	if !commit {
		return tx.Rollback(ctx)
	}
	return tx.Commit(ctx)
}

// called inserts the rows by the function forbear_send, as an application in any language
// does. What it cannot say, a payload that is no text and headers whose order counts, goes
// as an application would insert it.
func called(ctx context.Context, tx *sql.Tx, postgres bool, rows []row) error {
	for _, r := range rows {
		m, err := r.message()
		if err != nil {
			return err
		}
		if len(m.Headers) > 0 || !utf8.Valid(m.Body) || strings.ContainsRune(string(m.Body), 0) {
			if err := plain(ctx, tx, postgres, []row{r}); err != nil {
				return err
			}
			continue
		}
		args := []any{m.Type, string(m.Body)}
		var names []string
		for _, name := range columns {
			v, ok := r[name]
			if name == "type" || name == "body" || !ok {
				continue
			}
			if us, ok := v.(int64); ok {
				v = time.UnixMicro(us)
			}
			args, names = append(args, v), append(names, fmt.Sprintf("%s => $%d", name, len(args)+1))
		}
		if _, err := tx.ExecContext(ctx, `SELECT forbear_send(NULLIF($1, ''), $2::text, `+strings.Join(names, ", ")+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}
