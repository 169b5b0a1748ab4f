package sqltest

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
)

// listenTo is a listener as an application writes it, with pgx: the comment of
// sqlstore.WithListener shows it.
func listenTo(url string) func(ctx context.Context, channel string, wake func(payload string)) error {
	return func(ctx context.Context, channel string, wake func(payload string)) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return err
		}
		wake("") // for what happened before
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil {
				return err
			}
			wake(n.Payload)
		}
	}
}

// openListening is open with a listener.
func openListening(t *testing.T, url string, o sqlstore.Option) *sqlstore.DB {
	t.Helper()
	pool, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	db := sqlstore.Postgres(pool, o)
	t.Cleanup(func() { _ = db.Close(); _ = pool.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// A duplicate at a second instance has its response when the run at the first ends,
// long before it would have polled again; with notifications cut off it still comes,
// by polling.
func TestDuplicateElsewhereIsWoken(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	for _, c := range []struct {
		name string
		poll time.Duration
		cut  bool
	}{
		{"woken", 1000 * time.Hour, false},
		{"cut off", 50 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			listens := make(chan struct{}, 9)
			listener := func(ctx context.Context, channel string, wake func(payload string)) error {
				if c.cut {
					listens <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}
				return listenTo(url)(ctx, channel, func(payload string) {
					wake(payload)
					if payload == "" {
						listens <- struct{}{}
					}
				})
			}
			begun, goOn := make(chan struct{}), make(chan struct{})
			var runs atomic.Int64
			instance := func() *httptest.Server {
				h, err := idempotency.Handler(openListening(t, url, sqlstore.WithListener(listener)).Idempotency(), idempotency.Options{
					Scope: idempotency.SingleTenant(), Poll: c.poll, Wait: 1000 * time.Hour, StoreTimeout: time.Minute, Lease: 10 * time.Minute, Logger: slog.New(slog.DiscardHandler),
				}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					runs.Add(1)
					close(begun)
					<-goOn
					w.WriteHeader(http.StatusCreated)
					_, _ = io.WriteString(w, "paid")
				}))
				if err != nil {
					t.Fatal(err)
				}
				s := httptest.NewServer(h)
				t.Cleanup(s.Close)
				return s
			}
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel) // before the servers are closed
			type reply struct {
				status   int
				body     string
				replayed bool
			}
			post := func(s *httptest.Server) <-chan reply {
				got := make(chan reply, 1)
				go func() {
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/pay", strings.NewReader("{}"))
					r.Header.Set(idempotency.Header, strings.ReplaceAll(c.name, " ", "-"))
					resp, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Error(err)
						got <- reply{}
						return
					}
					defer func() { _ = resp.Body.Close() }()
					body, _ := io.ReadAll(resp.Body)
					got <- reply{resp.StatusCode, string(body), resp.Header.Get(idempotency.HeaderReplayed) == "true"}
				}()
				return got
			}
			first := post(instance())
			<-begun
			second := post(instance())
			<-listens // the duplicate waits, and its instance listens
			close(goOn)
			if got := <-first; got != (reply{201, "paid", false}) {
				t.Errorf("the first got %+v", got)
			}
			select {
			case got := <-second:
				if got != (reply{201, "paid", true}) || runs.Load() != 1 {
					t.Errorf("the duplicate got %+v, after %d runs", got, runs.Load())
				}
			case <-time.After(time.Minute):
				t.Error("the duplicate still waits")
			}
		})
	}
}
