package sqltest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
)

// A row that cannot be deleted, since an application's trigger raises or keeps it without a
// word, or that cannot be read is neither accepted nor a dead letter: it stays, that is said,
// and only rows of its key wait behind it.
func TestRowThatStays(t *testing.T) {
	const function = `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF old.message_id = 'stuck' THEN %s; END IF; RETURN old; END $$;
		CREATE TRIGGER keep BEFORE DELETE ON forbear_outbox FOR EACH ROW EXECUTE FUNCTION keep()`
	const trigger = `CREATE TRIGGER keep BEFORE DELETE ON forbear_outbox WHEN old.message_id = 'stuck' BEGIN SELECT %s; END`
	ascii := func(t *testing.T) string {
		server := pgtest.Shared(t)
		server.Exec(t, "CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
		t.Cleanup(func() { server.Exec(t, "DROP DATABASE bytes WITH (FORCE)") })
		return server.URL("bytes") + "&client_encoding=UTF8"
	}
	onServer := func(t *testing.T) string { return pgtest.Database(t) }
	for _, tt := range []struct {
		name, driver string
		place        func(t *testing.T) string
		keep, undo   string
	}{
		{"SQLite, a trigger raises", "sqlite", file, fmt.Sprintf(trigger, "RAISE(ABORT, 'it is kept')"), `DROP TRIGGER keep`},
		{"SQLite, a trigger keeps it without a word", "sqlite", file, fmt.Sprintf(trigger, "RAISE(IGNORE)"), `DROP TRIGGER keep`},
		{"PostgreSQL, a trigger raises", "pgx", onServer, fmt.Sprintf(function, "RAISE 'it is kept'"), `DROP TRIGGER keep ON forbear_outbox`},
		{"PostgreSQL, a trigger keeps it without a word", "pgx", onServer, fmt.Sprintf(function, "RETURN NULL"), `DROP TRIGGER keep ON forbear_outbox`},
		{
			"PostgreSQL, no text of the client's encoding", "pgx", ascii,
			`UPDATE forbear_outbox SET type = convert_from('\xff', 'SQL_ASCII') WHERE message_id = 'stuck'`, `UPDATE forbear_outbox SET type = 't' WHERE message_id = 'stuck'`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			place := tt.place(t)
			w := open(t, place).Webhooks()
			raw := pool(t, tt.driver, place)
			for _, row := range []struct{ id, key string }{{"before", ""}, {"stuck", "k"}, {"free", ""}, {"behind", "k"}, {"other", "j"}} {
				run1(t, raw, `INSERT INTO forbear_outbox (message_id, endpoint, type, order_key, body) VALUES ('`+row.id+`', 'a', 't', '`+row.key+`', '{}')`)
			}
			run1(t, raw, tt.keep)
			ordered := func(m *webhook.Message) (map[string]bool, error) { return map[string]bool{"a": true}, nil }
			var stuck []error
			for range 3 { // as it is done again and again
				done, err := w.Relay(t.Context(), 100, ordered)
				if err != nil || len(done.Dead) > 0 {
					t.Fatalf("got %+v, %v", done, err)
				}
				stuck = done.Stuck
			}
			if len(stuck) != 1 || !strings.Contains(stuck[0].Error(), "row 2 of the outbox") {
				t.Errorf("said: %v", stuck)
			}
			for id, want := range map[string]int{"before": 1, "stuck": 0, "free": 1, "behind": 0, "other": 1} {
				if list, err := w.Deliveries(t.Context(), id); err != nil || len(list) != want {
					t.Errorf("%s: %d deliveries, %v; want %d", id, len(list), err, want)
				}
			}
			run1(t, raw, tt.undo)
			if done, err := w.Relay(t.Context(), 100, ordered); err != nil || done.Accepted != 2 || len(done.Stuck) > 0 {
				t.Errorf("when nothing is wrong with it any more: %+v, %v", done, err)
			}
		})
	}
}

// Where a great many rows stay, a look at the outbox does not go through all of them, and
// the row behind them is moved all the same.
func TestManyRowsThatStay(t *testing.T) {
	place := file(t)
	w := open(t, place).Webhooks()
	raw := pool(t, "sqlite", place)
	run1(t, raw, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
		INSERT INTO forbear_outbox (message_id, endpoint, type, order_key, body) SELECT 'stuck' || i, 'a', 't', 'k', '{}' FROM n`)
	run1(t, raw, `INSERT INTO forbear_outbox (message_id, endpoint, type, order_key, body) VALUES ('behind', 'a', 't', 'k', '{}'), ('free', 'a', 't', '', '{}')`)
	run1(t, raw, `CREATE TRIGGER keep BEFORE DELETE ON forbear_outbox WHEN old.message_id LIKE 'stuck%' BEGIN SELECT RAISE(IGNORE); END`)
	accepted := 0
	for range 8 { // twice to the end
		done, err := w.Relay(t.Context(), 100, func(*webhook.Message) (map[string]bool, error) { return map[string]bool{"a": true}, nil })
		if err != nil || len(done.Stuck) > 100 {
			t.Fatalf("%d rows passed, %v", len(done.Stuck), err)
		}
		accepted += done.Accepted
	}
	if list, err := w.Deliveries(t.Context(), "free"); err != nil || len(list) != 1 || accepted != 1 {
		t.Errorf("%d deliveries of the row behind them, %d accepted, %v", len(list), accepted, err)
	}
}

// Rows that another session holds are passed over. When all are, and for long, that is said.
func TestRowsThatAreHeld(t *testing.T) {
	name := pgtest.Database(t)
	w := open(t, name).Webhooks()
	raw := pool(t, "pgx", name)
	admit := func(*webhook.Message) (map[string]bool, error) { return nil, nil }
	for _, tt := range []struct {
		age  time.Duration
		want int
	}{{time.Second, 0}, {time.Hour, 1}} {
		run1(t, raw, `DELETE FROM forbear_outbox`)
		created := time.Now().Add(-tt.age).UnixMicro()
		if _, err := raw.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, type, body, created) VALUES ('m', 'a', 't', '{}', $1)`, created); err != nil {
			t.Fatal(err)
		}
		holds, err := raw.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := holds.ExecContext(t.Context(), `SELECT 1 FROM forbear_outbox FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		done, err := w.Relay(t.Context(), 100, admit)
		_ = holds.Rollback()
		if err != nil || done.Rows > 0 || len(done.Stuck) != tt.want {
			t.Errorf("after %v: %+v, %v", tt.age, done, err)
		}
	}
}
