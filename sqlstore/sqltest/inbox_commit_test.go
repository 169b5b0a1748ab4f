package sqltest

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/forbear-go/forbear/consume"
	"github.com/forbear-go/forbear/deadletter"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/sqlstore"
)

// letter is a dead letter of an event.
func letter(c *consume.Consumer, e consume.Event) deadletter.Letter {
	return deadletter.Letter{ID: c.LetterID(e), EventID: e.ID, Source: e.Source, Payload: e.Data}
}

// faulty is a store that fails where it is told to.
type faulty struct {
	*sqlstore.Transactions
	blind    atomic.Bool // cannot be read
	renewing bool
}

func (f *faulty) Get(ctx context.Context, id idempotency.ID) (idempotency.Record, error) {
	if f.blind.Load() {
		return idempotency.Record{}, errors.New("away")
	}
	return f.Transactions.Get(ctx, id)
}

func (f *faulty) Renew(ctx context.Context, k idempotency.Token, lease time.Duration) error {
	if !f.renewing {
		return errors.New("away")
	}
	return f.Transactions.Renew(ctx, k, lease)
}

// The connection breaks while the commit is under way. The record says what became
// of it: the handler runs again, or is not called a second time; where the record
// cannot be read either, the event comes again when the lease is over.
func testInboxConnectionLostDuringCommit(t *testing.T, in *inbox) {
	if in.mark == "?" {
		t.Skip("SQLite has no connection to lose")
	}
	for _, tc := range []struct {
		name   string
		mode   int32
		blind  bool
		calls  int64
		booked string
	}{
		{"before the server saw it", 1, false, 2, "a 2"},
		{"after the server did it", 2, false, 1, "a 1"},
		{"after it, and the record cannot be read", 2, true, 1, "a 1"},
		{"before it, and the record cannot be read", 1, true, 2, "a 1"}, // the first attempt left nothing, no count either
	} {
		t.Run(tc.name, func(t *testing.T) {
			in.clear(t)
			cfg, err := pgx.ParseConfig(in.place)
			if err != nil {
				t.Fatal(err)
			}
			var mode atomic.Int32
			cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				return &cutter{Conn: conn, mode: &mode}, err
			}
			pool := stdlib.OpenDB(*cfg)
			t.Cleanup(func() { _ = pool.Close() })
			store := &faulty{Transactions: in.db.Transactions(pool), renewing: true}
			var calls atomic.Int64
			c := in.mustConsumer(t, store, func(ctx context.Context, e consume.Event) error {
				calls.Add(1)
				return in.book(ctx, e)
			}, func(o *consume.Options) { brief(o); o.InPlace = 2 })
			mode.Store(tc.mode)
			store.blind.Store(tc.blind)
			d := c.Consume(t.Context(), event("a"))
			if tc.blind && (d.Action != consume.RetryAt || d.Reason != "store") {
				t.Errorf("%+v, want it to come again when its lease is over", d)
			}
			if tc.mode == 2 && !tc.blind && (d.Action != consume.Ack || d.Duplicate) {
				t.Errorf("%+v, want what the record says: done", d)
			}
			store.blind.Store(false)
			if d := deliver(t.Context(), c, event("a")); d.Action != consume.Ack {
				t.Errorf("in the end: %+v", d)
			}
			if calls.Load() != tc.calls {
				t.Errorf("%d calls, want %d", calls.Load(), tc.calls)
			}
			in.want(t, tc.booked)
		})
	}
}

// A run whose lease has passed to another has no effect, however late it comes to
// its commit. One that does nothing meanwhile is ended by the server, so that the
// other can begin; one that is busy keeps the other waiting until it is refused.
func testInboxLateCommitIsFenced(t *testing.T, in *inbox) {
	if in.mark == "?" {
		t.Skip("the late one has SQLite's one writer: no other can begin")
	}
	for _, busy := range []bool{false, true} {
		in.clear(t)
		begun, gate := make(chan struct{}), make(chan struct{})
		late := in.mustConsumer(t, &faulty{Transactions: in.db.Transactions(in.pool)}, func(ctx context.Context, e consume.Event) error {
			err := in.book(ctx, e)
			close(begun)
			for {
				select {
				case <-gate:
					return err
				case <-time.After(30 * time.Millisecond):
				}
				if busy {
					_, err = consume.Tx(ctx).ExecContext(ctx, "SELECT 1")
				}
			}
		}, brief)
		var wg sync.WaitGroup
		wg.Go(func() {
			// What the other has done, or is about to do.
			if d := late.Consume(t.Context(), event("a")); d.Action != consume.Ack && d.Reason != "store" {
				t.Errorf("busy %v: the late one: %+v", busy, d)
			}
		})
		<-begun
		// Its own lease is to hold on a busy machine, too.
		other := in.mustConsumer(t, in.db.Transactions(in.pool), in.book, func(o *consume.Options) { o.Lease = 5 * time.Second })
		if busy {
			for other.Consume(t.Context(), event("a")).Reason != "store" { // it has the lease, and cannot begin
				time.Sleep(10 * time.Millisecond)
			}
			close(gate)
			wg.Wait()
			in.want(t)
		}
		if d := deliver(t.Context(), other, event("a")); d.Action != consume.Ack || d.Duplicate {
			t.Errorf("busy %v: the other: %+v", busy, d)
		}
		in.want(t, "a 1")
		if !busy {
			close(gate)
			wg.Wait()
			in.want(t, "a 1")
		}
	}
}

// A handler that fails because the database ended its transaction is called again,
// though it marks nothing: nothing of it is left. What the handler itself did wrong
// is not repeated.
func testInboxUndoneByTheDatabase(t *testing.T, in *inbox) {
	if in.mark == "?" {
		t.Skip("SQLite ends no transaction of another's")
	}
	for _, tc := range []struct {
		name, statement string
		want            consume.Action
		booked          []string
	}{
		{"a deadlock", `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$`, consume.Ack, []string{"a 2"}},
		{"a lock that was not free", `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '55P03'; END $$`, consume.Ack, []string{"a 2"}},
		{"the connection is ended", `SELECT pg_terminate_backend(pg_backend_pid())`, consume.Ack, []string{"a 2"}},
		{"a constraint", `INSERT INTO booked (event, attempt) VALUES (NULL, 0)`, consume.DeadLettered, nil},
		{"a statement that is none", `SELEKT 1`, consume.DeadLettered, nil},
	} {
		in.clear(t)
		c := in.mustConsumer(t, in.db.Transactions(in.pool), func(ctx context.Context, e consume.Event) error {
			err := in.book(ctx, e)
			if err == nil && consume.Attempt(ctx) == 1 {
				_, err = consume.Tx(ctx).ExecContext(ctx, tc.statement)
				if err == nil {
					t.Errorf("%s: no error", tc.name)
				}
			}
			return err
		}, nil)
		if d := deliver(t.Context(), c, event("a")); d.Action != tc.want {
			t.Errorf("%s: %+v, want %v", tc.name, d, tc.want)
		}
		in.want(t, tc.booked...)
	}
}
