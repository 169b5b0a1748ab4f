package sqltest

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/sqlstore"
)

// What errors quote may be the payload's: it is encrypted where that is. What is in
// the clear still says why.
func TestQuotedErrorsAreEncrypted(t *testing.T) {
	path := file(t)
	c, err := sqlstore.NewCipher(sqlstore.NewKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, path, sqlstore.WithCipher(c))
	put := deadletter.Letter{
		ID: "l1", Queue: "orders", Reason: "terminal", Error: `unknown name "planted" of order`, Panic: "bad {planted}",
		History: []deadletter.Attempt{{Number: 1, Error: `unknown name "planted" of order`}},
	}
	if err := db.DeadLetters().Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	l, err := db.DeadLetters().Get(t.Context(), "l1")
	if err != nil || l.Error != put.Error || l.Panic != put.Panic || len(l.History) != 1 || l.History[0].Error != put.Error || l.Cause != put.Fingerprint() {
		t.Errorf("got %+v, %v", l, err)
	}
	causes, err := db.DeadLetters().Causes(t.Context(), 10)
	if err != nil || len(causes) != 1 || causes[0].Error != "bad {***}" {
		t.Errorf("causes %+v, %v", causes, err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("planted")) {
			t.Errorf("%s holds what was quoted, or: %v", filepath.Base(file), err)
		}
	}
}

// A letter that an earlier version has written is read, counted and redriven.
func TestLetterOfAnEarlierVersion(t *testing.T) {
	path := file(t)
	db := open(t, path)
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO forbear_letters (id, queue, dest, event_id, reason, error_type, state, dead_at, meta, sealed)
		VALUES ('old', 'orders', 'worker', 'e1', 'exhausted', 'http_503', 'dead', 1700000000000000,
			'{"id":"old","queue":"orders","event_id":"e1","reason":"exhausted","attempts":1,"attempt_history":[{"attempt":1,"claim":1,"at":"2023-11-14T22:13:20Z","took_ns":5}]}',
			'{"payload":"AQ==","headers":null}')`); err != nil {
		t.Fatal(err)
	}
	l, err := db.DeadLetters().Get(t.Context(), "old")
	if err != nil || string(l.Payload) != "\x01" || l.Error != "" || l.Cause != "" || len(l.History) != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
	stats, err := queue.StatsByCause(t.Context(), db.DeadLetters(), 10)
	if err != nil || len(stats) != 1 || stats[0].Count != 1 || len(stats[0].Causes) != 1 || stats[0].Causes[0].Letter != "old" || stats[0].Causes[0].Cause != "" {
		t.Errorf("stats %+v, %v", stats, err)
	}
	if _, err := db.DeadLetters().BeginRedrive(t.Context(), "old", "j", "ann", 3); err != nil {
		t.Error(err)
	}
}
