package sqlstore

import (
	"context"
	"database/sql"
)

// sealedMark is the name of the row of forbear_sweeps which says that everything was
// found sealed.
const sealedMark = "sealed"

// markStep is the step of the schema that has made forbear_sweeps.
const markStep = 70

// mark notes that all is sealed, for all processes and for good.
func (db *DB) mark(ctx context.Context) error {
	err := db.write(ctx, func(t *tx) error {
		_, err := t.exec(`INSERT INTO forbear_sweeps (name, finished, delivery) VALUES (?, {t}, 0) ON CONFLICT (name) DO NOTHING`, sealedMark, after(0))
		return err
	})
	if err == nil {
		db.sealed.Store(true)
	}
	return err
}

// markQuery looks for the mark.
const markQuery = `SELECT 1 FROM forbear_sweeps WHERE name = '` + sealedMark + `'`

// lookForMark learns whether all is sealed.
func (db *DB) lookForMark(ctx context.Context) error {
	if db.sealed.Load() {
		return nil
	}
	return db.each(ctx, func(*sql.Rows) error {
		db.sealed.Store(true)
		return nil
	}, markQuery)
}

// lookForMark is that of the DB in a transaction: a beat does not wait behind those who read.
func (t *tx) lookForMark() error {
	if t.db.sealed.Load() {
		return nil
	}
	var one int
	found, err := t.row([]any{&one}, markQuery)
	if found {
		t.db.sealed.Store(true)
	}
	return err
}

// AllSealed reports whether [DB.Reencrypt] has found everything encrypted for its place,
// so that anything else is refused. It is known once the schema was looked at.
func (db *DB) AllSealed() bool { return db.sealed.Load() }
