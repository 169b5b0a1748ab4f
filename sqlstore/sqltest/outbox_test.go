package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// outboxApp is an application's own database, with the endpoint a and the application
// customer.
type outboxApp struct {
	*sql.DB
	box   webhook.Outbox
	db    *sqlstore.DB       // forbear's
	store *sqlstore.Webhooks // a view of it
}

// outboxApps runs a test on SQLite and on PostgreSQL.
func outboxApps(t *testing.T, test func(t *testing.T, s outboxApp)) {
	eachDatabase(t, func(t *testing.T, place string) {
		s := outboxApp{box: webhook.Outbox{CheckEndpoints: true, SQLite: !strings.HasPrefix(place, "postgres://")}, DB: outside(t, place)}
		db := open(t, place)
		putOneAndDeleteOne(t, db, "gone")
		if _, err := db.Webhooks().PutApplication(t.Context(), webhook.Application{ID: "customer"}); err != nil {
			t.Fatal(err)
		}
		s.db, s.store = db, db.Webhooks()
		test(t, s)
	})
}

// putOneAndDeleteOne adds the endpoint a, and one that is deleted.
func putOneAndDeleteOne(t *testing.T, db *sqlstore.DB, gone string) {
	t.Helper()
	for _, id := range []string{"a", gone} {
		if _, err := db.Webhooks().PutEndpoint(t.Context(), webhook.Endpoint{ID: id, URL: "https://example.com/"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Webhooks().DeleteEndpoint(t.Context(), gone, 0); err != nil {
		t.Fatal(err)
	}
}

// begin begins a transaction that ends with the test, if not before.
func (s outboxApp) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := s.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// rows returns what is in the outbox, a line for each row.
func (s outboxApp) rows(t *testing.T) (list []string) {
	t.Helper()
	rows, err := s.QueryContext(t.Context(), `SELECT message_id, endpoint, type, source, subject, order_key, idempotency_key, correlation_id, content_type, headers, application, not_before, body FROM forbear_outbox ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text [11]sql.NullString
		var notBefore sql.NullInt64
		var body []byte
		dest := make([]any, 0, 13)
		for i := range text {
			dest = append(dest, &text[i])
		}
		if err := rows.Scan(append(dest, &notBefore, &body)...); err != nil {
			t.Fatal(err)
		}
		var line strings.Builder
		for _, s := range text {
			line.WriteString(s.String + "|")
		}
		list = append(list, fmt.Sprintf("%s%d|%s", line.String(), notBefore.Int64, body))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// Each row has all that its message has, in the order of the messages, however many
// statements it takes.
func TestOutboxInsert(t *testing.T) {
	t.Parallel()
	outboxApps(t, func(t *testing.T, s outboxApp) {
		s.box.CheckEndpoints = false
		msgs := []webhook.Message{{
			ID: "full", Endpoints: []string{"a", "b"}, Type: `t"ü<`, Source: "/s", Subject: "sub", Key: "k", IdempotencyKey: "i", CorrelationID: "c",
			ContentType: "text/plain", Headers: []webhook.Header{{Name: "X-A", Value: `"1"`}}, NotBefore: time.UnixMicro(1_800_000_000_000_001), Body: []byte("\x00\xff\\x41"),
		}, {ID: "empty", Endpoints: []string{"a"}}, {ID: "tenant", Application: "customer"}}
		const full = `|t"ü<|/s|sub|k|i|c|text/plain|[{"name":"X-A","value":"\"1\""}]||1800000000000001|` + "\x00\xff\\x41"
		want := []string{"full|a" + full, "full|b" + full, "empty|a||||||||||0|", "tenant||||||||||customer|0|"}
		for i := range 1200 {
			id, body := fmt.Sprint("m", i), strings.Repeat(fmt.Sprint(i), i%4)
			msgs = append(msgs, webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(body)})
			want = append(want, id+"|a||||||||||0|"+body)
		}
		tx := s.begin(t)
		ids, err := s.box.Insert(t.Context(), tx, msgs...)
		if err != nil || len(ids) != len(msgs) || ids[0] != "full" || ids[1202] != "m1199" {
			t.Fatalf("%d ids, %v", len(ids), err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		got := s.rows(t)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("row %d of %d, want %d rows: %q", i, len(got), len(want), append(got, "none")[min(i, len(got))])
			}
		}
	})
}

// What is wrong with a batch is found before anything is inserted, all of it at once,
// and the transaction goes on.
func TestOutboxRefusesBatch(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		tx := s.begin(t)
		good := webhook.Message{ID: "good", Endpoints: []string{"a"}, Body: []byte("1")}
		insert := func(msgs ...webhook.Message) error {
			t.Helper()
			ids, err := s.box.Insert(t.Context(), tx, append([]webhook.Message{good}, msgs...)...)
			if err == nil || ids != nil {
				t.Errorf("accepted as %q", ids)
			}
			return err
		}
		err := insert(webhook.Message{ID: "first", Endpoints: []string{"a", "no id"}}, webhook.Message{Type: "a\nb"})
		for _, part := range []string{`message 1 "first"`, `"no id"`, "message 2 ", "want endpoints or an application", "type is"} {
			if !errors.Is(err, webhook.ErrInvalid) || !strings.Contains(err.Error(), part) {
				t.Errorf("%v names no %s", err, part)
			}
		}
		if err := insert(webhook.Message{Endpoints: []string{"b", "a"}}, webhook.Message{Endpoints: []string{"gone"}}); !errors.Is(err, webhook.ErrUnknownEndpoint) ||
			!strings.Contains(err.Error(), `"b"`) || !strings.Contains(err.Error(), `"gone"`) || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("unknown endpoints: %v", err)
		}
		if err := insert(webhook.Message{Application: "b"}, webhook.Message{Application: "customer"}); !errors.Is(err, webhook.ErrUnknownApplication) ||
			!strings.Contains(err.Error(), `"b"`) || strings.Contains(err.Error(), "customer") {
			t.Errorf("unknown application: %v", err)
		}
		if err := insert(webhook.Message{ID: "good", Endpoints: []string{"a"}, Body: []byte("2")}); !errors.Is(err, webhook.ErrConflict) {
			t.Errorf("two messages with one id: %v", err)
		}
		many := make([]webhook.Message, 1000)
		if err := insert(many...); len(err.Error()) > 10_000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if _, err := s.box.Insert(t.Context(), tx, good, good); err != nil { // the same message is no conflict
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := s.rows(t); len(got) != 2 || !strings.HasPrefix(got[0], "good|") {
			t.Errorf("in the outbox: %q", got)
		}
	})
}

// A message is where its transaction is, down to the savepoint.
func TestOutboxSavepoint(t *testing.T) {
	outboxApps(t, func(t *testing.T, s outboxApp) {
		tx := s.begin(t)
		insert := func(id string) {
			t.Helper()
			ids, err := s.box.Insert(t.Context(), tx, webhook.Message{ID: id, Endpoints: []string{"a"}})
			if err != nil || len(ids) != 1 {
				t.Fatal(ids, err)
			}
		}
		run := func(text string) {
			t.Helper()
			if _, err := tx.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		insert("before")
		run("SAVEPOINT part")
		insert("undone")
		run("ROLLBACK TO SAVEPOINT part")
		insert("")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := s.rows(t); len(got) != 2 || !strings.HasPrefix(got[0], "before|") || !strings.HasPrefix(got[1], "msg_") {
			t.Errorf("in the outbox: %q", got)
		}
	})
}
