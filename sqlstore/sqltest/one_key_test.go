package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/sqlstore"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// shop is a service of two instances over one store. Its only work is a
// transaction that takes its time, and whose response tells which one it was.
type shop struct {
	healthpb.UnimplementedHealthServer
	stores  [2]idempotency.Store
	effects atomic.Int64
	takes   atomic.Int64 // nanoseconds
}

func (s *shop) work() int64 {
	n := s.effects.Add(1)
	time.Sleep(time.Duration(s.takes.Load()))
	return n
}

func (s *shop) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d", s.work())
}

func (s *shop) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(s.work())}, nil
}

// overHTTP starts the instances behind the middleware with its defaults and returns
// a call of one of them.
func (s *shop) overHTTP(t *testing.T, r *forbear.Retryer) func(ctx context.Context, instance int, key string) (string, error) {
	var urls []string
	for _, store := range s.stores {
		h, err := idempotency.Handler(store, idempotency.Options{Scope: idempotency.SingleTenant(), Logger: quiet, StoreTimeout: patient}, s)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		urls = append(urls, web.URL)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: httpretry.NewTransport(transport, r)}
	return func(ctx context.Context, instance int, key string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, urls[instance], strings.NewReader("100"))
		if err != nil {
			return "", err
		}
		req.Header.Set(idempotency.Header, key)
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return fmt.Sprintf("%d %s", resp.StatusCode, text), err
	}
}

// overGRPC is overHTTP with the other wire.
func (s *shop) overGRPC(t *testing.T, r *forbear.Retryer) func(ctx context.Context, instance int, key string) (string, error) {
	var clients []healthpb.HealthClient
	for _, store := range s.stores {
		once, err := grpcretry.UnaryServerIdempotency(store, grpcretry.IdempotencyOptions{
			Methods:   []string{"/grpc.health.v1.Health/Check"},
			Principal: func(context.Context) (string, error) { return "all", nil },
			Options:   idempotency.Options{Logger: quiet, StoreTimeout: patient},
		})
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.ChainUnaryInterceptor(once))
		healthpb.RegisterHealthServer(server, s)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		dial := append(grpcretry.DialOptions(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
		conn, err := grpc.NewClient(l.Addr().String(), dial...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		clients = append(clients, healthpb.NewHealthClient(conn))
	}
	return func(ctx context.Context, instance int, key string) (string, error) {
		reply, err := clients[instance].Check(grpcretry.WithKey(ctx, key), &healthpb.HealthCheckRequest{})
		return fmt.Sprint("order ", reply.GetStatus().Number()), err
	}
}

var quiet = slog.New(slog.DiscardHandler)

// patient is for a store on a busy machine; all other options have their defaults.
const patient = 20 * time.Second

// A hundred calls with one key, at two instances: the work is done once, each of
// them gets its response, and none of the waits is held against the service. The
// client, the server and the policies have their defaults.
func TestOneKeyAtTwoInstances(t *testing.T) {
	postgres := pgtest.Database(t)
	open(t, postgres)
	for name, stores := range map[string][2]idempotency.Store{
		"memory":     same(&memstore.Idempotency{}),
		"SQLite":     same(open(t, file(t)).Idempotency()),
		"PostgreSQL": {pooled(t, postgres), pooled(t, postgres)},
	} {
		for _, wire := range []string{"HTTP", "gRPC"} {
			t.Run(name+" "+wire, func(t *testing.T) {
				t.Parallel()
				// A machine that is busy enough takes longer than an attempt may: what its
				// callers got is then looked at once more, and what was done is not.
				trouble := ""
				for try := range 6 {
					if trouble = oneKey(t, stores, wire, try); trouble == "" {
						return
					}
					t.Log(trouble)
				}
				t.Error(trouble)
			})
		}
	}
}

// oneKey makes a hundred calls while the work is short and while it is long, with keys
// that no other try has, and says what was wrong with what the callers got.
func oneKey(t *testing.T, stores [2]idempotency.Store, wire string, try int) string {
	s := &shop{stores: stores}
	p, dial := forbear.Policy{}, s.overHTTP
	if wire == "gRPC" {
		p.Kind, dial = forbear.GRPC, s.overGRPC
	}
	r, err := forbear.New("shop", p, forbear.WithoutLog())
	if err != nil {
		t.Fatal(err)
	}
	call := dial(t, r)
	for _, takes := range []time.Duration{200 * time.Millisecond, 2 * time.Second} {
		s.takes.Store(int64(takes))
		if trouble := s.hundred(t, fmt.Sprintf("%s-%v-%d", wire, takes, try), call); trouble != "" {
			return trouble
		}
	}
	if state := r.Breaker().State(); state != breaker.Closed {
		return fmt.Sprintf("the breaker is %v, want closed", state)
	}
	return ""
}

// pooled opens a database with a pool of the size that forbear serve has.
func pooled(t *testing.T, place string) idempotency.Store {
	pool, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(16)
	pool.SetMaxIdleConns(16)
	db := sqlstore.Postgres(pool)
	t.Cleanup(func() { _ = db.Close(); _ = pool.Close() })
	return db.Idempotency()
}

func same(s idempotency.Store) [2]idempotency.Store { return [2]idempotency.Store{s, s} }

// hundred makes a hundred calls at once and compares what they got. The work must
// never be done twice.
func (s *shop) hundred(t *testing.T, key string, call func(ctx context.Context, instance int, key string) (string, error)) string {
	t.Helper()
	before := s.effects.Load()
	var got [100]string
	var wg sync.WaitGroup
	for n := range got {
		wg.Go(func() {
			text, err := call(t.Context(), n%2, key)
			if err != nil {
				text = err.Error()
			}
			got[n] = text
		})
	}
	wg.Wait()
	n := s.effects.Load() - before
	if n > 1 {
		t.Errorf("the work was done %d times, want once", n)
	}
	others := map[string]int{}
	for _, text := range got {
		others[text]++
	}
	if n == 1 && len(others) == 1 && strings.HasSuffix(got[0], fmt.Sprint("order ", before+1)) {
		return ""
	}
	return fmt.Sprintf("done %d times, responses %v, want order %d a hundred times", n, others, before+1)
}
