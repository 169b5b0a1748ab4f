package durable

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
)

// A user with the rights that the guide grants, and no others, delivers; one that
// would have to change the schema is told what is missing and what to run.
func TestServesWithoutRightsToTheSchema(t *testing.T) {
	owner := pgtest.Shared(t).Database(t)
	raw, err := sql.Open("pgx", owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	guide, err := os.ReadFile("../../../../docs/guides/webhooks-postgresql.md")
	if err != nil {
		t.Fatal(err)
	}
	// Roles are the server's, which other tests use too.
	role := "forbear_serve_" + owner[strings.LastIndex(owner, "/")+1:strings.Index(owner, "?")]
	_, statements, _ := strings.Cut(strings.ReplaceAll(string(guide), "forbear_serve", role), "```sql\n")
	statements, _, _ = strings.Cut(statements, "```\n")
	if grants := strings.Count(statements, ";\n"); grants != 5 {
		t.Fatalf("the guide has %d statements", grants)
	}
	if _, err := raw.ExecContext(t.Context(), statements); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	user := strings.Replace(owner, "forbear@", role+"@", 1)
	_, err = New(t.Context(), Options{Database: user, Logger: quiet})
	for _, part := range []string{"0001_delivery", "forbear migrate --database postgres://127.0.0.1:"} {
		if !errors.Is(err, sqlstore.ErrRights) || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %s in it", err, part)
		}
	}
	db, err := database.Open(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	s, stop := start(t, Options{Database: user, Poll: 50 * time.Millisecond})
	sink := newSink(t)
	put(t, s, webhook.Endpoint{ID: "a", URL: sink.URL, Ordered: true})
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO forbear_outbox (message_id, endpoint, order_key, body) VALUES ('row', 'a', 'k', '{}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dispatcher.Accept(t.Context(), webhook.Message{ID: "m", Endpoints: []string{"a"}, Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); s.Dispatcher.Stats().Delivered < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("delivered %d of 2", s.Dispatcher.Stats().Delivered)
		}
	}
	if _, err := s.DB.Webhooks().Sweep(t.Context(), 0, 10); err != nil {
		t.Error(err)
	}
	stop()
	plain, err := sql.Open("pgx", user)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	if _, err := plain.ExecContext(t.Context(), `CREATE TABLE t (i int)`); err == nil {
		t.Error("the user may make tables")
	}
}
