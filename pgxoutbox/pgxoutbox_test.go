package pgxoutbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx", for the store

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/pgxoutbox"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, migrate)) }

// migrate makes forbear's tables and the endpoint a, beside a deleted one, and a role that has
// the rights of the guide alone.
func migrate(name string) error {
	ctx := context.Background()
	pool, err := sql.Open("pgx", name)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := sqlstore.Postgres(pool)
	defer db.Close()
	_, err = db.Migrate(ctx)
	for _, id := range []string{"a", "named"} {
		if err == nil {
			_, err = db.Webhooks().PutEndpoint(ctx, webhook.Endpoint{ID: id, URL: "https://example.com/"})
		}
	}
	if err == nil {
		err = db.Webhooks().DeleteEndpoint(ctx, "named", 0)
	}
	if err == nil {
		_, err = pool.ExecContext(ctx, `CREATE ROLE shop; GRANT INSERT ON forbear_outbox TO shop; GRANT SELECT (id, deleted) ON forbear_endpoints TO shop; GRANT SELECT (id) ON forbear_applications TO shop`)
	}
	return err
}

// database returns a connection of the role to a database that migrate has made, and the store.
func database(t *testing.T) (*pgx.Conn, *sqlstore.DB) {
	t.Helper()
	name := pgtest.Database(t)
	pool, err := sql.Open("pgx", name)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlstore.Postgres(pool)
	t.Cleanup(func() { _ = db.Close(); _ = pool.Close() })
	conn, err := pgx.Connect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `SET ROLE shop`); err != nil {
		t.Fatal(err)
	}
	return conn, db
}

// relayed returns what the outbox has, as forbear reads it.
func relayed(t *testing.T, db *sqlstore.DB) (list []webhook.Message) {
	t.Helper()
	for {
		done, err := db.Webhooks().Relay(t.Context(), 500, func(m *webhook.Message) (map[string]bool, error) {
			list = append(list, *m)
			return nil, m.Prepare(time.Now())
		})
		if err != nil || len(done.Dead) > 0 {
			t.Fatal(done, err)
		}
		if done.Rows == 0 {
			return list
		}
	}
}

// One row and many arrive with all that their messages have, in their order, for a role
// with no more rights than the guide says.
func TestInsert(t *testing.T) {
	conn, db := database(t)
	full := webhook.Message{
		ID: "full", Endpoints: []string{"a"}, Type: "t", Source: "/s", Subject: "sub", Key: "k", IdempotencyKey: "i", CorrelationID: "c", ContentType: "text/plain",
		Headers: []webhook.Header{{Name: "X-A", Value: `"1"`}}, NotBefore: time.UnixMicro(1_800_000_000_000_001), Body: []byte("\x00\xff\\x41"),
	}
	same := func(got webhook.Message) bool {
		return got.SameContent(&full) && got.CorrelationID == "c" && got.NotBefore.Equal(full.NotBefore)
	}
	for _, n := range []int{1, 1200} {
		msgs := []webhook.Message{full}
		for i := range n - 1 {
			msgs = append(msgs, webhook.Message{ID: fmt.Sprint("m", i), Endpoints: []string{"a"}, Body: fmt.Append(nil, i)})
		}
		var ids []string
		err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) (err error) {
			ids, err = pgxoutbox.Outbox{CheckEndpoints: true}.Insert(t.Context(), tx, msgs...)
			return err
		})
		if err != nil || len(ids) != n {
			t.Fatalf("%d ids, %v", len(ids), err)
		}
		got := relayed(t, db)
		if len(got) != n || !same(got[0]) {
			t.Fatalf("%d rows, want %d; the first is %+v", len(got), n, got[0])
		}
		for i, m := range got[1:] {
			if m.ID != msgs[i+1].ID || string(m.Body) != fmt.Sprint(i) {
				t.Fatalf("row %d is %+v", i+1, m)
			}
		}
	}
}

// A batch with a fault inserts nothing and leaves the transaction as it was; a savepoint,
// which pgx calls a nested transaction, takes its messages with it.
func TestRefusedAndRolledBack(t *testing.T) {
	conn, db := database(t)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	box := pgxoutbox.Outbox{CheckEndpoints: true}
	good := webhook.Message{ID: "good", Endpoints: []string{"a"}}
	for name, c := range map[string]struct {
		bad  webhook.Message
		want error
	}{
		"invalid":             {webhook.Message{ID: "named", Endpoints: []string{"a"}, Type: "a\nb"}, webhook.ErrInvalid},
		"unknown":             {webhook.Message{Endpoints: []string{"named"}}, webhook.ErrUnknownEndpoint},
		"unknown application": {webhook.Message{Application: "named"}, webhook.ErrUnknownApplication},
		"conflict":            {webhook.Message{ID: "good", Endpoints: []string{"a"}, Body: []byte("named")}, webhook.ErrConflict},
	} {
		ids, err := box.Insert(t.Context(), tx, good, c.bad)
		if !errors.Is(err, c.want) || ids != nil || name != "conflict" && !strings.Contains(err.Error(), `"named"`) {
			t.Errorf("%s: %q, %v", name, ids, err)
		}
	}
	if ids, err := box.Insert(t.Context(), tx); len(ids) != 0 || err != nil {
		t.Errorf("no message: %q, %v", ids, err)
	}
	part, err := tx.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Insert(t.Context(), part, webhook.Message{Endpoints: []string{"a"}}, webhook.Message{Endpoints: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	if err := part.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Insert(t.Context(), tx, good); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := relayed(t, db); len(got) != 1 || got[0].ID != "good" {
		t.Errorf("in the outbox: %+v", got)
	}
}

// The example works.
func TestShipAll(t *testing.T) {
	conn, db := database(t)
	if _, err := conn.Exec(t.Context(), `RESET ROLE; CREATE TABLE orders (id integer, shipped integer); INSERT INTO orders VALUES (1, 0), (2, 1), (3, 0)`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Webhooks().PutEndpoint(t.Context(), webhook.Endpoint{ID: "acme", URL: "https://example.com/"}); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), conn.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := shipAll(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got := relayed(t, db); len(got) != 2 || got[0].ID != "order-1-shipped" || string(got[1].Body) != `{"order":3}` {
		t.Errorf("in the outbox: %+v", got)
	}
}
