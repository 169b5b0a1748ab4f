package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// Migrations of all concepts are numbered in one list, with gaps for those that
// come between. They run in their order in one transaction, and only forwards: an
// older forbear refuses a newer database.

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one step of the schema. Steps are never changed once released:
// a later one follows.
type Migration struct {
	Version int
	Name    string
	Applied time.Time // zero: not yet
	text    string
}

// ErrNewer refuses a database that a later forbear has migrated.
var ErrNewer = errors.New("the database is newer than this forbear")

// migrations lists the embedded steps in order. All stores of this package
// share the one list.
func migrations() ([]Migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var list []Migration
	for _, path := range names { // sorted by name, so by version
		text, err := migrationFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(path, "migrations/"), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", path, err)
		}
		list = append(list, Migration{Version: version, Name: name, text: string(text)})
	}
	return list, nil
}

// migrationTable is the one table that no migration makes.
const migrationTable = `CREATE TABLE IF NOT EXISTS forbear_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied BIGINT NOT NULL)`

// migrationTimeout bounds a migration on PostgreSQL: a step may write each row.
const migrationTimeout = time.Hour

// Migrate brings the schema up to date and returns the steps that were
// applied. Several processes may call it at the same time.
func (db *DB) Migrate(ctx context.Context) ([]Migration, error) {
	return doAs(ctx, db, op{alone: true, limit: migrationTimeout}, func(t *tx) (applied []Migration, err error) {
		if err := t.lockSchema(); err != nil {
			return nil, err
		}
		list, err := t.migrationState()
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if !m.Applied.IsZero() {
				continue
			}
			// All steps are one transaction, on both databases: a failed one leaves the
			// schema as it was.
			for _, statement := range statements(db.d, m.text) {
				if err := t.execOnce(statement); err != nil {
					return nil, fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
				}
			}
			if _, err := t.exec(`INSERT INTO forbear_migrations (version, name, applied) VALUES (?, ?, {t})`, m.Version, m.Name, after(0)); err != nil {
				return nil, err
			}
			applied = append(applied, m)
		}
		return applied, nil
	})
}

// Migrations lists all steps with the time when they were applied.
func (db *DB) Migrations(ctx context.Context) ([]Migration, error) {
	return do(ctx, db, func(t *tx) ([]Migration, error) {
		if err := t.lockSchema(); err != nil {
			return nil, err
		}
		return t.migrationState()
	})
}

// lockSchema makes concurrent migrations wait for each other, and makes the
// table that says which steps were applied.
func (t *tx) lockSchema() error {
	if err := t.db.d.lockSchema(t); err != nil {
		return err
	}
	return t.execOnce(migrationTable)
}

// migrationState lists the steps with the time when each was applied.
func (t *tx) migrationState() ([]Migration, error) {
	list, err := migrations()
	if err != nil {
		return nil, err
	}
	return list, t.each(func(r *sql.Rows) error {
		var version int
		var applied int64
		if err := r.Scan(&version, &applied); err != nil {
			return err
		}
		// A step that this list does not have was made by a later forbear.
		for i := range list {
			if list[i].Version == version {
				list[i].Applied = at(applied)
				return nil
			}
		}
		return fmt.Errorf("migration %d: %w", version, ErrNewer)
	}, `SELECT version, applied FROM forbear_migrations ORDER BY version`)
}

// statements splits a migration into the statements for a dialect. One that
// begins with {sqlite} or {postgres} is for that alone. A statement ends with a
// semicolon at the end of a line, and the next one is not indented: a function's
// body, which is, has semicolons of its own.
func statements(d dialect, text string) (list []string) {
	var one strings.Builder
	end := func() {
		s := strings.TrimSuffix(strings.TrimSpace(one.String()), ";")
		one.Reset()
		s, ours := strings.CutPrefix(s, "{"+d.name()+"}")
		if s != "" && (ours || !strings.HasPrefix(s, "{")) {
			list = append(list, d.sql(s))
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		if !strings.HasPrefix(line, " ") && strings.HasSuffix(strings.TrimSpace(one.String()), ";") {
			end()
		}
		one.WriteString(line)
	}
	end()
	return list
}
