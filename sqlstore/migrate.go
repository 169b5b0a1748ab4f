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

	"github.com/forbear-go/forbear/internal/wait"
)

// Migrations of all concepts are numbered in one list. They run in their order in
// one transaction, and only forwards. An older forbear works on a newer database where
// each step that it does not know allows that (see beside.go), and refuses it otherwise.

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one step of the schema. Steps are never changed once released:
// a later one follows.
type Migration struct {
	Version int
	Name    string
	Applied time.Time // zero: not yet
	Beside  int       // the step that a forbear must know to work on a schema with this one; 0: this step
	Later   bool      // of a later forbear, which this one works beside
	text    string
}

var (
	// ErrNewer refuses a database that a later forbear has migrated. The error that
	// wraps it names what is newer.
	ErrNewer = errors.New("the database schema is newer than this forbear can use, and steps cannot be undone: run the version that migrated it, or restore the backup")
	// ErrRights says that steps are missing and that this user may not apply them.
	// The error that wraps it names them.
	ErrRights = errors.New("this user may not change the schema")

	// errMigrating says that another process has the lock of the schema.
	errMigrating = errors.New("another process is changing the schema")
)

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
		list = append(list, Migration{Version: version, Name: name, Beside: beside(string(text)), text: string(text)})
	}
	return list, nil
}

// migrationTable is the one table that no migration makes.
const migrationTable = `CREATE TABLE IF NOT EXISTS forbear_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied BIGINT NOT NULL)`

// migrationTimeout bounds a migration on PostgreSQL: a step may write each row.
const migrationTimeout = time.Hour

// While others work on a table that a step changes, or change the schema themselves, the
// migration lets them and tries again: they may be a fleet that goes on.
const (
	migrationPause = 200 * time.Millisecond
	migrationCap   = 2 * time.Second
)

// Migrate brings the schema up to date and returns the steps that were
// applied. Several processes may call it at the same time. A schema that is up to
// date is only read: that takes no lock, and no right to change it. When ctx ends
// nothing is applied.
func (db *DB) Migrate(ctx context.Context) ([]Migration, error) {
	return db.MigrateWaiting(ctx, func(error) {})
}

// MigrateWaiting is [DB.Migrate] that calls waits, with the reason, each time that
// others keep it from going on. On PostgreSQL that can be for as long as someone's
// transaction is open.
func (db *DB) MigrateWaiting(ctx context.Context, waits func(why error)) ([]Migration, error) {
	list, err := db.Migrations(ctx)
	if err != nil {
		return nil, err
	}
	missing := Missing(list)
	if len(missing) == 0 {
		return nil, nil
	}
	run := func(t *tx) ([]Migration, error) { return t.migrateUnder(ctx) }
	var applied []Migration
	for pause := (wait.Backoff{Base: migrationPause, Cap: migrationCap}); ; {
		applied, err = doAs(ctx, db, op{limit: migrationTimeout}, run)
		if !db.says(err, occupied) {
			break
		}
		waits(err)
		if !wait.Sleep(ctx, pause.Next()) {
			break
		}
	}
	if db.says(err, denied) {
		err = own(fmt.Errorf("%w: it lacks %s: %w", ErrRights, strings.Join(missing, ", "), err))
	}
	return applied, err
}

// migrateUnder is migrate, and ends with ctx, too. Other writes go on without their
// callers, but this one may take an hour, which the end of a process would wait for.
func (t *tx) migrateUnder(ctx context.Context) (applied []Migration, err error) {
	group := t.ctx
	under, cancel := context.WithCancelCause(group)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	t.ctx = under
	defer func() { t.ctx = group }() // the rollback's
	// A replay would come at once: no one waits for it, or others are to be let by first.
	if applied, err = t.migrate(); err != nil && (ctx.Err() != nil || t.db.says(err, occupied)) {
		err = own(err)
	}
	return applied, err
}

// Missing names the steps of a list that are not applied.
func Missing(list []Migration) (names []string) {
	for _, m := range list {
		if m.Applied.IsZero() {
			names = append(names, m.String())
		}
	}
	return names
}

// String returns the name of the step's file, without its ending.
func (m Migration) String() string { return fmt.Sprintf("%04d_%s", m.Version, m.Name) }

// migrate applies what is missing. All steps are one transaction, on both
// databases: a failed one leaves the schema as it was.
func (t *tx) migrate() (applied []Migration, err error) {
	// One at a time.
	if err := t.db.d.lockSchema(t); err != nil {
		return nil, err
	}
	if err := t.execOnce(migrationTable); err != nil {
		return nil, err
	}
	list, err := migrationState(t.each)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if !m.Applied.IsZero() {
			continue
		}
		for _, statement := range statements(t.db.d, m.text) {
			err := t.execOnce(statement)
			if t.db.says(err, occupied) {
				err = fmt.Errorf("another session uses the tables that it changes, perhaps in a long transaction: %w", err)
			}
			if err != nil {
				return nil, fmt.Errorf("migration %v: %w", m, err)
			}
		}
		if _, err := t.exec(`INSERT INTO forbear_migrations (version, name, applied) VALUES (?, ?, {t})`, m.Version, m.Name, after(0)); err != nil {
			return nil, err
		}
		applied = append(applied, m)
	}
	return applied, t.keepBeside(list)
}

// Migrations lists all steps with the time when they were applied, and behind them
// those of a later forbear that this one works beside; [ErrNewer] refuses others. It
// writes nothing, and works on a read-only replica.
func (db *DB) Migrations(ctx context.Context) ([]Migration, error) {
	there := false
	err := db.each(ctx, func(r *sql.Rows) error { return r.Scan(&there) }, `SELECT {migrated}`)
	if err == nil && !there {
		return migrations()
	}
	if err != nil {
		return nil, err
	}
	each := func(f func(*sql.Rows) error, text string, args ...any) error { return db.each(ctx, f, text, args...) }
	list, err := migrationState(each)
	if i := version(list, markStep); err == nil && i >= 0 && !list[i].Applied.IsZero() {
		err = db.lookForMark(each)
	}
	return list, err
}

// migrationState lists the steps with the time when each was applied.
func migrationState(each asker) ([]Migration, error) {
	list, err := migrations()
	if err != nil {
		return nil, err
	}
	var later []Migration
	err = each(func(r *sql.Rows) error {
		var made Migration
		var applied int64
		if err := r.Scan(&made.Version, &made.Name, &applied); err != nil {
			return err
		}
		made.Applied = at(applied)
		if i := version(list, made.Version); i >= 0 {
			list[i].Applied = made.Applied
		} else {
			made.Later = true
			later = append(later, made)
		}
		return nil
	}, `SELECT version, name, applied FROM forbear_migrations ORDER BY version`)
	if err != nil || len(later) == 0 {
		return list, err
	}
	return worksBeside(each, list, later)
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
