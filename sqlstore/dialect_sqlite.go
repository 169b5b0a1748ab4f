package sqlstore

import (
	"strings"
	"time"
)

// sqlite is the dialect of SQLite.
type sqlite struct{}

var sqliteWords = vocabulary{strings.NewReplacer(
	"{t}", "?", "{now}", "?",
	"{skip locked}", "", "{lock delivery}", "", "{lock message}", "",
	"{in ids}", "IN (SELECT value FROM json_each(?))", "{ids}", "SELECT value FROM json_each(?)", "{texts}", "json_each(?)",
	"{keys}", "(SELECT value ->> 'e' AS e, value ->> 'k' AS k FROM json_each(?)) x",
	"{blobs}", "(SELECT value ->> 'id' AS id, unhex(value ->> 'hex') AS body FROM json_each(?)) x",
	"{begin}", "BEGIN IMMEDIATE", // the write lock at once: one that began as a reader could not wait for it
	"{serial}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{bytes}", "BLOB", "{hot}", "", "{clustered}", "WITHOUT ROWID",
	"{migrated}", "EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'forbear_migrations')",
)}

func (sqlite) name() string { return "sqlite" }

func (sqlite) sql(text string) string { return sqliteWords.Replace(text) }

// moment goes by the process's clock: SQLite has one host.
func (sqlite) moment(a after, now time.Time) int64 { return now.Add(time.Duration(a)).UnixMicro() }
