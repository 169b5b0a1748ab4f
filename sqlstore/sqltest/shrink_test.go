package sqltest

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/store"
)

// fill accepts n messages of a size and ends their deliveries.
func fill(t *testing.T, db *sqlstore.DB, place string, n, size int) {
	t.Helper()
	body := bytes.Repeat([]byte("x"), size)
	for at := 0; at < n; at += 1000 {
		msgs := make([]webhook.Message, min(1000, n-at))
		for i := range msgs {
			msgs[i] = webhook.Message{ID: fmt.Sprintf("m%09d", at+i), Endpoints: []string{"a"}, Body: body}
		}
		if _, err := db.Webhooks().Accept(t.Context(), msgs, nil); err != nil {
			t.Fatal(err)
		}
	}
	name, _ := sqlstore.SQLiteNames(place)
	raw, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	if _, err := raw.ExecContext(t.Context(), `UPDATE forbear_deliveries SET state = 2, finished = 1`); err != nil {
		t.Fatal(err)
	}
}

// sizes returns the sizes of the file and of its log.
func sizes(t *testing.T, place string) (file, wal int64) {
	t.Helper()
	for name, v := range map[string]*int64{place: &file, place + "-wal": &wal} {
		if info, err := os.Stat(name); err == nil {
			*v = info.Size()
		}
	}
	return file, wal
}

// What is swept is given back, in steps that take a few milliseconds, and what is
// accepted meanwhile is there. FORBEAR_SHRINK sets a number of messages, of 1 KiB.
func TestFileShrinks(t *testing.T) {
	n, size := 2500, 8<<10
	if s := os.Getenv("FORBEAR_SHRINK"); s != "" {
		n, _ = strconv.Atoi(s)
		size = 1 << 10
	}
	place := file(t)
	db := open(t, place)
	fill(t, db, place, n, size)
	_, log := sizes(t, place)
	checkpoint(t, place)
	full, _ := sizes(t, place)
	began := time.Now()
	for {
		swept, err := db.Webhooks().Sweep(t.Context(), time.Hour, 500)
		if err != nil {
			t.Fatal(err)
		}
		if swept == 0 {
			break
		}
	}
	swept, _ := sizes(t, place)
	sweeping := time.Since(began)
	steps, longest := 0, time.Duration(0)
	for more := true; more; steps++ {
		at := time.Now()
		var err error
		if more, err = db.Webhooks().Shrink(t.Context()); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(at))
		if steps%8 == 0 {
			if _, err := db.Webhooks().Accept(t.Context(), []webhook.Message{{ID: fmt.Sprint("during", steps), Endpoints: []string{"b"}, Body: []byte("kept")}}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	turn, err := db.Webhooks().WriteBackAndClaim(t.Context(), store.Step{Owner: "w", Lease: time.Minute, Lanes: []store.Lane{{Endpoint: "b", Max: 100_000}}})
	if err != nil || len(turn.Claimed) != (steps+7)/8 {
		t.Errorf("%d deliveries of what was accepted meanwhile, %v; want %d", len(turn.Claimed), err, (steps+7)/8)
	}
	if more, err := db.Webhooks().Shrink(t.Context()); more || err != nil {
		t.Errorf("there is more: %v, %v", more, err)
	}
	checkpoint(t, place)
	after, logAfter := sizes(t, place)
	t.Logf("%d messages: %d MiB, log %d MiB; swept in %v: %d MiB; given back in %d steps, the longest %v: %d MiB, log %d MiB",
		n, full>>20, log>>20, sweeping, swept>>20, steps, longest, after>>20, logAfter>>20)
	if after > full/4 {
		t.Errorf("the file has %d bytes of %d", after, full)
	}
	var ok string
	raw := rawSQLite(t, place)
	if err := raw.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity: %s, %v", ok, err)
	}
}

func rawSQLite(t *testing.T, place string) *sql.DB {
	t.Helper()
	name, _ := sqlstore.SQLiteNames(place)
	raw, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	return raw
}

// checkpoint writes the log into the file, as SQLite does by itself after a while.
func checkpoint(t *testing.T, place string) {
	t.Helper()
	if _, err := rawSQLite(t, place).ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
}
