package outbox

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/webhook"
	"github.com/forbear-go/forbear/webhook/dispatch"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, migrate)) }

// migrate makes forbear's tables, and the role that the guide names.
func migrate(database string) error {
	ctx := context.Background()
	pool, err := sql.Open("pgx", database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := sqlstore.Postgres(pool)
	defer db.Close()
	if _, err := db.Migrate(ctx); err != nil {
		return err
	}
	_, err = pool.ExecContext(ctx, `CREATE ROLE shop LOGIN`)
	return err
}

// acme is the endpoint, and forbear, which delivers to it.
type acme struct {
	*httptest.Server
	db *sqlstore.DB

	mu   sync.Mutex
	seen map[string]string // bodies by message id
}

// deliver runs forbear on a database until the test ends.
func deliver(t *testing.T, database string) *acme {
	t.Helper()
	a := &acme{seen: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.seen[r.Header.Get("Webhook-Id")] += string(body)
		a.mu.Unlock()
	}))
	t.Cleanup(a.Close)
	if strings.HasPrefix(database, "postgres://") {
		pool, err := sql.Open("pgx", database)
		if err != nil {
			t.Fatal(err)
		}
		pool.SetMaxOpenConns(8)
		t.Cleanup(func() { _ = pool.Close() })
		a.db = sqlstore.Postgres(pool)
	} else {
		var err error
		if a.db, err = sqlstore.OpenSQLite(t.Context(), database); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = a.db.Close() })
	if _, err := a.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.New(dispatch.Config{
		Store: a.db.Webhooks(), Alerts: a.db.DeadLetters(), Logger: slog.New(slog.DiscardHandler),
		Guard: webhook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.PutEndpoint(t.Context(), webhook.Endpoint{ID: "acme", URL: a.URL}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return a
}

// want waits until the endpoint has received these messages, and no other.
func (a *acme) want(t *testing.T, bodies map[string]string) {
	t.Helper()
	var seen map[string]string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		a.mu.Lock()
		seen = maps.Clone(a.seen)
		a.mu.Unlock()
		if len(seen) >= len(bodies) {
			break
		}
	}
	if !maps.Equal(seen, bodies) {
		t.Errorf("received %q, want %q", seen, bodies)
	}
}

// The guide's program ships one order and rolls the other one back, on both databases,
// beside a forbear that is not its own.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "outbox")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../../examples", "-o", program, "./outbox").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, database := range map[string]string{"SQLite": filepath.Join(t.TempDir(), "shop.db"), "PostgreSQL": pgtest.Database(t)} {
		t.Run(name, func(t *testing.T) {
			a := deliver(t, database)
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
			out, err := cmd.CombinedOutput()
			if want := "outbox: unknown endpoint \"acne\"\n1 order is shipped\n"; err != nil || string(out) != want {
				t.Errorf("%v, and it prints\n%s\nwant\n%s", err, out, want)
			}
			a.want(t, map[string]string{"order-1-shipped": `{"order":1}`})
		})
	}
}
