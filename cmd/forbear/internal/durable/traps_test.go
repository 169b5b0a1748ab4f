package durable

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/webhook"
)

// another is a process that accepts messages and delivers none.
func another(t *testing.T, database string) *Service {
	t.Helper()
	s, err := New(t.Context(), Options{Database: database, Allow: thisMachine, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// superuser opens a connection that the tests look and cut with.
func superuser(t *testing.T, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// listeners counts the connections that LISTEN, or cuts them.
func listeners(t *testing.T, db *sql.DB, cut bool) (n int) {
	t.Helper()
	query := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'`
	if cut {
		query = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'`
	}
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// LISTEN has a connection of its own, which may drop: meanwhile polling finds
// what there is, and then it listens again.
func TestListenConnectionDrops(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	s := newSink(t)
	svc, _ := start(t, Options{Database: database, Poll: 100 * time.Millisecond})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	other, db := another(t, database), superuser(t, database)
	listening(t, db)
	var ids []string
	cuts := 0
	for i := range 100 { // nobody listens for long
		cuts += listeners(t, db, true)
		ids = append(ids, send(t, other, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}}))
		time.Sleep(10 * time.Millisecond)
	}
	s.arrive(t, ids)
	if cuts == 0 {
		t.Error("no listener was cut: nothing was shown")
	}
	listening(t, db)
}

// listening waits until somebody listens.
func listening(t *testing.T, db *sql.DB) {
	t.Helper()
	for end := time.Now().Add(time.Minute); listeners(t, db, false) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody listens")
		}
	}
}

// After the drop notifications wake again: with a poll of ten minutes, nothing
// else would.
func TestListensAgain(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	s := newSink(t)
	svc, _ := start(t, Options{Database: database, Poll: 10 * time.Minute})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	other, db := another(t, database), superuser(t, database)
	for round := range 3 {
		listening(t, db)
		s.arrive(t, []string{send(t, other, webhook.Message{ID: fmt.Sprint("m", round), Endpoints: []string{"a"}})})
		listeners(t, db, true)
	}
}

// Ids are given out before their transactions commit: a row that is committed
// late, with a lower id than one that was relayed already, is relayed too.
func TestOutboxRowIsCommittedLate(t *testing.T) {
	database := pgtest.Database(t)
	s := newSink(t)
	svc, _ := start(t, Options{Database: database, Poll: 100 * time.Millisecond})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	db := superuser(t, database)
	insert := func(id string) *sql.Tx {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (webhook.Outbox{}).Insert(t.Context(), tx, webhook.Message{ID: id, Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	late, early := insert("lower-id"), insert("higher-id")
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	s.arrive(t, []string{"higher-id"})
	if missing, _ := s.counts([]string{"lower-id"}); missing != 1 {
		t.Fatal("a row was relayed before its transaction committed")
	}
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	s.arrive(t, []string{"lower-id"})
}
