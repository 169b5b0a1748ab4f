package durable

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// outside opens a database as an application does that inserts into the outbox.
func outside(t *testing.T, name string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if !strings.HasPrefix(name, "postgres") {
		driver = "sqlite"
		name, _ = sqlstore.SQLiteNames(name)
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// unguard lets rows into the outbox that its table refuses: some came before it did.
func unguard(t *testing.T, svc *Service, db *sql.DB) {
	t.Helper()
	text := `DROP TRIGGER forbear_outbox_not_before; DROP TRIGGER forbear_outbox_destination`
	if svc.postgres() {
		text = `ALTER TABLE forbear_outbox DROP CONSTRAINT forbear_outbox_not_before_is_in_microseconds, DROP CONSTRAINT forbear_outbox_names_endpoint_or_application`
	}
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// places runs a test on SQLite, on PostgreSQL, and on a PostgreSQL that does
// not look at the encoding of texts.
func places(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "forbear.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.Database(t)) })
	t.Run("SQL_ASCII", func(t *testing.T) {
		server := pgtest.Shared(t)
		server.Exec(t, "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
		t.Cleanup(func() { server.Exec(t, "DROP DATABASE ascii WITH (FORCE)") })
		test(t, server.URL("ascii"))
	})
}

// bodiesSink keeps what arrives.
type bodiesSink struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]string // by endpoint and id
}

func newBodiesSink(t *testing.T) *bodiesSink {
	t.Helper()
	s := &bodiesSink{seen: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen[strings.Trim(r.URL.Path, "/")+" "+r.Header.Get("Webhook-Id")] += string(body)
		s.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return s
}

// texts are values that a column may meet.
var texts = []any{
	nil, "", "ordinary", "with space", "zwölf", "\u0000", "\x01\x1b[31m", "line\r\nbreak", "\u202e\ufeff", "\xff\xfe\xc3\x28",
	strings.Repeat("x", 127), strings.Repeat("x", 257), strings.Repeat("x", 5000), strings.Repeat("é", 3000), strings.Repeat("x", 3<<20),
	"'; DROP TABLE forbear_outbox; --", "{t}", "?", "$1", int64(-1), int64(0), int64(1) << 62, 3.5,
	[]byte{0xff, 0x00, 0x01},
	true,
}

var headerTexts = []any{
	`[]`, `[{"name":"X-A","value":"1"}]`, `null`, `{}`, `"x"`, `[1]`, `[{"name":1}]`, `[{"name":"X-A","value":"1"}] more`, `[{"nome":"X-A"}]`,
	`[{"name":"","value":""}]`, `[{"name":"Authorization","value":"Bearer secret"}]`, `[{"name":"X-A","value":"a\nb"}]`, `[{"name":"X A","value":"1"}]`,
	`[` + strings.Repeat(`{"name":"X-A","value":"1"},`, 70) + `{"name":"X-A","value":"1"}]`, `[` + strings.Repeat(`[`, 20000), `[{"name":"X-\ud800","value":"\ud800"}]`,
}

var notBefores = []any{
	int64(0), int64(-1), int64(-1 << 63), int64(1<<63 - 1), time.Now().UnixNano(), time.Now().UnixMilli(), time.Now().Unix(), time.Now().UnixMicro(),
	int64(253_402_300_799_999_999), int64(253_402_300_800_000_000), "tomorrow", "1700000000000000", 1.5, 1.7e15, []byte("x"), "",
}

// Whatever is inserted into the outbox, in whatever column: what can be sent is
// sent as it is, everything else is a dead letter, and nothing holds up the rows
// behind it.
func TestOutboxTakesAnything(t *testing.T) {
	t.Parallel()
	race.TooSlow(t, "TestOutbox has the way of a row")
	places(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newBodiesSink(t)
		svc, stop := start(t, Options{Database: database, Poll: 100 * time.Millisecond})
		for _, id := range []string{"a", "x"} {
			put(t, svc, webhook.Endpoint{ID: id, URL: s.URL + "/" + id, Ordered: id == "x"})
		}
		db := outside(t, database)
		unguard(t, svc, db)
		columns := []string{"message_id", "endpoint", "type", "source", "subject", "order_key", "idempotency_key", "correlation_id", "content_type", "headers", "not_before", "body", "created"}
		usual := func(id string) map[string]any {
			return map[string]any{"message_id": id, "endpoint": "a", "body": []byte("body of " + id)}
		}
		inserted, good := 0, map[string]string{}
		offered := map[string]string{} // bodies of the rows that are for endpoint a under an id of their own
		insert := func(row map[string]any) bool {
			var names, places []string
			var args []any
			for _, c := range columns {
				if v, ok := row[c]; ok {
					names, args = append(names, c), append(args, v)
					if svc.postgres() {
						places = append(places, fmt.Sprint("$", len(args)))
					} else {
						places = append(places, "?")
					}
				}
			}
			_, err := db.ExecContext(t.Context(), `INSERT INTO forbear_outbox (`+strings.Join(names, ", ")+`) VALUES (`+strings.Join(places, ", ")+`)`, args...)
			if err == nil {
				inserted++
				if id, ok := row["message_id"].(string); ok && row["endpoint"] == "a" && len(id) < 20 && strings.Contains(id, "-") {
					switch body := row["body"].(type) {
					case string:
						offered[id] = body
					case []byte:
						offered[id] = string(body)
					}
				}
			}
			return err == nil // what the database itself refuses is the application's business
		}
		addGood := func() {
			id := fmt.Sprint("good-", len(good))
			if !insert(usual(id)) {
				t.Fatal("a usual row was refused")
			}
			good["a "+id] = "body of " + id
		}
		hostile := 0
		add := func(column string, v any) {
			row := usual(fmt.Sprint("h-", hostile))
			row["headers"], row["not_before"] = nil, nil
			row[column] = v
			if insert(row) {
				if hostile++; hostile%7 == 0 {
					addGood()
				}
			}
		}
		for _, c := range columns {
			list := texts
			switch c {
			case "headers":
				list = append(headerTexts, texts...)
			case "not_before", "created":
				list = append(notBefores, texts...)
			}
			for _, v := range list {
				add(c, v)
			}
		}
		for range 300 { // several at once
			row := usual(fmt.Sprint("r-", hostile))
			for range 1 + rng.IntN(4) {
				c := columns[rng.IntN(len(columns))]
				list := texts[:14]
				switch c {
				case "headers":
					list = headerTexts
				case "not_before":
					list = notBefores
				case "body":
					list = texts
				}
				row[c] = list[rng.IntN(len(list))]
			}
			if insert(row) {
				hostile++
			}
		}
		addGood()
		left := -1
		for end := time.Now().Add(2 * time.Minute); left != 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_outbox`).Scan(&left); err != nil {
				t.Fatal(err)
			}
		}
		if left != 0 {
			t.Fatalf("%d rows of %d are still in the outbox", left, inserted)
		}
		waitFor(t, "what can be sent at once", func() bool {
			var n int
			err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM forbear_deliveries WHERE state IN (0, 1, 4) AND due < 4000000000000000`).Scan(&n)
			return err == nil && n == 0
		})
		list := readLetters(t, svc)
		letters, kept, duplicates := len(list), 0, 0
		var deliveries int
		for query, n := range map[string]*int{`SELECT count(*) FROM forbear_outbox_refused`: &kept, `SELECT count(*) FROM forbear_deliveries`: &deliveries} {
			if err := db.QueryRowContext(t.Context(), query).Scan(n); err != nil {
				t.Fatal(err)
			}
		}
		duplicates = inserted - deliveries - letters
		t.Logf("%d rows: %d became deliveries, %d dead letters (%d too large for one), %d were duplicates", inserted, deliveries, letters, kept, duplicates)
		if hostile < 300 || letters < 100 || kept == 0 || duplicates < 0 || duplicates > 20 {
			t.Errorf("%d hostile rows, %d letters, %d kept, %d duplicates", hostile, letters, kept, duplicates)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, body := range good {
			if s.seen[name] != body {
				t.Errorf("%s arrived as %q", name, s.seen[name])
			}
		}
		for id, body := range offered {
			l, dead := list[id]
			arrived, ok := s.seen["a "+id]
			switch {
			case dead && ok:
				t.Errorf("%s arrived and is dead", id)
			case dead && len(l.Headers) > 0 && l.Headers[0].Value == "see forbear_outbox_refused":
			case dead && string(l.Payload) != body:
				t.Errorf("%s is dead with %.100q, was %.100q", id, l.Payload, body)
			case ok && arrived != body:
				t.Errorf("%s arrived as %.100q, was %.100q", id, arrived, body)
			case !dead && !ok:
				var due int64
				if err := db.QueryRowContext(t.Context(), `SELECT due FROM forbear_deliveries WHERE message_id = '`+id+`'`).Scan(&due); err != nil || due < time.Now().UnixMicro() {
					t.Errorf("%s is nowhere: due %d, %v", id, due, err)
				}
			}
		}
		for name := range s.seen {
			if strings.ContainsAny(name, "\r\n\x00") {
				t.Errorf("%q was sent", name)
			}
		}
		stop()
	})
}

func (s *Service) postgres() bool { return strings.HasPrefix(s.path, "postgres") }

// readLetters reads all letters, each as a person would see it, by their
// event's id.
func readLetters(t *testing.T, svc *Service) map[string]deadletter.Letter {
	t.Helper()
	letters := map[string]deadletter.Letter{}
	for f := (queue.Filter{Limit: 50}); ; {
		list, err := svc.DB.DeadLetters().List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return letters
		}
		for _, l := range list {
			f.After = l.ID
			if l.Reason != deadletter.ReasonInvalid && l.Reason != deadletter.ReasonConflict || l.Description == "" || len(l.Description) > deadletter.MaxDescription {
				t.Errorf("letter %s: %s, %q", l.ID, l.Reason, l.Description)
			}
			if code, _ := call(t, svc, "GET", "/v1/dead-letters/"+l.ID, ""); code != http.StatusOK {
				t.Errorf("letter %s cannot be shown: %d", l.ID, code)
			}
			id := l.EventID
			if _, twice := letters[id]; twice || id == "" {
				id = l.ID
			}
			letters[id] = l
		}
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// A row keeps what it had in its letter: payload, headers, also those that
// cannot be read, and what is too large is kept beside the outbox.
func TestRefusedRowIsKept(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, database string) {
		svc, _ := start(t, Options{Database: database, Poll: 50 * time.Millisecond, Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(200), nil })})
		put(t, svc, webhook.Endpoint{ID: "a", URL: "https://example.com/"})
		db := outside(t, database)
		unguard(t, svc, db)
		for _, row := range []string{
			`INSERT INTO forbear_outbox (message_id, endpoint, body, headers) VALUES ('m1', 'a', 'payload', '[{"name":"Authorization","value":"planted"}]')`,
			`INSERT INTO forbear_outbox (message_id, endpoint, body, headers) VALUES ('m2', 'a', 'payload', 'planted, no JSON')`,
			`INSERT INTO forbear_outbox (message_id, endpoint, body, not_before) VALUES ('m3', 'a', 'payload', 1763800000000000000)`,
			`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m4', 'nowhere', 'payload')`,
			`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m5', 'a', 'payload')`,
			`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m5', 'a', 'another payload')`,
		} {
			if _, err := db.ExecContext(t.Context(), row); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.ExecContext(t.Context(), strings.Replace(`INSERT INTO forbear_outbox (message_id, endpoint, body) VALUES ('m6', 'a', ?)`, "?", map[bool]string{true: "$1", false: "?"}[svc.postgres()], 1), []byte(strings.Repeat("x", 3<<20))); err != nil {
			t.Fatal(err)
		}
		list := waitLetters(t, svc, 6)
		byID := map[string]deadletter.Letter{}
		for _, l := range list {
			byID[l.EventID] = l
			if l.EventID != "m6" && string(l.Payload) != map[bool]string{true: "another payload", false: "payload"}[l.EventID == "m5"] {
				t.Errorf("%s has payload %q", l.EventID, l.Payload)
			}
			if text := fmt.Sprint(l.Mask()); strings.Contains(text, "planted") {
				t.Errorf("the masked letter shows %s", text)
			}
		}
		for id, want := range map[string]struct{ reason, text string }{
			"m1": {deadletter.ReasonInvalid, "Authorization"}, "m2": {deadletter.ReasonInvalid, "not a JSON array"}, "m3": {deadletter.ReasonInvalid, "microseconds"},
			"m4": {deadletter.ReasonInvalid, "unknown endpoint"}, "m5": {deadletter.ReasonConflict, "another message"}, "m6": {deadletter.ReasonInvalid, "forbear_outbox_refused"},
		} {
			if l := byID[id]; l.Reason != want.reason || !strings.Contains(l.Description, want.text) {
				t.Errorf("%s: %s, %q; want %s, %q", id, l.Reason, l.Description, want.reason, want.text)
			}
		}
		if h := byID["m1"].Headers; len(h) != 1 || h[0].Value != "planted" {
			t.Errorf("m1 has headers %v", h)
		}
		if h := byID["m2"].Headers; len(h) != 1 || h[0].Value != "planted, no JSON" {
			t.Errorf("m2 has headers %v", h)
		}
		var size int
		if err := db.QueryRowContext(t.Context(), `SELECT octet_length(body) FROM forbear_outbox_refused WHERE message_id = 'm6' AND letter = '`+byID["m6"].ID+`'`).Scan(&size); err != nil || size != 3<<20 {
			t.Errorf("of m6 %d bytes are kept, %v", size, err)
		}
		reasons := map[string]bool{}
		alerts, err := svc.DB.DeadLetters().AlertPage(t.Context(), 0, 10)
		for _, a := range alerts {
			reasons[a.Reason] = true
		}
		if err != nil || !reasons[deadletter.ReasonConflict] || !reasons[deadletter.ReasonInvalid] {
			t.Errorf("alerts are %v, %v", reasons, err)
		}
		// None of them is sent by a redrive either, and none is stuck on the way.
		if _, err := svc.Redriver.Start(t.Context(), queue.Job{Filter: queue.Filter{Queue: webhook.Queue}, By: "ann", StopRatio: 1}, "job"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the redrive's end", func() bool {
			j, err := svc.DB.DeadLetters().Job(context.WithoutCancel(t.Context()), "job")
			return err == nil && j.State != queue.JobRunning
		})
		if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{State: deadletter.Dead}); n != 5 || err != nil { // m3's not_before is not the message's any more
			t.Errorf("%d letters are dead after the redrive, %v", n, err)
		}
	})
}
