//forbear:plain it drives processes, which share nothing with the test
package deliverycheck

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/durable"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// The processes are this test binary again. They log when childLog is set.
const (
	childDatabase = "FORBEAR_TEST_DATABASE"
	childListen   = "FORBEAR_TEST_LISTEN"
	childLog      = "FORBEAR_TEST_LOG"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDatabase) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(pgtest.Main(m, migrate))
}

// migrate makes the tables in the database that each test gets a copy of.
func migrate(url string) error {
	s, err := durable.New(context.Background(), durable.Options{Database: url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return s.Close()
}

func child() error {
	go func() { // ends with the test, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	ctx := context.Background()
	logger := slog.New(slog.DiscardHandler)
	if os.Getenv(childLog) != "" {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := durable.New(ctx, durable.Options{Database: os.Getenv(childDatabase), Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: logger})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", os.Getenv(childListen))
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, s.Handler) }()
	return s.Run(ctx)
}

// bench is what every test here works with: a database, a fleet over it, and a
// receiver.
type bench struct {
	seed      uint64
	clock     *Clock
	endpoints []Endpoint
	receiver  *Receiver
	fleet     *Fleet
	db        *sql.DB
	postgres  bool
}

// newBench starts one process, which makes the tables, and registers the
// endpoints there.
func newBench(t *testing.T, database string, endpoints []Endpoint, failing float64) *bench {
	t.Helper()
	return newBenchOf(t, os.Args[0], database, endpoints, failing)
}

// newBenchOf is newBench with processes of another build of this test binary.
func newBenchOf(t *testing.T, program, database string, endpoints []Endpoint, failing float64) *bench {
	t.Helper()
	b := &bench{seed: seed(t), clock: &Clock{}, endpoints: endpoints, postgres: strings.HasPrefix(database, "postgres")}
	driver, name := "sqlite", "file:"+database+"?_pragma=busy_timeout(30000)&_pragma=synchronous(FULL)&_txlock=immediate"
	if b.postgres {
		driver, name = "pgx", database
	}
	var err error
	if b.receiver, err = NewReceiver(b.clock, endpoints, failing, b.seed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.receiver.Close)
	b.fleet = &Fleet{Clock: b.clock, Random: rand.New(rand.NewPCG(b.seed, 2)), Command: func(addr string) *exec.Cmd {
		cmd := exec.Command(program, "-test.run=^$")
		cmd.Env = append(os.Environ(), childDatabase+"="+database, childListen+"="+addr)
		cmd.Stderr = os.Stderr
		return cmd
	}}
	t.Cleanup(b.fleet.Stop)
	if err := b.fleet.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.fleet.Register(t.Context(), endpoints, b.receiver.URL); err != nil {
		t.Fatal(err)
	}
	if b.db, err = sql.Open(driver, name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.db.Close() })
	b.db.SetMaxOpenConns(8)
	if !b.postgres {
		b.db.SetMaxOpenConns(2) // more would only wait for each other
	}
	return b
}

// seed returns the seed of the run, and logs it.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := rand.Uint64()
	if text := os.Getenv("FORBEAR_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FORBEAR_SEED: %v", err)
		}
	}
	t.Logf("FORBEAR_SEED=%d", s)
	return s
}

// verdict waits for the end, gathers the evidence, and fails the test by what is
// wrong.
func (b *bench) verdict(t *testing.T, ledger *Ledger, lastKill time.Time) {
	t.Helper()
	ev := &Evidence{Endpoints: b.endpoints, Offers: ledger.Offers()}
	if err := AwaitQuiet(t.Context(), b.db, b.receiver, Promised(ev.Offers), lastKill); err != nil {
		t.Fatal(err)
	}
	var err error
	if ev.Letters, err = ReadLetters(t.Context(), b.fleet.Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	if ev.Left, err = Left(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}
	b.fleet.Stop()
	ev.Deadlocks, ev.Kills, ev.Arrivals = b.deadlocks(t), b.fleet.Kills(), b.receiver.Arrivals()
	r := Judge(ev)
	t.Logf("FORBEAR_SEED=%d\n%s", b.seed, r.Summary())
	if len(r.Violations) > 0 {
		t.Errorf("%d violations\n%s", len(r.Violations), r.First(20))
	}
}

// deadlocks returns PostgreSQL's count, once the processes' connections are gone
// and have reported theirs.
func (b *bench) deadlocks(t *testing.T) (n int) {
	t.Helper()
	if !b.postgres {
		return 0
	}
	b.db.SetMaxIdleConns(0)
	for range 100 {
		if err := b.db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		time.Sleep(look)
	}
	if err := b.db.QueryRowContext(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
