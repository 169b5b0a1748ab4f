package database

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// Pragmas belong to a connection, not to a file: each one that a pool opens has
// to have them, the tenth as well as the first.
func TestEveryConnectionHasItsPragmas(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "forbear.db"))
	for i, pool := range db.pools {
		name := [...]string{"writing", "reading"}[i]
		want := map[string]string{"synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000", "foreign_keys": "1", "query_only": [...]string{"0", "1"}[i], "auto_vacuum": "2"}
		if i == 0 {
			want["journal_size_limit"] = "67108864"
		}
		if got := pool.Stats().MaxOpenConnections; got != [...]int{1, 4}[i] {
			t.Errorf("the %s pool has %d connections", name, got)
		}
		// The writer has its connection already: let the pool open ten.
		pool.SetMaxOpenConns(11)
		var conns []*sql.Conn
		for range 10 {
			c, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		for n, c := range conns {
			for pragma, value := range want {
				var got string
				if err := c.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != value {
					t.Errorf("%s connection %d: %s is %s, %v; want %s", name, n+1, pragma, got, err, value)
				}
			}
			_ = c.Close()
		}
	}
	if _, err := db.pools[1].ExecContext(t.Context(), "DELETE FROM forbear_messages"); err == nil {
		t.Error("the reading pool writes")
	}
}
