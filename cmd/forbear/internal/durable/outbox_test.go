package durable

import (
	"bytes"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
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
		box := webhook.Outbox{SQLite: !svc.postgres()}
		db := outside(t, name)
		write := func(commit bool, m webhook.Message) {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := box.Insert(t.Context(), tx, m); err != nil {
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
		for range 2 {
			write(true, webhook.Message{ID: "m1", Endpoints: []string{"a"}, Headers: []webhook.Header{{Name: "X-A", Value: "1"}}})
		}
		if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, type, body) VALUES ('plain', 'a', 'order.shipped', '{"order":4711}')`); err != nil {
			t.Fatal(err)
		}
		s.arrive(t, []string{"m1", "plain"})
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
	cipher := func(keys ...sqlstore.Key) sqlstore.Cipher {
		c, err := sqlstore.NewCipher(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := sqlstore.NewKey("k1")
	o := Options{
		Database: t.TempDir() + "/forbear.db", Cipher: cipher(first),
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
	o.Cipher = cipher(sqlstore.NewKey("k2"), first) // rotated
	s, _ = start(t, o)
	if l, err := s.DB.DeadLetters().Get(t.Context(), l.ID); err != nil || string(l.Payload) != "planted-payload" {
		t.Errorf("after a rotation: %q, %v", l.Payload, err)
	}
}

// A store that comes back in the middle of a relay is not the row's fault: here it is
// back right when the probe asks whether it works.
func TestRowIsBlamedTwice(t *testing.T) {
	database := pgtest.Database(t)
	s := newSink(t)
	svc, stop := start(t, Options{Database: database, Poll: 100 * time.Millisecond})
	defer stop()
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	db := outside(t, database)
	for _, text := range []string{
		`CREATE SEQUENCE probes`, // it counts on when its transaction is rolled back
		`CREATE FUNCTION away() RETURNS trigger AS $$ BEGIN
			IF NEW.message_id LIKE 'probe%' THEN PERFORM nextval('probes'); END IF;
			IF NOT (SELECT is_called FROM probes) THEN RAISE EXCEPTION 'away'; END IF;
			RETURN NEW; END $$ LANGUAGE plpgsql`,
		`CREATE TRIGGER away BEFORE INSERT ON forbear_deliveries FOR EACH ROW EXECUTE FUNCTION away()`,
		`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m1', 'a', '1')`,
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	s.arrive(t, []string{"m1"})
	var asked bool
	if err := db.QueryRowContext(t.Context(), `SELECT is_called FROM probes`).Scan(&asked); err != nil || !asked {
		t.Errorf("no probe, %v: this shows nothing", err)
	}
}

// A row that the store itself refuses, for whatever reason, is a dead letter
// after a few tries; one that it only refuses for a while is not.
func TestRowTheStoreRefuses(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		s := newSink(t)
		svc, stop := start(t, Options{Database: database, Poll: 100 * time.Millisecond})
		put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
		db := outside(t, database)
		run := func(text string) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if svc.postgres() {
			run(`CREATE FUNCTION curse() RETURNS trigger AS $$ BEGIN IF NEW.message_id = 'cursed' THEN RAISE EXCEPTION 'cursed'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql;
				CREATE TRIGGER curse BEFORE INSERT ON forbear_deliveries FOR EACH ROW EXECUTE FUNCTION curse()`)
		} else {
			run(`CREATE TRIGGER curse BEFORE INSERT ON forbear_deliveries WHEN NEW.message_id = 'cursed' BEGIN SELECT RAISE(ABORT, 'cursed'); END`)
		}
		run(`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m1', 'a', '1'), ('cursed', 'a', 'kept'), ('m2', 'a', '2')`)
		s.arrive(t, []string{"m1", "m2"})
		if l := waitLetters(t, svc, 1); len(l) != 1 || l[0].EventID != "cursed" || l[0].Reason != deadletter.ReasonInvalid || string(l[0].Payload) != "kept" {
			t.Errorf("letters are %+v", l)
		}
		// Nothing can be written for a while: no row is to blame.
		if svc.postgres() {
			run(`ALTER TABLE forbear_deliveries RENAME TO away`)
		} else {
			run(`CREATE TRIGGER all_cursed BEFORE INSERT ON forbear_deliveries BEGIN SELECT RAISE(ABORT, 'all cursed'); END`)
		}
		run(`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m3', 'a', '3')`)
		time.Sleep(1500 * time.Millisecond)
		if age, err := svc.DB.Webhooks().OutboxAge(t.Context()); err != nil || age < time.Second/2 {
			t.Errorf("the row has been waiting for %v, %v", age, err)
		}
		if svc.postgres() {
			run(`ALTER TABLE away RENAME TO forbear_deliveries`)
		} else {
			run(`DROP TRIGGER all_cursed`)
		}
		s.arrive(t, []string{"m3"})
		if l := waitLetters(t, svc, 1); len(l) != 1 {
			t.Errorf("%d letters, want one", len(l))
		}
		stop()
	})
}

// An endpoint that another process has just added is known to the process that
// empties the outbox.
func TestOutboxKnowsNewEndpoints(t *testing.T) {
	database := pgtest.Database(t)
	s := newSink(t)
	svc, stop := start(t, Options{Database: database, Poll: 20 * time.Millisecond})
	other, db := another(t, database), outside(t, database)
	var ids []string
	for i := range 40 {
		id := fmt.Sprint("e", i)
		put(t, other, webhook.Endpoint{ID: id, URL: s.URL})
		if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ($1, $2, 'x')`, "m"+id, id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, "m"+id)
	}
	s.arrive(t, ids)
	if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 0 || err != nil {
		t.Errorf("%d dead letters, %v", n, err)
	}
	stop()
}

// PostgreSQL crashes and comes back, again and again, while rows are relayed:
// all of them arrive, and none is blamed for it.
func TestOutboxAcrossCrashes(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	database := server.Database(t)
	s := newSink(t)
	svc, stop := start(t, Options{Database: database, Poll: 40 * time.Millisecond})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL, Concurrency: 20, Ordered: true})
	db := outside(t, database)
	var committed []string
	for round := range 4 {
		for i := range 300 {
			id := fmt.Sprintf("m%d-%d", round, i)
			if _, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, order_key, body) VALUES ($1, 'a', $2, 'x')`, id, fmt.Sprint("k", i%10)); err == nil {
				committed = append(committed, id)
			}
			if i == 200 {
				server.Halt(syscall.SIGQUIT)
				time.Sleep(300 * time.Millisecond)
				server.Boot(t)
			}
		}
	}
	twice := s.arrive(t, committed)
	if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 0 || err != nil {
		t.Errorf("%d dead letters, %v", n, err)
	}
	t.Logf("%d rows around four crashes, 0 lost, 0 blamed, %d delivered twice", len(committed), twice)
	stop()
}
