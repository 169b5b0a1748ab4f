package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forbear-go/forbear/internal/wait"
)

// What is sealed names its key. A key can be given up when nothing names it any more:
// that is counted by the beginnings of what is stored, and what names another key than
// the one that seals is written anew, while other processes work on the database.

// sealedPart is a part of the database that has sealed columns. Empty ones have
// nothing to hide.
type sealedPart struct {
	name  string // as operators read it
	table string
	key   []string // by which a row is written
	texts []string // columns by sealText
	blobs []string // columns by seal

	// Where they are not the table and its key:
	from  string   // what is read
	order string   // what it is read in the order of
	place []string // what the cells are made of
}

var sealedParts = []sealedPart{
	{name: "applications", table: "forbear_applications", key: []string{"id"}, texts: []string{"spec"}},
	{name: "endpoints", table: "forbear_endpoints", key: []string{"id"}, texts: []string{"spec"}},
	{
		name: "messages", table: "forbear_messages", key: []string{"seq"}, texts: []string{"meta"}, blobs: []string{"body"},
		// Only deliveries know the id.
		from: "forbear_deliveries d JOIN forbear_messages m ON m.seq = d.message", order: "d.id", place: []string{"d.message_id", "m.created"},
	},
	{name: "attempts", table: "forbear_attempts", key: []string{"delivery", "claim"}, texts: []string{"response", "cause"}},
	{name: "dead letters", table: "forbear_letters", key: []string{"seq"}, blobs: []string{"sealed"}, place: []string{"id"}},
	{name: "refused rows", table: "forbear_outbox_refused", key: []string{"letter"}, texts: refusedTexts, blobs: []string{"body"}},
	{name: "idempotency records", table: "forbear_idempotency", key: []string{"scope", "hash"}, texts: []string{"header"}, blobs: []string{"body"}},
}

// cell returns where a column of a row belongs.
func (p sealedPart) cell(column string, row *sealedRow) cell {
	keys := make([]string, len(row.place))
	for i, v := range row.place {
		keys[i] = text(v)
	}
	return place(strings.TrimPrefix(p.table, "forbear_")+"."+column, keys...)
}

// Sealed counts the rows of a part of the database by the key that they are encrypted
// under. A row that names two keys counts for the one that is to go.
type Sealed struct {
	Part string
	Key  string // its id; "" for what is not encrypted
	Rows int64
	// Unbound says that an earlier version has sealed it, without binding it to its row.
	Unbound bool
	// Current says that it is as it would be sealed now: bound, and under the first key.
	Current bool
}

// ErrNoKey refuses to count or rewrite by keys where there are none: without a cipher
// of [NewCipher].
var ErrNoKey = errors.New("no encryption key is given")

const (
	censusPage = 2000 // rows whose beginnings are read at once
	sealedHead = 400  // bytes of a column that hold the id of its key, of up to 255 in base64
	resealPage = 64   // rows that are written at once
	// resealPause is the ceiling of the pause after each, in which deliveries have the
	// database for themselves.
	resealPause = 20 * time.Millisecond
)

// SealedUnder counts what is encrypted under which key, by part and key.
func (db *DB) SealedUnder(ctx context.Context) ([]Sealed, error) {
	var list []Sealed
	err := db.passSealed(ctx, func(p sealedPart, rows []sealedRow) error {
		list = count(list, p, rows)
		return nil
	})
	return list, err
}

// maxPasses bounds how often Reencrypt goes over the database. Processes that write in
// another form meanwhile would keep it at it.
const maxPasses = 3

// Reencrypt writes anew what is not encrypted under the first key and for its place,
// what was written before encryption was switched on included, and returns the number of
// rows. It may be ended and called again, beside processes at work; those must have the
// key, and be of this version. progress is called after each batch, with the count of the
// part's rows that were looked at.
//
// When a pass finds nothing to write anew, the database is marked: from then on what is
// not encrypted for its place is refused with [ErrUnsealed]. Processes that deliver learn
// it by their next heartbeat, those that keep records by their next sweep, others when
// they start. See [DB.AllSealed].
func (db *DB) Reencrypt(ctx context.Context, progress func(part string, rows, written int64)) (written int64, err error) {
	for range maxPasses {
		n, stale, err := db.reencrypt(ctx, func(part string, rows, n int64) { progress(part, rows, written+n) })
		if written += n; err != nil {
			return written, err
		}
		if stale == 0 {
			return written, db.mark(ctx)
		}
	}
	return written, nil
}

// reencrypt goes over the database once. stale is how many rows were to be written anew.
func (db *DB) reencrypt(ctx context.Context, progress func(part string, rows, written int64)) (written, stale int64, err error) {
	part, looked := "", int64(0)
	err = db.passSealed(ctx, func(p sealedPart, rows []sealedRow) error {
		if p.name != part {
			part, looked = p.name, 0
		}
		looked += int64(len(rows))
		rows = slices.DeleteFunc(rows, func(r sealedRow) bool { return r.empty || r.current })
		stale += int64(len(rows))
		page := resealPage
		if p.table == "forbear_outbox_refused" {
			page = 1 // they are large
		}
		for batch := range slices.Chunk(rows, page) {
			n, err := db.reseal(ctx, p, batch)
			if written += n; err != nil {
				return err
			}
			progress(part, looked, written)
			if !wait.Sleep(ctx, wait.Jitter(resealPause)) {
				return context.Cause(ctx)
			}
		}
		progress(part, looked, written)
		return nil
	})
	return written, stale, err
}

// sealedRow is a row with what its columns are sealed under.
type sealedRow struct {
	order   []any // where it is in what is read
	key     []any
	place   []any
	id      string // of the encryption key, "" for none
	unbound bool   // it is sealed, and not for its place
	current bool
	empty   bool // it has nothing to seal
}

// same reports whether two are one row.
func (r sealedRow) same(o sealedRow) bool {
	return slices.EqualFunc(r.key, o.key, func(a, b any) bool { return text(a) == text(b) })
}

// passSealed calls f for all rows of all parts, in pages.
func (db *DB) passSealed(ctx context.Context, f func(sealedPart, []sealedRow) error) error {
	ring, ok := db.cipher.(*keyring)
	if !ok {
		return ErrNoKey
	}
	for _, p := range sealedParts {
		var from []any
		for {
			rows, err := db.sealedPage(ctx, ring, p, from)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if len(rows) == 0 {
				break
			}
			from = rows[len(rows)-1].order
			rows = slices.CompactFunc(rows, sealedRow.same) // a message of several deliveries
			if err := f(p, rows); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// sealedPage reads the keys of the rows behind one, and the beginnings of what is
// sealed there.
func (db *DB) sealedPage(ctx context.Context, ring *keyring, p sealedPart, from []any) ([]sealedRow, error) {
	key := cmp.Or(p.order, strings.Join(p.key, ", "))
	columns := slices.Concat(strings.Split(key, ", "), p.key, p.places())
	for _, c := range slices.Concat(p.texts, p.blobs) {
		columns = append(columns, fmt.Sprintf("substr(%s, 1, %d)", c, sealedHead))
	}
	where := ""
	if from != nil {
		where = ` WHERE (` + key + `) > (` + placeholders(len(from)) + `)`
	}
	return readAll(ctx, db, func(r *sql.Rows) (sealedRow, error) { return p.scanHeads(r, ring, strings.Count(key, ",")+1) },
		`SELECT `+strings.Join(columns, ", ")+` FROM `+cmp.Or(p.from, p.table)+where+` ORDER BY `+key+` LIMIT ?`, append(slices.Clone(from), censusPage)...)
}

// places are the columns that cells are made of.
func (p sealedPart) places() []string {
	if p.place != nil {
		return p.place
	}
	return p.key
}

// scanHeads reads a row of sealedPage. One column that is not under the current key
// makes the row one to be written anew.
func (p sealedPart) scanHeads(r *sql.Rows, ring *keyring, ordered int) (row sealedRow, err error) {
	keys := make([]any, ordered+len(p.key)+len(p.places()))
	row.order, row.key, row.place = keys[:ordered], keys[ordered:ordered+len(p.key)], keys[ordered+len(p.key):]
	texts, blobs := make([]sql.NullString, len(p.texts)), make([][]byte, len(p.blobs))
	if err := r.Scan(pointers(keys, texts, blobs)...); err != nil {
		return row, err
	}
	row.empty, row.current = true, true
	note := func(box []byte) {
		id, sealed := keyOf(box)
		bound := sealed && isBound(box)
		if row.empty = false; id == ring.current && bound {
			if row.current {
				row.id = id
			}
			return
		}
		if row.current || id != ring.current { // one of another key says more than one that is not bound
			row.id, row.unbound = id, sealed && !bound
		}
		row.current = false
	}
	for _, s := range texts {
		if s.String != "" {
			note(boxOfText(s.String))
		}
	}
	for _, b := range blobs {
		if len(b) > 0 {
			note(b)
		}
	}
	return row, nil
}

// pointers returns where to scan a row to.
func pointers(key []any, texts []sql.NullString, blobs [][]byte) (dest []any) {
	for i := range key {
		dest = append(dest, &key[i])
	}
	for i := range texts {
		dest = append(dest, &texts[i])
	}
	for i := range blobs {
		dest = append(dest, &blobs[i])
	}
	return dest
}

// keyOfText is keyOf for what sealText returns, or for the beginning of it.
func keyOfText(s string) string {
	id, _ := keyOf(boxOfText(s))
	return id
}

// boxOfText returns the beginning of what is sealed in a text, and nil for one that is not.
func boxOfText(s string) []byte {
	box, ok := strings.CutPrefix(s, sealedText)
	if !ok {
		return nil
	}
	b, _ := base64.StdEncoding.DecodeString(box[:len(box)/4*4])
	return b
}

// count adds a page to the counts, which are in the order of the parts.
func count(list []Sealed, p sealedPart, rows []sealedRow) []Sealed {
	for _, r := range rows {
		if r.empty {
			continue
		}
		i := slices.IndexFunc(list, func(s Sealed) bool { return s.Part == p.name && s.Key == r.id && s.Unbound == r.unbound })
		if i < 0 {
			i = len(list)
			list = append(list, Sealed{Part: p.name, Key: r.id, Unbound: r.unbound, Current: r.current})
		}
		list[i].Rows++
	}
	return list
}

// resealed is a row to be written anew, with what it had.
type resealed struct {
	key, old, new []any
}

// reseal writes rows anew. One that has changed meanwhile was written by another
// process, or is met again by the next pass.
func (db *DB) reseal(ctx context.Context, p sealedPart, rows []sealedRow) (int64, error) {
	list := make([]resealed, 0, len(rows))
	for _, r := range rows {
		row, err := db.sealAnew(ctx, p, &r)
		if err != nil {
			return 0, err
		}
		if row != nil {
			list = append(list, *row)
		}
	}
	columns := slices.Concat(p.texts, p.blobs)
	if p.table == "forbear_letters" {
		columns = append(columns, "meta")
	}
	var set, same []string
	for _, c := range columns {
		// What was empty stays so, NULL or not, which drivers do not all distinguish.
		empty := `COALESCE(octet_length(` + c + `), 0) = 0`
		set, same = append(set, c+` = CASE WHEN `+empty+` THEN `+c+` ELSE ? END`), append(same, `(`+empty+` OR `+c+` = ?)`)
	}
	for _, c := range p.key {
		same = append(same, c+" = ?")
	}
	text := `UPDATE ` + p.table + ` SET ` + strings.Join(set, ", ") + ` WHERE ` + strings.Join(same, " AND ")
	return do(ctx, db, func(t *tx) (written int64, err error) {
		for _, r := range list {
			n, err := t.exec(text, slices.Concat(r.new, r.old, r.key)...)
			if err != nil {
				return 0, err
			}
			written += n
		}
		return written, nil
	})
}

// sealAnew reads a row and seals it under the current key; nil when it has gone.
func (db *DB) sealAnew(ctx context.Context, p sealedPart, from *sealedRow) (*resealed, error) {
	key := from.key
	where := ` FROM ` + p.table + ` WHERE ` + strings.Join(p.key, " = ? AND ") + ` = ?`
	if p.table == "forbear_letters" {
		return db.sealLetterAnew(ctx, where, key)
	}
	texts, blobs := make([]sql.NullString, len(p.texts)), make([][]byte, len(p.blobs))
	found := false
	err := db.each(ctx, func(r *sql.Rows) error {
		found = true
		return r.Scan(pointers(nil, texts, blobs)...)
	}, `SELECT `+strings.Join(slices.Concat(p.texts, p.blobs), ", ")+where, slices.Clone(key)...)
	if err != nil || !found {
		return nil, err
	}
	row := &resealed{key: key}
	for i, s := range texts {
		anew, at := "", p.cell(p.texts[i], from)
		if s.String != "" {
			plain, err := db.unsealText(at, s.String)
			if err != nil {
				return nil, err
			}
			if anew, err = db.sealText(at, plain); err != nil {
				return nil, err
			}
		}
		row.old, row.new = append(row.old, s.String), append(row.new, anew)
	}
	for i, b := range blobs {
		anew, at := []byte{}, p.cell(p.blobs[i], from)
		if len(b) > 0 {
			plain, err := db.unseal(at, b)
			if err != nil {
				return nil, err
			}
			if anew, err = db.seal(at, plain); err != nil {
				return nil, err
			}
		}
		row.old, row.new = append(row.old, b), append(row.new, anew)
	}
	return row, nil
}

// sealLetterAnew is sealAnew for a letter. One of before encryption has what its errors
// quote beside what is sealed.
func (db *DB) sealLetterAnew(ctx context.Context, where string, key []any) (*resealed, error) {
	// What it has now is read first: a letter that changes in between is left alone.
	var sealed []byte
	var meta string
	if err := db.each(ctx, func(r *sql.Rows) error { return r.Scan(&sealed, &meta) }, `SELECT sealed, meta`+where, slices.Clone(key)...); err != nil {
		return nil, err
	}
	list, err := readAll(ctx, db, db.scanLetter, `SELECT `+letterColumns+where, slices.Clone(key)...)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	row, err := db.encodeLetter(list[0])
	return &resealed{key, []any{sealed, meta}, []any{row.sealed, asJSON{row.Letter}}}, err
}
