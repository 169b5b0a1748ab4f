package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// eachDatabase runs a test on a file and on a server.
func eachDatabase(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, file(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.Database(t)) })
}

// under opens a database with keys.
func under(t *testing.T, place string, keys ...sqlstore.Key) *sqlstore.DB {
	t.Helper()
	c, err := sqlstore.NewCipher(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, place, sqlstore.WithCipher(c))
}

// A letter is written whatever keys its history is encrypted under: what was recorded of
// an attempt is missing there, and no more.
func TestLetterOfUnreadableHistory(t *testing.T) {
	eachDatabase(t, func(t *testing.T, place string) {
		known, missing := sqlstore.NewKey("k1"), sqlstore.NewKey("k2")
		db, other := under(t, place, known).Webhooks(), under(t, place, missing, known).Webhooks()
		m := webhook.Message{ID: "m1", Endpoints: []string{"a"}, Body: []byte("planted")}
		if _, err := db.Accept(t.Context(), []webhook.Message{m}, nil); err != nil {
			t.Fatal(err)
		}
		step := func(w *sqlstore.Webhooks, attempt int, kind store.WriteBackKind) {
			t.Helper()
			done, err := w.WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "a", Max: 1}}})
			if err != nil || len(done.Claimed) != 1 || string(done.Claimed[0].Message.Body) != "planted" {
				t.Fatalf("claimed %+v, %v", done.Claimed, err)
			}
			d := done.Claimed[0]
			o := store.WriteBack{ID: d.ID, Fence: d.Fence, Endpoint: "a", Kind: kind, Attempt: &deadletter.Attempt{
				Number: attempt, Claim: d.Claims, Status: 503, ErrorType: "http_503", Worker: "w", Response: "quoted", Error: "quoted", Class: "server",
			}}
			if kind == store.Dead {
				o.Dead = &deadletter.Letter{ID: "dlq_1", Queue: webhook.Queue, Destination: "a", EventID: "m1", Payload: d.Message.Body, Reason: "exhausted", State: deadletter.Dead}
			}
			if done, err = w.WriteBackAndClaim(t.Context(), store.Step{WriteBacks: []store.WriteBack{o}}); err != nil || !done.OK[0] {
				t.Fatalf("written back: %v, %v", done.OK, err)
			}
		}
		step(other, 1, store.Retried)
		step(db, 2, store.Dead)
		l, err := under(t, place, known).DeadLetters().Get(t.Context(), "dlq_1")
		if err != nil || len(l.History) != 2 || string(l.Payload) != "planted" {
			t.Fatalf("the letter is %+v, %v", l, err)
		}
		if a, b := l.History[0], l.History[1]; a.Status != 503 || a.Response != "" || a.Error == "" || b.Response != "quoted" || b.Error != "quoted" {
			t.Errorf("the history is %+v", l.History)
		}
	})
}

// outside opens a database as an application does.
func outside(t *testing.T, place string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if !strings.HasPrefix(place, "postgres://") {
		driver = "sqlite"
		place, _ = sqlstore.SQLiteNames(place)
	}
	db, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// insertRows adds rows to the outbox in their order, as an application does.
func insertRows(t *testing.T, place string, rows ...[4]string) {
	t.Helper()
	db := outside(t, place)
	for _, r := range rows {
		text := fmt.Sprintf(`INSERT INTO forbear_outbox (message_id, endpoint, order_key, body) VALUES ('%s', '%s', '%s', '%s')`, r[0], r[1], r[2], r[3])
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// Rows that cannot be accepted for now stay in the outbox, however many there are, and
// hold up those of their keys alone.
func TestOutboxPassesOverWhatWaits(t *testing.T) {
	eachDatabase(t, func(t *testing.T, place string) {
		w := open(t, place).Webhooks()
		var rows [][4]string
		for i := range 25 {
			rows = append(rows, [4]string{fmt.Sprint("waits", i), "sealed", fmt.Sprint("k", i), "{}"})
		}
		rows = append(rows, [4]string{"behind", "a", "k3", "{}"}, [4]string{"beside", "a", "j", "{}"}, [4]string{"keyless", "a", "", "{}"})
		insertRows(t, place, rows...)
		sealed := true
		relay := func() (moved int) {
			t.Helper()
			for {
				done, err := w.Relay(t.Context(), 10, func(m *webhook.Message) (map[string]bool, error) {
					if sealed && m.Endpoints[0] == "sealed" {
						return nil, fmt.Errorf("endpoint %q %w", "sealed", webhook.ErrUnreadable)
					}
					return nil, m.Prepare(time.Now())
				})
				if err != nil || len(done.Dead) > 0 {
					t.Fatalf("relayed %+v, %v", done, err)
				}
				if moved += done.Rows; done.Rows == 0 {
					return moved
				}
			}
		}
		is := func(id string) bool {
			list, err := w.Deliveries(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return len(list) == 1
		}
		if n := relay(); n != 2 || !is("beside") || !is("keyless") || is("behind") {
			t.Errorf("%d rows were moved, want those that need not wait", n)
		}
		sealed = false
		if n := relay(); n != 26 || !is("waits0") || !is("waits24") || !is("behind") {
			t.Errorf("%d rows were moved afterwards", n)
		}
	})
}

// A message under a known id whose stored content cannot be read is refused for now, and
// none that is accepted beside it: those are no duplicates. In the outbox its row waits.
func TestUnreadableDuplicate(t *testing.T) {
	eachDatabase(t, func(t *testing.T, place string) {
		known, missing := sqlstore.NewKey("k1"), sqlstore.NewKey("k2")
		message := func(id string) webhook.Message {
			return webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte(id)}
		}
		if _, err := under(t, place, missing, known).Webhooks().Accept(t.Context(), []webhook.Message{message("dup")}, nil); err != nil {
			t.Fatal(err)
		}
		w := under(t, place, known).Webhooks()
		var wg sync.WaitGroup
		for c := range 16 {
			wg.Go(func() {
				for i := range 40 {
					if id := fmt.Sprintf("m%d-%d", c, i); i%8 != 0 {
						if got, err := w.Accept(t.Context(), []webhook.Message{message(id)}, nil); err != nil || got[0].Duplicate {
							t.Errorf("%s: %+v, %v", id, got, err)
						}
					} else if _, err := w.Accept(t.Context(), []webhook.Message{message("dup")}, nil); !errors.Is(err, webhook.ErrUnreadable) || !errors.Is(err, sqlstore.ErrKey) {
						t.Errorf("the duplicate: %v", err)
					}
				}
			})
		}
		wg.Wait()
		insertRows(t, place, [4]string{"first", "a", "", "first"}, [4]string{"dup", "a", "", "dup"}, [4]string{"last", "a", "", "last"})
		ok := func(m *webhook.Message) (map[string]bool, error) { return nil, m.Prepare(time.Now()) }
		for _, c := range []struct {
			w              *sqlstore.Webhooks
			rows, accepted int
		}{{w, 2, 2}, {w, 0, 0}, {under(t, place, known, missing).Webhooks(), 1, 0}} {
			if done, err := c.w.Relay(t.Context(), 10, ok); err != nil || done.Rows != c.rows || done.Accepted != c.accepted || len(done.Dead) != 0 {
				t.Errorf("relayed %+v, %v, want %d rows and %d accepted", done, err, c.rows, c.accepted)
			}
		}
	})
}
