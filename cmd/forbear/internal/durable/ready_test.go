package durable

import (
	"database/sql"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/webhook"
)

// Ready means that a message can be accepted and stored. In each way in which it cannot be,
// that is said, with the cause, and so is that it can be again.
func TestReadiness(t *testing.T) {
	onFile := func(t *testing.T) string { return t.TempDir() + "/forbear.db" }
	for _, tt := range []struct {
		name  string
		place func(t *testing.T) string
		// stop keeps the database from being written to, until undo; nil: for good.
		stop func(t *testing.T, place string) (undo func())
		want []string
	}{
		{"SQLite, locked by another process", onFile, func(t *testing.T, place string) func() {
			db, err := sql.Open("sqlite", place)
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			if _, err := db.ExecContext(t.Context(), "PRAGMA busy_timeout = 60000; BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			return func() { _ = db.Close() }
		}, []string{"database: locked by another process", "database: no response in time"}},
		{"SQLite, moved", onFile, func(t *testing.T, place string) func() {
			if err := os.Rename(place, place+".old"); err != nil {
				t.Fatal(err)
			}
			return func() { _ = os.Rename(place+".old", place) }
		}, []string{"database: its file was moved, replaced or deleted"}},
		{"SQLite, deleted", onFile, func(t *testing.T, place string) func() {
			if err := os.Remove(place); err != nil {
				t.Fatal(err)
			}
			return nil
		}, []string{"database: its file was moved, replaced or deleted"}},
		{"PostgreSQL, without the right", func(t *testing.T) string {
			server, url := pgtest.Shared(t), pgtest.Database(t)
			server.Exec(t, "DO $$ BEGIN CREATE ROLE reader LOGIN SUPERUSER; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
			t.Cleanup(func() { server.Exec(t, "ALTER ROLE reader SUPERUSER") })
			return strings.Replace(url, "forbear@", "reader@", 1)
		}, func(t *testing.T, _ string) func() {
			pgtest.Shared(t).Exec(t, "ALTER ROLE reader NOSUPERUSER")
			return func() { pgtest.Shared(t).Exec(t, "ALTER ROLE reader SUPERUSER") }
		}, []string{"database: no permission"}},
		{"PostgreSQL, read-only", newDatabase, func(t *testing.T, place string) func() {
			name := path.Base(strings.TrimSuffix(place, "?sslmode=disable"))
			server := pgtest.Shared(t)
			set := func(value string) {
				server.Exec(t, "ALTER DATABASE "+name+" SET default_transaction_read_only = "+value)
				server.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
			}
			set("on")
			return func() { set("off") }
		}, []string{"database: read-only"}},
		{"PostgreSQL, a table locked", newDatabase, func(t *testing.T, place string) func() {
			db := outside(t, place)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "LOCK TABLE forbear_deliveries"); err != nil {
				t.Fatal(err)
			}
			return func() { _ = tx.Rollback() }
		}, []string{"database: no response in time"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			place := tt.place(t)
			s, _ := start(t, Options{Database: place})
			s.DB.Watch(quiet)
			readiness(t, s, true)
			undo := tt.stop(t, place)
			state := readiness(t, s, false)
			for end := time.Now().Add(time.Minute); !slices.Contains(tt.want, state) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				state, _ = s.DB.Ready() // the first words may be those of a connection that broke
			}
			if !slices.Contains(tt.want, state) {
				t.Errorf("not ready as %q, want %q", state, tt.want)
			}
			if undo == nil {
				return
			}
			undo()
			readiness(t, s, true)
		})
	}
}

func newDatabase(t *testing.T) string { return pgtest.Database(t) }

// A server that has stopped without a word is noticed, too.
func TestReadinessOfAFrozenServer(t *testing.T) {
	behind := pgtest.Shared(t)
	relay := porttest.NewRelay(t, behind.Address())
	s, _ := start(t, Options{Database: relay.URL(pgtest.Database(t))})
	s.DB.Watch(quiet)
	readiness(t, s, true)
	thaw := relay.Freeze()
	t.Cleanup(thaw)
	if got := readiness(t, s, false); got != "database: no response in time" {
		t.Errorf("it is %q", got)
	}
	thaw()
	readiness(t, s, true)
}

// A full disk has room for what is small: that a message was refused counts for a while,
// and what is read meanwhile does not.
func TestReadinessOfAFullDisk(t *testing.T) {
	s, _ := start(t, Options{Database: t.TempDir() + "/forbear.db?_pragma=max_page_count(400)"})
	put(t, s, webhook.Endpoint{ID: "a", URL: "http://127.0.0.1:9"})
	var err error
	for i, failed := 0, 0; failed < 3 && i < 100; i++ { // a single one that failed says nothing
		if _, err = s.Dispatcher.Accept(t.Context(), webhook.Message{Endpoints: []string{"a"}, Body: []byte(`"` + strings.Repeat("x", 100<<10) + `"`)}); err != nil {
			failed++
		}
	}
	if err == nil {
		t.Fatal("it does not become full")
	}
	s.DB.Watch(quiet)
	if got := readiness(t, s, false); got != "database: disk full" {
		t.Errorf("it is %q after %v", got, errors.Unwrap(err))
	}
}
