package sqlstore

import (
	"context"
	"database/sql"
	"time"
)

// Instance is a process that works on the database.
type Instance struct {
	Owner   string    `json:"-"`       // as leases and histories have it
	Name    string    `json:"name"`    // for people
	Console string    `json:"console"` // the address of its console; "": none
	Version string    `json:"version"` // of forbear
	Seen    time.Time `json:"seen_at,omitzero"`
}

// PutInstance makes an instance known to the others, for a while, and forgets those that
// have not been seen for as long as they said.
func (db *DB) PutInstance(ctx context.Context, i Instance, lease time.Duration) error {
	return db.write(ctx, func(t *tx) error {
		_, err := t.exec(`INSERT INTO forbear_instances (owner, name, console, version, seen, expires) VALUES (?, ?, ?, ?, {t}, {t})
			ON CONFLICT (owner) DO UPDATE SET name = EXCLUDED.name, console = EXCLUDED.console, version = EXCLUDED.version, seen = EXCLUDED.seen, expires = EXCLUDED.expires`,
			i.Owner, i.Name, i.Console, i.Version, after(0), after(lease))
		if err == nil {
			_, err = t.exec(`DELETE FROM forbear_instances WHERE expires < {now} AND owner <> ?`, after(0), i.Owner)
		}
		return err
	})
}

// RemoveInstance ends what [DB.PutInstance] began.
func (db *DB) RemoveInstance(ctx context.Context, owner string) error {
	return db.write(ctx, func(t *tx) error {
		_, err := t.exec(`DELETE FROM forbear_instances WHERE owner = ?`, owner)
		return err
	})
}

// Instances lists those that are known, by their names. Of a former version's processes
// there are their owners alone, and only while an endpoint has a rate: they beat then.
func (db *DB) Instances(ctx context.Context) ([]Instance, error) {
	return readAll(ctx, db, func(r *sql.Rows) (i Instance, err error) {
		var seen int64
		err = r.Scan(&i.Owner, &i.Name, &i.Console, &i.Version, &seen)
		i.Seen = at(seen)
		return i, err
	}, `SELECT owner, name, console, version, seen FROM forbear_instances WHERE expires >= {now}
		UNION ALL SELECT owner, owner, '', '', 0 FROM forbear_dispatchers WHERE expires >= {now} AND owner NOT IN (SELECT owner FROM forbear_instances)
		ORDER BY 2, 1`, after(0), after(0))
}
