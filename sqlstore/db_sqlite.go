package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// On SQLite writes and reads have pools of their own. The writing pool has the one
// connection of the writer; readers of the WAL wait for no one.

// OpenSQLite opens the database in a file, and makes one that is not there, by the
// driver named "sqlite": the program imports modernc.org/sqlite. [DB.Close] closes its
// pools, too.
func OpenSQLite(ctx context.Context, path string, opts ...Option) (*DB, error) {
	writing, reading := SQLiteNames(path)
	write, err := sql.Open("sqlite", writing)
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	if err := write.PingContext(ctx); err != nil { // makes the file, which the reading pool cannot
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), write.Close())
	}
	read, err := sql.Open("sqlite", reading)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(4)
	db := SQLite(write, read, opts...)
	db.pools = []*sql.DB{read, write}
	return db, nil
}

// SQLite opens the database in one SQLite file over two pools: one for the
// single writer and one for reads. Open both with the source names of
// [SQLiteNames]. The pools stay the caller's to close, after the database; those of
// [OpenSQLite] are its own.
func SQLite(write, read *sql.DB, opts ...Option) *DB {
	return open(sqlite{}, write, read, opts)
}

// SQLiteNames returns the data source names for the writing and the reading
// pool of a file, in the form of modernc.org/sqlite. They carry the pragmas, so
// that every connection of a pool has them: WAL with synchronous=FULL, without
// which the last commits may be lost in a power cut. The path may end with
// parameters of its own, after a question mark.
func SQLiteNames(path string) (write, read string) {
	path, more, ok := strings.Cut(path, "?")
	if ok {
		more = "&" + more
	}
	base := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=secure_delete(FAST)" + more
	made := ""
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		made = "&_pragma=auto_vacuum(2)" // a new file can give its free pages back; on one that is there this waits for its writers
	}
	there := "" // to read makes no file, which would take the log away from one that was moved
	if !strings.Contains(more, "&mode=") {
		there = "&mode=rw"
	}
	return base + made + "&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(67108864)&_pragma=wal_autocheckpoint(8000)&_pragma=cache_size(-16000)&_txlock=immediate", base + there + "&_pragma=query_only(1)"
}

// connections knows no limit: a file has no server.
func (sqlite) connections(context.Context, *sql.DB) (int, error) { return 0, nil }

const (
	shrinkStep = 256  // pages that are given back at once: 1 MiB
	shrinkKeep = 1024 // that are free and kept in any case
)

// shrink moves pages from the end of the file into free ones, for the next checkpoint
// to cut it off. An eighth of the file stays free, for what is accepted next: a file
// that grows again for each message would be slower, and no smaller.
func (sqlite) shrink(t *tx) (more bool, err error) {
	var mode, free, pages int64
	for pragma, v := range map[string]*int64{"auto_vacuum": &mode, "freelist_count": &free, "page_count": &pages} {
		if _, err := t.row([]any{v}, "PRAGMA "+pragma); err != nil {
			return false, err
		}
	}
	if mode != 2 || free <= max(shrinkKeep, pages/8) {
		return false, nil
	}
	// It frees one page with each row that it returns.
	return true, t.each(func(*sql.Rows) error { return nil }, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkStep))
}

// start starts the one writer: SQLite takes one at a time, and a second would
// only wait for it.
func (sqlite) start(db *DB, write *sql.DB) {
	db.place = placeOf(write)
	db.startWriter(write, db.ops, nil)
}

// overwrite changes the connection of the writer, and what is committed with it.
func (sqlite) overwrite(t *tx, on bool) error {
	if on {
		return t.execOnce("PRAGMA secure_delete = ON")
	}
	return t.execOnce("PRAGMA secure_delete = FAST")
}

// overwritten empties the write-ahead log, which has pages as they were. A connection
// that only reads may do that.
func (sqlite) overwritten(ctx context.Context, db *DB) {
	_ = db.each(ctx, func(*sql.Rows) error { return nil }, "PRAGMA wal_checkpoint(TRUNCATE)") // the next one does it otherwise
}
