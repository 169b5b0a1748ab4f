package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/webhook"
)

// A row of the outbox that is too large for its letter is kept beside the outbox for as
// long as the letter is, sealed like that.

// The columns of forbear_outbox_refused that are sealed. By the others it is found.
var refusedTexts = []string{"type", "source", "subject", "idempotency_key", "correlation_id", "content_type", "headers"}

// seeRefused stands in the place of a letter's headers when its row is kept.
const seeRefused = "see forbear_outbox_refused"

// keptOfCut is how much is kept of a body that is cut: characters, where it is a text.
const keptOfCut = maxOutboxBatch / 4

// cutColumns are the columns of a row that is cut.
var cutColumns = func() string {
	var list []string
	for column := range strings.SplitSeq(outboxColumns, ", ") {
		switch column {
		case "id", "not_before", "created":
		case "body":
			column = fmt.Sprintf("substr(%s, 1, %d)", column, keptOfCut)
		default:
			column = fmt.Sprintf("substr(%s, 1, %d)", column, maxColumn)
		}
		list = append(list, column)
	}
	return strings.Join(list, ", ")
}()

// keepRefused keeps a row of the outbox under its letter's id. Where it is sealed, one of
// more bytes than are read at once is cut: it must not stay in the clear.
func (t *tx) keepRefused(letter string, o *outboxRow) error {
	kept := outboxColumns
	if o.cut {
		kept = cutColumns
	}
	if _, err := t.exec(`INSERT INTO forbear_outbox_refused (letter, `+outboxColumns+`) SELECT CAST(? AS TEXT), `+kept+` FROM forbear_outbox WHERE id = ?`, letter, o.id); err != nil {
		return err
	}
	if t.db.cipher == nil {
		return nil
	}
	columns := append(slices.Clone(refusedTexts), "body")
	values := make([]any, len(columns))
	dest := make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i] // of any type on SQLite
	}
	found, err := t.row(dest, `SELECT `+strings.Join(columns, ", ")+` FROM forbear_outbox_refused WHERE letter = ?`, letter)
	if err != nil || !found {
		return err
	}
	for i, v := range values {
		switch plain := text(v); {
		case plain == "":
		case columns[i] == "body":
			values[i], err = t.db.seal(refusedCell(columns[i], letter), []byte(plain))
		default:
			values[i], err = t.db.sealText(refusedCell(columns[i], letter), []byte(plain))
		}
		if err != nil {
			return err
		}
	}
	_, err = t.exec(`UPDATE forbear_outbox_refused SET `+strings.Join(columns, " = ?, ")+` = ? WHERE letter = ?`, append(values, letter)...)
	return err
}

// refusedCell is where something sealed of a row that is kept belongs.
func refusedCell(column, letter string) cell { return place("outbox_refused."+column, letter) }

// addRefused puts the body of a row that is kept into its letter.
func (db *DB) addRefused(ctx context.Context, l *deadletter.Letter) error {
	if len(l.Headers) != 1 || l.Headers[0].Value != seeRefused {
		return nil
	}
	return db.each(ctx, func(r *sql.Rows) error {
		var body []byte
		if err := r.Scan(&body); err != nil {
			return err
		}
		plain, err := db.unseal(refusedCell("body", l.ID), body)
		if l.Payload = plain; err != nil {
			l.Unreadable = fmt.Sprintf("the row of dead letter %q %v: %v", l.ID, webhook.ErrUnreadable, err)
		}
		return nil
	}, `SELECT body FROM forbear_outbox_refused WHERE letter = ? AND octet_length(body) <= ?`, l.ID, maxOutboxBatch+maxSealed)
}
