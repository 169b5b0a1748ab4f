package database

import (
	"path"
	"strings"
	"testing"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// What a database, a role or the URL has for those that do not say is not forbear's: the
// session is the same everywhere.
func TestSessionIsOurs(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	name := path.Base(strings.TrimSuffix(url, "?sslmode=disable"))
	for setting, value := range map[string]string{"client_encoding": "LATIN1", "TimeZone": "Asia/Tokyo", "DateStyle": "German", "standard_conforming_strings": "off"} {
		server.Exec(t, "ALTER DATABASE "+name+" SET "+setting+" = '"+value+"'")
	}
	for _, url := range []string{url, url + "&client_encoding=LATIN1&timezone=Asia/Tokyo&datestyle=German"} {
		db := openTest(t, url)
		for setting, want := range map[string]string{"client_encoding": "UTF8", "TimeZone": "UTC", "DateStyle": "ISO, MDY", "standard_conforming_strings": "on"} {
			var got string
			if err := db.pools[0].QueryRowContext(t.Context(), "SHOW "+setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, %v; want %q", Name(url), setting, got, err, want)
			}
		}
	}
}

// A database whose encoding lacks characters is refused at the start, with what to do.
func TestEncodingIsRefused(t *testing.T) {
	server := pgtest.Shared(t)
	server.Exec(t, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
	t.Cleanup(func() { server.Exec(t, "DROP DATABASE latin WITH (FORCE)") })
	db, err := Open(t.Context(), server.URL("latin"))
	if err == nil {
		_ = db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "its encoding is LATIN1") || !strings.Contains(err.Error(), "ENCODING 'UTF8'") {
		t.Errorf("got %v", err)
	}
}

// A process that goes on writing refuses a server that takes no writes, and a command
// that reads works there. All hosts are tried before.
func TestReadOnlyServerIsRefused(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	openTest(t, url) // makes the tables
	name := path.Base(strings.TrimSuffix(url, "?sslmode=disable"))
	server.Exec(t, "ALTER DATABASE "+name+" SET default_transaction_read_only = on")
	db, err := OpenFor(t.Context(), url, Use{Writes: true})
	if err == nil {
		_ = db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "is read-only") {
		t.Errorf("to write: %v", err)
	}
	if db, err = Open(t.Context(), url); err != nil {
		t.Fatalf("to read: %v", err)
	}
	defer func() { _ = db.Close() }()
	if err := db.UpToDate(t.Context()); err != nil {
		t.Errorf("to read: %v", err)
	}
}

// A pooler that gives each transaction any connection is refused, with the line that makes
// it work; one that keeps the connection is as good as the server.
func TestPooler(t *testing.T) {
	behind := pgtest.Database(t)
	for _, mode := range []string{"session", "transaction", "statement"} {
		through := pgtest.Bouncer(t, behind, mode)
		db, err := OpenFor(t.Context(), through, Use{Writes: true})
		if err == nil {
			_, err = db.Migrate(t.Context())
			_ = db.Close()
		}
		if refused := err != nil && strings.Contains(err.Error(), "pool_mode=session"); refused != (mode != "session") || err != nil && !refused {
			t.Errorf("pool_mode %s: %v", mode, err)
		}
	}
}

// Where the server has one connection left there is no second one to compare with, and
// nothing is refused for that.
func TestOneConnection(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.Database(t)
	server.Exec(t, "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1")
	t.Cleanup(func() { server.Exec(t, "DROP ROLE narrow") })
	db, err := Open(t.Context(), strings.Replace(url, "forbear@", "narrow@", 1))
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
}
