package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/testkit/guide"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

const schema = `
CREATE TABLE accounts (name text PRIMARY KEY, balance int NOT NULL);
CREATE TABLE transfers (number text PRIMARY KEY);
INSERT INTO accounts VALUES ('alice', 100), ('bob', 0);
-- A sequence survives the rollback: the first transfer fails, the next does not.
CREATE SEQUENCE tries;
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF nextval('tries') = 1 THEN RAISE EXCEPTION USING ERRCODE = 'serialization_failure'; END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER conflict BEFORE UPDATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION conflict();
`

// TestDatabase: the first connection is lost, the second attempt is in conflict
// with another transaction, the third commits and gets no response. The fourth
// finds the transfer done.
func TestDatabase(t *testing.T) {
	server := pgtest.Start(t)
	address := server.Database(t)
	prepare(t, address)
	t.Setenv("DATABASE_URL", proxy(t, address))
	guide.Check(t, "database", main)
}

// prepare makes the tables.
func prepare(t *testing.T, address string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), schema).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// proxy stands in front of a database: it drops the first connection and, once,
// the response to a commit. It returns the address that leads through it.
func proxy(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		pumps sync.WaitGroup
		cut   sync.Once
	)
	behind := u.Host
	pumps.Go(func() {
		for n := 1; ; n++ {
			client, err := listener.Accept()
			if err != nil {
				return // the end of the test
			}
			if n == 1 {
				_ = client.Close()
				continue
			}
			database, err := net.Dial("tcp", behind)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			pumps.Go(func() { relay(client, database, &cut) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); pumps.Wait() })
	u.Host = listener.Addr().String()
	return u.String()
}

// relay passes on what two ends say, until one of them has ended or the response
// to the first commit has come.
func relay(client, database net.Conn, cut *sync.Once) {
	committed := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(database, client, func(p []byte) bool {
			if bytes.Contains(p, []byte("commit")) {
				cut.Do(func() { close(committed) })
			}
			return true
		})
		_ = database.Close()
	}()
	pump(client, database, func([]byte) bool {
		select {
		case <-committed:
			return false
		default:
			return true
		}
	})
	_ = client.Close()
	_ = database.Close()
	<-done
}

// pump copies from one end to the other while it may.
func pump(to, from net.Conn, may func([]byte) bool) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if n > 0 && !may(buf[:n]) {
			return
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// TestMayGoAway: what the database says of the statement itself is final.
func TestMayGoAway(t *testing.T) {
	for code, want := range map[string]bool{"40001": true, "40P01": true, "57P01": true, "23505": false, "42601": false} {
		f, ok := mayGoAway(&pgconn.PgError{Code: code})
		if ok != want || ok && f.Class != forbear.ClassTransient {
			t.Errorf("%s: %v, %v, want %v", code, f.Class, ok, want)
		}
	}
	if f, ok := mayGoAway(fmt.Errorf("commit: %w", pgconn.ErrConnClosed)); !ok || f.Class != forbear.ClassTransient {
		t.Errorf("a closed connection: %v, %v", f.Class, ok)
	}
}
