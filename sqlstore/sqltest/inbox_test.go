package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// inbox is a database with a business table, and the application's own pool.
type inbox struct {
	place string
	db    *sqlstore.DB
	pool  *sql.DB
	mark  string // of the statements' arguments
}

// openInbox opens one for as long as a process or a test lives.
func openInbox(place string, db *sqlstore.DB) (*inbox, error) {
	in := &inbox{place: place, db: db, mark: "?"}
	driver, name := "sqlite", ""
	if strings.HasPrefix(place, "postgres://") {
		driver, name, in.mark = "pgx", place, "$"
	} else {
		name, _ = sqlstore.SQLiteNames(place)
	}
	var err error
	if in.pool, err = sql.Open(driver, name); err != nil {
		return nil, err
	}
	in.pool.SetMaxOpenConns(4)
	_, err = in.pool.Exec(`CREATE TABLE IF NOT EXISTS booked (event TEXT NOT NULL, attempt INTEGER NOT NULL)`)
	return in, err
}

// TestInbox runs the tests of consumers in transactions, each on databases of its own.
func TestInbox(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		test func(t *testing.T, in *inbox)
	}{
		{"AllOrNothing", testInboxAllOrNothing},
		{"CommitRefused", testInboxCommitRefused},
		{"Order", testInboxOrder},
		{"WithoutAConnection", testInboxWithoutAConnection},
		{"ConnectionLostDuringCommit", testInboxConnectionLostDuringCommit},
		{"LateCommitIsFenced", testInboxLateCommitIsFenced},
		{"UndoneByTheDatabase", testInboxUndoneByTheDatabase},
		{"LeftBehind", testInboxLeftBehind},
		{"Killed", testInboxKilled},
		{"KilledAgainAndAgain", testInboxKilledAgainAndAgain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, place string) {
				in, err := openInbox(place, open(t, place))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = in.pool.Close() })
				tc.test(t, in)
			})
		})
	}
}

// book is the work of a handler: a row of the business, and a message that goes out.
func (in *inbox) book(ctx context.Context, e consume.Event) error {
	tx := consume.Tx(ctx)
	insert := `INSERT INTO booked (event, attempt) VALUES (?, ?)`
	if in.mark == "$" {
		insert = `INSERT INTO booked (event, attempt) VALUES ($1, $2)`
	}
	if _, err := tx.ExecContext(ctx, insert, e.ID, consume.Attempt(ctx)); err != nil {
		return err
	}
	_, err := webhook.Outbox{SQLite: in.mark == "?"}.Insert(ctx, tx, webhook.Message{ID: "booked-" + e.ID, Endpoints: []string{"erp"}, Body: e.Data})
	return err
}

// brief lets leases end soon, for those that wait for it. A busy machine comes from
// one statement to the next within it.
func brief(o *consume.Options) { o.Lease = 1500 * time.Millisecond }

// consumer returns a consumer in transactions.
func (in *inbox) consumer(store idempotency.Store, handle consume.Handler, change func(*consume.Options)) (*consume.Consumer, error) {
	r, err := forbear.New("ledger", forbear.Policy{Kind: forbear.Event, MaxRetries: 2, Backoff: forbear.Backoff{Base: time.Millisecond}},
		forbear.WithoutLog(), forbear.WithCallerDeadLetter())
	if err != nil {
		return nil, err
	}
	o := consume.Options{
		Group: "ledger", Store: store, Transaction: true, DLQ: in.db.DeadLetters(), Retryer: r, InPlace: -1,
	}
	if change != nil {
		change(&o)
	}
	return consume.New(handle, o)
}

func (in *inbox) mustConsumer(t *testing.T, store idempotency.Store, handle consume.Handler, change func(*consume.Options)) *consume.Consumer {
	t.Helper()
	c, err := in.consumer(store, handle, change)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// clear forgets all events.
func (in *inbox) clear(t *testing.T) {
	run1(t, in.pool, `DELETE FROM booked`, `DELETE FROM forbear_outbox`, `DELETE FROM forbear_idempotency`)
}

// column returns what a query of one column finds.
func (in *inbox) column(t *testing.T, query string) (list []string) {
	t.Helper()
	rows, err := in.pool.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// want compares the tables: what was booked, as "event attempt", and the outbox.
func (in *inbox) want(t *testing.T, booked ...string) {
	t.Helper()
	if got := in.column(t, `SELECT event || ' ' || attempt FROM booked ORDER BY event`); !slices.Equal(got, booked) {
		t.Errorf("booked is %q, want %q", got, booked)
	}
	var out []string
	for _, b := range booked {
		event, _, _ := strings.Cut(b, " ")
		out = append(out, "booked-"+event+" erp of "+event)
	}
	if got := in.column(t, `SELECT message_id || ' ' || endpoint || ' ' || CAST(body AS TEXT) FROM forbear_outbox ORDER BY message_id`); in.mark == "?" && !slices.Equal(got, out) {
		t.Errorf("the outbox has %q, want %q", got, out)
	}
	if got := in.column(t, `SELECT message_id FROM forbear_outbox ORDER BY message_id`); len(got) != len(out) {
		t.Errorf("the outbox has %q, want %q", got, out)
	}
}

func event(id string) consume.Event {
	return consume.Event{ID: id, Source: "/shop", Type: "order.created", Data: []byte("of " + id)}
}

// deliver brings an event until it may be forgotten, as a broker does.
func deliver(ctx context.Context, c *consume.Consumer, e consume.Event) (d consume.Decision) {
	for d = c.Consume(ctx, e); !d.Acknowledge() && ctx.Err() == nil; d = c.Consume(ctx, e) {
		time.Sleep(min(time.Until(d.At), 50*time.Millisecond))
	}
	return d
}

// What a handler writes, the end of the event and the message that goes out are
// there together or not at all; attempts are counted all the same.
func testInboxAllOrNothing(t *testing.T, in *inbox) {
	errBusy := forbear.Retryable(errors.New("busy"), forbear.Hint{})
	for _, tc := range []struct {
		id       string
		fails    func(attempt int) error // after the work
		action   consume.Action
		attempts []int
		booked   string
	}{
		{"a-done", func(int) error { return nil }, consume.Ack, []int{1}, "a-done 1"},
		{"b-busy", func(n int) error {
			if n < 3 {
				return errBusy
			}
			return nil
		}, consume.Ack, []int{1, 2, 3}, "b-busy 3"},
		{"c-refused", func(int) error { return errors.New("no such account") }, consume.DeadLettered, []int{1}, ""},
		{"d-exhausted", func(int) error { return errBusy }, consume.DeadLettered, []int{1, 2, 3}, ""},
		{"e-panics", func(int) error { panic("a fault of the handler") }, consume.DeadLettered, []int{1}, ""},
	} {
		var attempts []int
		c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
			attempts = append(attempts, consume.Attempt(ctx))
			if err := in.book(ctx, e); err != nil {
				return err
			}
			return tc.fails(consume.Attempt(ctx))
		}, nil)
		d := deliver(t.Context(), c, event(tc.id))
		if d.Action != tc.action || !slices.Equal(attempts, tc.attempts) {
			t.Errorf("%s: %v (%s, %v) after attempts %v, want %v after %v", tc.id, d.Action, d.Reason, d.Err, attempts, tc.action, tc.attempts)
		}
		if d := deliver(t.Context(), c, event(tc.id)); d.Action != tc.action || !d.Duplicate || len(attempts) != len(tc.attempts) {
			t.Errorf("%s again: %+v, %d attempts; want a duplicate", tc.id, d, len(attempts))
		}
		if tc.action == consume.DeadLettered {
			l, err := in.db.DeadLetters().Get(t.Context(), c.LetterID(event(tc.id)))
			if err != nil || l.Attempts != len(tc.attempts) || string(l.Payload) != "of "+tc.id {
				t.Errorf("%s: the letter is %+v, %v", tc.id, l, err)
			}
			// Its redrive finds the handler well.
			if tc.id == "c-refused" {
				tc.fails = func(int) error { return nil }
				if err := c.Redrive(t.Context(), l); err != nil {
					t.Errorf("redrive: %v", err)
				}
			}
		}
	}
	in.want(t, "a-done 1", "b-busy 3", "c-refused 1")
}

// A commit that the database refuses is a failed attempt: nothing of it is there,
// and the connection is fit for the next one.
func testInboxCommitRefused(t *testing.T, in *inbox) {
	in.pool.SetMaxOpenConns(1)
	run1(t, in.pool, `CREATE TABLE account (id INTEGER PRIMARY KEY)`, `INSERT INTO account (id) VALUES (1)`,
		`CREATE TABLE paid (account INTEGER NOT NULL REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED)`)
	c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
		account := 1
		if consume.Attempt(ctx) < 3 {
			account = 7 // not there, which shows at the commit
		}
		_, err := consume.Tx(ctx).ExecContext(ctx, fmt.Sprint(`INSERT INTO paid (account) VALUES (`, account, `)`))
		return cmp.Or(err, in.book(ctx, e))
	}, nil)
	if d := deliver(t.Context(), c, event("a")); d.Action != consume.Ack || d.Duplicate {
		t.Errorf("%+v", d)
	}
	if got := in.column(t, `SELECT account FROM paid`); !slices.Equal(got, []string{"1"}) {
		t.Errorf("paid is %q", got)
	}
	in.want(t, "a 3")
}

// What a handler wrote that ignored its end is rolled back, though it says that all is
// well at last, and it is done again.
func testInboxLeftBehind(t *testing.T, in *inbox) {
	hang := make(chan struct{})
	c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
		err := in.book(ctx, e)
		if consume.Attempt(ctx) == 1 {
			<-hang
			return nil
		}
		return err
	}, func(o *consume.Options) {
		o.Grace, o.Logger = time.Millisecond, slog.New(slog.DiscardHandler)
		o.Retryer = forbear.Must(forbear.New("ledger", forbear.Policy{Kind: forbear.Event, PerAttempt: 5 * time.Second, Backoff: forbear.Backoff{Base: time.Millisecond}},
			forbear.WithoutLog(), forbear.WithCallerDeadLetter()))
	})
	if d := c.Consume(t.Context(), event("a")); d.Action != consume.RetryAt || d.Reason != "deaf" {
		t.Errorf("%+v", d)
	}
	if d := c.Consume(t.Context(), event("a")); d.Action != consume.RetryAt || d.Reason != "in_progress" {
		t.Errorf("%+v", d)
	}
	close(hang)
	if d := deliver(t.Context(), c, event("a")); d.Action != consume.Ack {
		l, err := in.db.DeadLetters().Get(t.Context(), c.LetterID(event("a")))
		t.Errorf("%+v, %+v, %v", d, l, err)
	}
	in.want(t, "a 2")
}

// While an event of a key waits for its retry, a later one of its key waits too.
func testInboxOrder(t *testing.T, in *inbox) {
	c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
		err := in.book(ctx, e)
		if e.ID == "1" && consume.Attempt(ctx) < 2 {
			err = forbear.Retryable(errors.New("busy"), forbear.Hint{})
		}
		return err
	}, func(o *consume.Options) { o.Ordered = true })
	first, second := event("1"), event("2")
	first.Key, second.Key = "k", "k"
	if d := c.Consume(t.Context(), first); d.Action != consume.RetryAt {
		t.Errorf("the first: %+v", d)
	}
	if d := c.Consume(t.Context(), second); d.Action != consume.RetryAt || d.Reason != "order" {
		t.Errorf("the second before the first: %+v", d)
	}
	deliver(t.Context(), c, first)
	deliver(t.Context(), c, second)
	in.want(t, "1 2", "2 1")
}

// A transaction that cannot begin is no attempt: the event comes again, and its
// count is as it was.
func testInboxWithoutAConnection(t *testing.T, in *inbox) {
	var calls atomic.Int64
	c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
		calls.Add(1)
		return in.book(ctx, e)
	}, brief)
	in.pool.SetMaxOpenConns(1)
	taken, err := in.pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refused := c.Consume(t.Context(), event("a"))
	if d := refused; d.Action != consume.RetryAt || d.Reason != "store" || !d.Duplicate || calls.Load() != 0 {
		t.Errorf("without a connection: %+v, %d calls", d, calls.Load())
	}
	_ = taken.Close()
	// Its letter's way: a redrive does not wait until it is due, which chance or a
	// slow machine may have made now.
	l := consume.Event{ID: "a", Source: "/shop", Data: []byte("of a")}
	d := c.Consume(t.Context(), l)
	if d.Reason != "early" && time.Until(refused.At) > 50*time.Millisecond {
		t.Errorf("before it is due: %+v", d)
	}
	if err := c.Redrive(t.Context(), letter(c, l)); err != nil {
		t.Error(err)
	}
	in.want(t, "a 1")
}
