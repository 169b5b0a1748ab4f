package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// What a later forbear has added is worked beside where the later one said so, of a
// step that this one knows. Anything else is refused by its name: there is no way down.
func TestLaterSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		rows    string // what the later forbear wrote
		refused string // what the error names; "" for none
	}{
		{"works beside this one", `(9000, 'later', 1, 140), (9001, 'latest', 1, 150)`, ""},
		{"this one must know it", `(9000, 'later', 1, NULL)`, "9000_later: "},
		{"one of two must be known", `(9000, 'later', 1, 140), (9001, 'latest', 1, NULL)`, "9001_latest: "},
		{"a later one must be known", `(9000, 'later', 1, 140), (9001, 'latest', 1, 9000)`, "9001_latest: "},
	} {
		for _, place := range []string{file(t), pgtest.Database(t)} {
			driver, _, _ := strings.Cut(place, ":")
			t.Run(c.name+" "+filepath.Base(driver), func(t *testing.T) {
				db := open(t, place)
				before, err := db.Migrations(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				name := "pgx"
				if !strings.HasPrefix(place, "postgres") {
					name = "sqlite"
				}
				if _, err := pool(t, name, place).ExecContext(t.Context(), `INSERT INTO forbear_migrations (version, name, applied, beside) VALUES `+c.rows); err != nil {
					t.Fatal(err)
				}
				steps, err := db.Migrations(t.Context())
				applied, migrate := db.Migrate(t.Context())
				if c.refused != "" {
					for _, err := range []error{err, migrate} {
						if !errors.Is(err, sqlstore.ErrNewer) || !strings.HasPrefix(err.Error(), c.refused) {
							t.Errorf("got %v, want %s%v", err, c.refused, sqlstore.ErrNewer)
						}
					}
					return
				}
				if err != nil || migrate != nil || len(applied) > 0 || len(steps) != len(before)+2 {
					t.Fatalf("%d steps, then %d, %v; applied %v, %v", len(before), len(steps), err, applied, migrate)
				}
				if last := steps[len(steps)-1]; !last.Later || last.String() != "9001_latest" || last.Beside != 150 || last.Applied.IsZero() {
					t.Errorf("the last step is %+v", last)
				}
			})
		}
	}
}

// Before the step that made the column, a database says nothing of what works beside.
func TestLaterSchemaWithoutAWord(t *testing.T) {
	place := file(t)
	db := open(t, place)
	raw := pool(t, "sqlite", place)
	for _, text := range []string{`DELETE FROM forbear_migrations WHERE version = 150`, `ALTER TABLE forbear_migrations DROP COLUMN beside`, `INSERT INTO forbear_migrations VALUES (9000, 'later', 1)`} {
		if _, err := raw.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Migrate(t.Context()); !errors.Is(err, sqlstore.ErrNewer) || !strings.Contains(err.Error(), "9000_later") {
		t.Errorf("got %v", err)
	}
}

// Each step that works beside an earlier one is so in the database, too, and names a
// step that there is.
func TestBesideIsKept(t *testing.T) {
	place := file(t)
	steps, err := open(t, place).Migrations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pool(t, "sqlite", place).QueryContext(t.Context(), `SELECT version, beside FROM forbear_migrations WHERE beside IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	kept := map[int]int{}
	for rows.Next() {
		var step, known int
		if err := rows.Scan(&step, &known); err != nil {
			t.Fatal(err)
		}
		kept[step] = known
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	known := map[int]bool{}
	for _, m := range steps {
		if kept[m.Version] != m.Beside {
			t.Errorf("%v works beside %d, and %d is kept", m, m.Beside, kept[m.Version])
		}
		if m.Beside != 0 && !known[m.Beside] {
			t.Errorf("%v works beside %d, which is no earlier step", m, m.Beside)
		}
		known[m.Version] = true
	}
	if kept[150] != 140 {
		t.Errorf("kept %v, want 140 for 150", kept)
	}
}

func TestBreaking(t *testing.T) {
	at := time.Unix(1, 0)
	for _, c := range []struct {
		name string
		list []sqlstore.Migration
		want string
	}{
		{"an empty database has no processes", []sqlstore.Migration{{Version: 1}, {Version: 2}}, ""},
		{"up to date", []sqlstore.Migration{{Version: 1, Applied: at}}, ""},
		{"must be known", []sqlstore.Migration{{Version: 1, Applied: at}, {Version: 2, Name: "two"}}, "0002_two"},
		{"works beside", []sqlstore.Migration{{Version: 1, Applied: at}, {Version: 2, Name: "two", Beside: 1}}, ""},
		{"works beside one that is missing", []sqlstore.Migration{{Version: 1, Applied: at}, {Version: 2, Beside: 1}, {Version: 3, Name: "three", Beside: 2}}, "0003_three"},
	} {
		var got []string
		for _, m := range sqlstore.Breaking(c.list) {
			got = append(got, m.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", c.name, got, c.want)
		}
	}
}

// A step that waits for a table stands in no one's way for long: it lets those by who
// came after it, and tries again.
func TestMigrationLetsOthersBy(t *testing.T) {
	place := pgtest.Database(t)
	db := open(t, place)
	raw := pool(t, "pgx", place)
	if _, err := raw.ExecContext(t.Context(), `ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`); err != nil {
		t.Fatal(err)
	}
	tx, err := raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE forbear_migrations IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	ended, waits := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := db.MigrateWaiting(t.Context(), func(why error) {
			select {
			case waits <- why:
			default:
			}
		})
		ended <- err
	}()
	other := pool(t, "pgx", place)
	waiting := func() (n int) {
		t.Helper()
		if err := other.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 3 { // it waits, is passed, and waits again
		for waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		var n int
		if err := other.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_migrations`).Scan(&n); err != nil || n == 0 {
			t.Fatalf("%d steps, %v", n, err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended while the table was taken: %v", err)
	default:
	}
	if why := <-waits; !strings.Contains(why.Error(), "0150_beside: another session uses the tables that it changes") {
		t.Errorf("it waits because of %v", why)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if steps, err := db.Migrations(t.Context()); err != nil || len(sqlstore.Missing(steps)) > 0 {
		t.Errorf("the steps are %v, %v", steps, err)
	}
}

// A file of SQLite has one writer, which may be a migration that takes longer than the
// busy timeout: it is waited for, too.
func TestMigrationWaitsForTheFile(t *testing.T) {
	place := filepath.Join(t.TempDir(), "forbear.db")
	raw := pool(t, "sqlite", place)
	run1(t, raw, `CREATE TABLE other (id INTEGER)`) // makes the file
	writing, _ := sqlstore.SQLiteNames(place)
	write, err := sql.Open("sqlite", strings.Replace(writing, "busy_timeout(5000)", "busy_timeout(1)", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = write.Close() }()
	db := sqlstore.SQLite(write, pool(t, "sqlite", place))
	defer func() { _ = db.Close() }()
	run1(t, raw, `BEGIN IMMEDIATE`)
	ended, waits := make(chan error, 1), make(chan error, 100)
	go func() {
		_, err := db.MigrateWaiting(t.Context(), func(why error) { waits <- why })
		ended <- err
	}()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("it has not waited: %v", err)
	}
	run1(t, raw, `COMMIT`)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if list, err := db.Migrations(t.Context()); err != nil || len(sqlstore.Missing(list)) > 0 {
		t.Errorf("missing: %v, %v", sqlstore.Missing(list), err)
	}
}

// A migration that is called off ends at once, also where a step would go on for an
// hour, or another process has the schema for as long: who closes the database waits
// for no one.
func TestMigrationCalledOff(t *testing.T) {
	for _, c := range []struct {
		name, keeps string
		under       string // what shows that it is kept
	}{
		{
			"by a step", `CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3600); END';
				CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION slow()`,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
		},
		{"by another process", `SELECT pg_advisory_lock(112628846454113)`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := pgtest.Database(t)
			first := open(t, place)
			raw := pool(t, "pgx", place)
			for _, text := range []string{`ALTER TABLE forbear_migrations DROP COLUMN beside; DELETE FROM forbear_migrations WHERE version = 150`, c.keeps} {
				if _, err := raw.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			db, end, err := connect(t.Context(), place)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waits := make(chan error, 1000)
			ended := make(chan error, 1)
			go func() {
				_, err := db.MigrateWaiting(ctx, func(why error) { waits <- why })
				end()
				ended <- err
			}()
			if c.under == "" {
				select {
				case why := <-waits:
					if !strings.Contains(why.Error(), "another process") {
						t.Errorf("it waits because of %v", why)
					}
				case err := <-ended:
					t.Fatalf("it has not waited: %v", err)
				}
			}
			for n := 0; c.under != "" && n == 0; time.Sleep(time.Millisecond) {
				if err := raw.QueryRowContext(t.Context(), c.under).Scan(&n); err != nil {
					t.Fatal(err)
				}
			}
			cancel()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("it has migrated")
				}
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if list, err := first.Migrations(t.Context()); err != nil || len(sqlstore.Missing(list)) != 1 {
				t.Errorf("missing: %v, %v", sqlstore.Missing(list), err)
			}
		})
	}
}
