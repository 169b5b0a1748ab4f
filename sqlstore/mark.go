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

// lookForMark learns whether all is sealed. In a transaction, by [tx.each], it does not wait
// behind those who read.
func (db *DB) lookForMark(each asker) error {
	if db.sealed.Load() {
		return nil
	}
	return each(func(*sql.Rows) error {
		db.sealed.Store(true)
		return nil
	}, `SELECT 1 FROM forbear_sweeps WHERE name = ?`, sealedMark)
}

// AllSealed reports whether [DB.Reencrypt] has found everything encrypted for its place,
// so that anything else is refused. It is known once the schema was looked at.
func (db *DB) AllSealed() bool { return db.sealed.Load() }
