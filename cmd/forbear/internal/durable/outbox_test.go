package durable

import (
	"bytes"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// An application's own transaction decides whether a message exists; a row
// that can never be sent becomes a dead letter and holds nobody up.
func TestOutbox(t *testing.T) {
	databases(t, func(t *testing.T, name string) {
		s := newSink(t)
		svc, stop := start(t, Options{Database: name})
		put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
		driver, placeholder := "sqlite", "?"
		if strings.HasPrefix(name, "postgres") {
			driver, placeholder = "pgx", "$"
		} else {
			name, _ = sqlstore.SQLiteNames(name)
		}
		db, err := sql.Open(driver, name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		write := func(commit bool, m webhook.Message) {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := webhook.Outbox(t.Context(), tx, placeholder, m); err != nil {
				t.Fatal(err)
			}
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		write(true, webhook.Message{ID: "bad", Endpoints: []string{"nobody"}, Body: []byte("kept")})
		write(false, webhook.Message{ID: "rolled-back", Endpoints: []string{"a"}})
		write(true, webhook.Message{ID: "m1", Endpoints: []string{"a"}, Headers: []webhook.Header{{Name: "X-A", Value: "1"}}})
		write(true, webhook.Message{ID: "m1", Endpoints: []string{"a"}})
		if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, type, body) VALUES ('plain', 'a', 'order.shipped', '{"order":4711}')`); err != nil {
			t.Fatal(err)
		}
		s.arrive(t, []string{"m1", "plain"}, 10*time.Second)
		l := waitLetters(t, svc, 1)
		if len(l) != 1 || l[0].EventID != "bad" || l[0].Reason != deadletter.ReasonInvalid || string(l[0].Payload) != "kept" {
			t.Errorf("letters are %+v", l)
		}
		time.Sleep(500 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen["rolled-back"] != 0 || s.seen["m1"] != 1 {
			t.Errorf("arrived: %v", s.seen)
		}
		stop()
	})
}

// With a key nothing of a message is readable in the files, and everything is
// there with it.
func TestEncryptionAtRest(t *testing.T) {
	o := Options{
		Database: t.TempDir() + "/forbear.db", Keys: []sqlstore.Key{sqlstore.NewKey("k1")},
		Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(400), nil }),
	}
	s, stop := start(t, o)
	secret := webhook.NewSecret()
	put(t, s, webhook.Endpoint{ID: "a", URL: "https://example.com/", Secrets: []string{secret}})
	send(t, s, webhook.Message{Endpoints: []string{"a"}, Body: []byte("planted-payload"), Headers: []webhook.Header{{Name: "X-Plain", Value: "planted-header"}}})
	l := waitLetters(t, s, 1)[0]
	if string(l.Payload) != "planted-payload" || l.Headers[0].Value != "planted-header" {
		t.Errorf("got %+v", l)
	}
	stop()
	dump := dumpFile(t, s)
	for _, planted := range []string{"planted-payload", "planted-header", "cGxhbnRlZC", secret} {
		if bytes.Contains(dump, []byte(planted)) {
			t.Errorf("%q can be read in the files", planted)
		}
	}
	o.Keys = []sqlstore.Key{sqlstore.NewKey("k2"), o.Keys[0]} // rotated
	s, _ = start(t, o)
	if l, err := s.DB.Get(t.Context(), l.ID); err != nil || string(l.Payload) != "planted-payload" {
		t.Errorf("after a rotation: %q, %v", l.Payload, err)
	}
}
