package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// openShared opens the database of all instances on a pool of pgx.
func openShared(ctx context.Context, pool *sql.DB, url string) (*sqlstore.DB, error) {
	pool.SetMaxOpenConns(16) // the server's connections, divided by the instances
	pool.SetMaxIdleConns(16)
	pool.SetConnMaxLifetime(5 * time.Minute) // new connections find the new primary
	store := sqlstore.Postgres(pool, sqlstore.WithListener(listenTo(url)))
	_, err := store.Migrate(ctx) // several instances may migrate at the same time
	return store, err
}

// instance is one of several processes: docs/guides/idempotency-stores.md shows openShared.
func instance(t *testing.T, url string, mux http.Handler) *httptest.Server {
	t.Helper()
	pool, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	store, err := openShared(t.Context(), pool, url)
	if err != nil {
		t.Fatal(err)
	}
	backlog := &idempotency.Backlog{Store: store.Idempotency()}
	principalOf := func(r *http.Request) (string, error) { return r.Header.Get("X-Principal"), nil }
	h, err := idempotency.Handler(store.Idempotency(), idempotency.Options{Scope: principalOf, Production: true, Backlog: backlog}, mux)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(h)
	t.Cleanup(func() { // in the order of a clean end
		front.Close()
		backlog.Close(t.Context())
		_ = store.Close()
		_ = pool.Close()
	})
	return front
}

// Each of twenty payments is sent to both instances at once: it is booked once, and
// both clients get the same response, one of them replayed.
func TestTwoInstancesOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var booked effects
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(idempotency.Header)
		booked.add(key)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "booked "+key)
	})
	fronts := []*httptest.Server{instance(t, url, mux), instance(t, url, mux)}
	post := func(front *httptest.Server, key string) (body string, replayed bool) {
		for { // as a client retries: the same key, until it has its response
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/pay", strings.NewReader("{}"))
			r.Header.Set(idempotency.Header, key)
			r.Header.Set("X-Principal", "ann")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return "", false
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusCreated {
				return string(b), resp.Header.Get(idempotency.HeaderReplayed) == "true"
			}
			if resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: got %d %s", key, resp.StatusCode, b)
				return "", false
			}
		}
	}
	var keys []string
	var all sync.WaitGroup
	for i := range many {
		key := fmt.Sprint("key-", i)
		keys = append(keys, key)
		all.Go(func() {
			replays := make([]bool, len(fronts))
			var both sync.WaitGroup
			for n, front := range fronts {
				both.Go(func() {
					var body string
					if body, replays[n] = post(front, key); body != "booked "+key {
						t.Errorf("%s at instance %d: got %q", key, n, body)
					}
				})
			}
			both.Wait()
			if replays[0] == replays[1] {
				t.Errorf("%s: replayed %v, want it at one of the two", key, replays)
			}
		})
	}
	all.Wait()
	booked.once(t, keys)
}
