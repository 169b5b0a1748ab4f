package sqlstore

import (
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
	key   []string
	texts []string // columns by sealText
	blobs []string // columns by seal
}

var sealedParts = []sealedPart{
	{"applications", "forbear_applications", []string{"id"}, []string{"spec"}, nil},
	{"endpoints", "forbear_endpoints", []string{"id"}, []string{"spec"}, nil},
	{"messages", "forbear_messages", []string{"seq"}, []string{"meta"}, []string{"body"}},
	{"attempts", "forbear_attempts", []string{"delivery", "claim"}, []string{"response", "cause"}, nil},
	{"dead letters", "forbear_letters", []string{"seq"}, nil, []string{"sealed"}},
	{"refused rows", "forbear_outbox_refused", []string{"letter"}, refusedTexts, []string{"body"}},
	{"idempotency records", "forbear_idempotency", []string{"scope", "hash"}, []string{"header"}, []string{"body"}},
}

// Sealed counts the rows of a part of the database by the key that they are encrypted
// under. A row that names two keys counts for the one that is to go.
type Sealed struct {
	Part string
	Key  string // its id; "" for what is not encrypted
	Rows int64
	// Current says that this is the key that seals now.
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

// Reencrypt writes anew what is not encrypted under the first key, what was written
// before encryption was switched on included, and returns the number of rows. It may
// be ended and called again, beside processes at work; those must have the key. progress is
// called after each batch, with the count of the part's rows that were looked at.
func (db *DB) Reencrypt(ctx context.Context, progress func(part string, rows, written int64)) (written int64, err error) {
	part, looked := "", int64(0)
	err = db.passSealed(ctx, func(p sealedPart, rows []sealedRow) error {
		if p.name != part {
			part, looked = p.name, 0
		}
		looked += int64(len(rows))
		rows = slices.DeleteFunc(rows, func(r sealedRow) bool { return r.empty || r.current })
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
	return written, err
}

// sealedRow is a row with what its columns are sealed under.
type sealedRow struct {
	key     []any
	id      string // of the key, "" for none
	current bool
	empty   bool // it has nothing to seal
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
			from = rows[len(rows)-1].key
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
	columns := slices.Clone(p.key)
	for _, c := range slices.Concat(p.texts, p.blobs) {
		columns = append(columns, fmt.Sprintf("substr(%s, 1, %d)", c, sealedHead))
	}
	key, where := strings.Join(p.key, ", "), ""
	if from != nil {
		where = ` WHERE (` + key + `) > (` + placeholders(len(from)) + `)`
	}
	return readAll(ctx, db, func(r *sql.Rows) (sealedRow, error) { return p.scanHeads(r, ring) },
		`SELECT `+strings.Join(columns, ", ")+` FROM `+p.table+where+` ORDER BY `+key+` LIMIT ?`, append(slices.Clone(from), censusPage)...)
}

// scanHeads reads a row of sealedPage. One column that is not under the current key
// makes the row one to be written anew.
func (p sealedPart) scanHeads(r *sql.Rows, ring *keyring) (row sealedRow, err error) {
	row.key = make([]any, len(p.key))
	texts, blobs := make([]sql.NullString, len(p.texts)), make([][]byte, len(p.blobs))
	if err := r.Scan(pointers(row.key, texts, blobs)...); err != nil {
		return row, err
	}
	row.empty, row.current = true, true
	note := func(id string) {
		if row.empty = false; id == ring.current && row.current {
			row.id = id
		} else if id != ring.current {
			row.id, row.current = id, false
		}
	}
	for _, s := range texts {
		if s.String != "" {
			note(keyOfText(s.String))
		}
	}
	for _, b := range blobs {
		if len(b) > 0 {
			id, _ := keyOf(b)
			note(id)
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
	box, ok := strings.CutPrefix(s, sealedText)
	if !ok {
		return ""
	}
	b, _ := base64.StdEncoding.DecodeString(box[:len(box)/4*4])
	id, _ := keyOf(b)
	return id
}

// count adds a page to the counts, which are in the order of the parts.
func count(list []Sealed, p sealedPart, rows []sealedRow) []Sealed {
	for _, r := range rows {
		if r.empty {
			continue
		}
		i := slices.IndexFunc(list, func(s Sealed) bool { return s.Part == p.name && s.Key == r.id })
		if i < 0 {
			i = len(list)
			list = append(list, Sealed{Part: p.name, Key: r.id, Current: r.current})
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
		row, err := db.sealAnew(ctx, p, r.key)
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
func (db *DB) sealAnew(ctx context.Context, p sealedPart, key []any) (*resealed, error) {
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
	for _, s := range texts {
		anew := ""
		if s.String != "" {
			plain, err := db.unsealText(s.String)
			if err != nil {
				return nil, err
			}
			if anew, err = db.sealText(plain); err != nil {
				return nil, err
			}
		}
		row.old, row.new = append(row.old, s.String), append(row.new, anew)
	}
	for _, b := range blobs {
		anew := []byte{}
		if len(b) > 0 {
			plain, err := db.unseal(b)
			if err != nil {
				return nil, err
			}
			if anew, err = db.seal(plain); err != nil {
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
