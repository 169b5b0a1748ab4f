package durable

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/deadletter/queue"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/race"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/webhook"
)

// The fault tests run the service as a process of its own, this test binary
// again, so that it can be killed and frozen.
const (
	childDatabase = "FORBEAR_TEST_DATABASE"
	childListen   = "FORBEAR_TEST_LISTEN"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDatabase) != "" {
		child()
		return
	}
	_ = os.Setenv("GORACE", "halt_on_error=1") // a child with a race ends, and is missed
	os.Exit(pgtest.Main(m, migrate))
}

// migrate makes the tables in the database that each test gets a copy of.
func migrate(url string) error {
	s, err := New(context.Background(), Options{Database: url, Logger: quiet})
	if err != nil {
		return err
	}
	return s.Close()
}

func child() {
	ctx := context.Background()
	s, err := New(ctx, Options{Database: os.Getenv(childDatabase), Allow: thisMachine, Logger: quiet})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := net.Listen("tcp", os.Getenv(childListen))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { _ = http.Serve(l, s.Handler) }()
	_ = s.Run(ctx)
}

// process is a running child.
type process struct {
	cmd  *exec.Cmd
	addr string
}

func spawn(t *testing.T, database, addr string) *process {
	t.Helper()
	if addr == "" {
		addr = fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDatabase+"="+database, childListen+"="+addr)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, addr}
	t.Cleanup(p.kill)
	return p
}

// ready waits until the process answers.
func (p *process) ready(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get("http://" + p.addr + "/v1/alerts/health")
		if err == nil {
			_ = resp.Body.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

// sink counts what arrives.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]int
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{seen: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.mu.Lock()
		s.seen[r.Header.Get("Webhook-Id")]++
		s.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) counts(ids []string) (missing, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		switch s.seen[id] {
		case 0:
			missing++
		case 1:
		default:
			twice++
		}
	}
	return missing, twice
}

// runs counts the producers' runs, so that no id comes twice.
var runs atomic.Int64

// producers post messages until stop is closed, and keep the ids of those that
// were acknowledged.
type producers struct {
	mu    sync.Mutex
	acked []string
	wg    sync.WaitGroup
	stop  chan struct{}
}

func produce(n int, addrs ...string) *producers {
	run := runs.Add(1)
	p := &producers{stop: make(chan struct{})}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	for w := range n {
		p.wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-p.stop:
					return
				default:
				}
				id := fmt.Sprintf("r%d-p%d-%d", run, w, i)
				resp, err := client.Post("http://"+addrs[i%len(addrs)]+"/v1/messages", "application/json", bytes.NewReader(fmt.Appendf(nil, `{"id":%q,"endpoint":"a","payload":{"n":1}}`, id)))
				if err != nil {
					time.Sleep(5 * time.Millisecond)
					continue // not acknowledged: nobody promised anything
				}
				_ = resp.Body.Close()
				if resp.StatusCode/100 == 2 {
					p.mu.Lock()
					p.acked = append(p.acked, id)
					p.mu.Unlock()
				} else {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	return p
}

// count returns how many were acknowledged.
func (p *producers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

func (p *producers) end() []string {
	close(p.stop)
	p.wg.Wait()
	return p.acked
}

// prepare adds the endpoint "a" to a database that no process has open.
func prepare(t *testing.T, database, url string) {
	t.Helper()
	s, err := New(t.Context(), Options{Database: database, Allow: thisMachine, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	e := webhook.Endpoint{ID: "a", URL: url, Concurrency: 50}
	e.Policy.PerAttempt = time.Second
	put(t, s, e)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// arrive waits until all ids have arrived. Those that were under way when their process
// ended wait for the end of their leases first, and for the schedule's steps.
func (s *sink) arrive(t *testing.T, ids []string) (twice int) {
	t.Helper()
	var missing int
	for end := time.Now().Add(arriveFor); ; time.Sleep(100 * time.Millisecond) {
		if missing, twice = s.counts(ids); missing == 0 {
			return twice
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d acknowledged messages did not arrive", missing, len(ids))
		}
	}
}

// arriveFor is much longer than it takes: a busy machine is slow.
const arriveFor = 4 * time.Minute

// databases runs a test on both.
func databases(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "forbear.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, pgtest.Database(t)) })
}

func TestKillLoop(t *testing.T) {
	t.Parallel()
	killLoop(t, 3*time.Second)
}

func TestSoakKillLoop(t *testing.T) {
	ringtest.OnlyNightly(t, "the long form")
	killLoop(t, time.Minute)
}

// Ten producers write while the process is killed again and again: everything
// that was acknowledged arrives.
func killLoop(t *testing.T, length time.Duration) {
	databases(t, func(t *testing.T, database string) {
		s := newSink(t)
		prepare(t, database, s.URL)
		p := spawn(t, database, "")
		work := produce(10, p.addr)
		const least = 100 // acknowledged, so that something is shown
		kills, before, grace := 0, 0, time.Duration(0)
		for began := time.Now(); time.Since(began) < length || work.count() < least && time.Since(began) < length+arriveFor; {
			time.Sleep(time.Duration(700+100*(kills%7))*time.Millisecond + grace)
			p.kill()
			if n := work.count(); n > before {
				before = n
			} else { // a busy machine takes longer to start it
				grace += time.Second
			}
			kills++
			p = spawn(t, database, p.addr)
		}
		acked := work.end()
		twice := s.arrive(t, acked)
		t.Logf("%d kills, %d messages acknowledged, 0 lost, %d delivered twice", kills, len(acked), twice)
		if len(acked) < least {
			t.Errorf("only %d messages were acknowledged: nothing was shown", len(acked))
		}
	})
}

// PostgreSQL is stopped, its connections cut, and started again, under load.
func TestPostgreSQLRestarts(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	database := server.Database(t)
	s := newSink(t)
	svc, stop := start(t, Options{Database: database})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL, Concurrency: 20})
	api := httptest.NewServer(svc.Handler)
	defer api.Close()
	work := produce(10, api.Listener.Addr().String())
	time.Sleep(time.Second)
	server.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 't1'")
	time.Sleep(500 * time.Millisecond)
	server.Halt(syscall.SIGQUIT) // a crash of the server
	time.Sleep(300 * time.Millisecond)
	server.Boot(t)
	time.Sleep(time.Second)
	acked := work.end()
	twice := s.arrive(t, acked)
	t.Logf("%d messages acknowledged around a cut and a crash of the server, 0 lost, %d delivered twice", len(acked), twice)
	stop()
}

// Two processes on one PostgreSQL share the work; one is frozen beyond its
// leases and thawed: nothing is lost, and what it held is not written twice.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	s := newSink(t)
	prepare(t, database, s.URL)
	a, b := spawn(t, database, ""), spawn(t, database, "")
	work := produce(10, a.addr, b.addr)
	time.Sleep(2 * time.Second)
	_ = a.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(500 * time.Millisecond)
	close(work.stop)
	time.Sleep(24 * time.Second) // leases are 20 s
	_ = a.cmd.Process.Signal(syscall.SIGCONT)
	work.wg.Wait()
	twice := s.arrive(t, work.acked)
	t.Logf("%d messages acknowledged, 0 lost, %d delivered twice", len(work.acked), twice)
	svc, err := New(t.Context(), Options{Database: database, Allow: thisMachine, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = svc.Close() }()
	if n, err := svc.DB.DeadLetters().Count(t.Context(), queue.Filter{}); n != 0 || err != nil {
		t.Errorf("%d dead letters, %v", n, err)
	}
}

// A full disk refuses messages and loses none that was accepted; when there is
// room again, work goes on.
func TestDiskFull(t *testing.T) {
	database := filepath.Join(t.TempDir(), "forbear.db")
	s := newSink(t)
	svc, stop := start(t, Options{Database: database})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	if err := svc.Dispatcher.Disable(t.Context(), "a", "test"); err != nil { // so that nothing is freed
		t.Fatal(err)
	}
	stop()
	// The bound is a connection's: it comes with the name.
	svc, stop = start(t, Options{Database: database + "?_pragma=max_page_count(200)"})
	var acked []string
	refused := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 60 {
				id := fmt.Sprintf("m%d-%d", w, i)
				_, err := svc.Dispatcher.Accept(t.Context(), webhook.Message{ID: id, Endpoints: []string{"a"}, Body: bytes.Repeat([]byte("x"), 4000)})
				mu.Lock()
				if err == nil {
					acked = append(acked, id)
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	stop()
	if refused == 0 || len(acked) == 0 {
		t.Fatalf("%d accepted and %d refused: the disk was not full", len(acked), refused)
	}
	svc, stop = start(t, Options{Database: database})
	if res, err := svc.Dispatcher.TestAndEnable(t.Context(), "a", webhook.ByOperator); err != nil || !res.Enabled {
		t.Fatalf("got %+v, %v", res, err)
	}
	s.arrive(t, acked)
	t.Logf("%d accepted before and while the disk was full, %d refused, 0 lost", len(acked), refused)
	stop()
}

// The wall clock jumps forward and back by an hour: nothing is lost, and what was
// accepted while the clock was ahead does not wait until it is there again.
func TestClockJumps(t *testing.T) {
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	failing := atomic.Bool{}
	s := newSink(t)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	})
	svc, stop := start(t, Options{Now: now})
	put(t, svc, webhook.Endpoint{ID: "a", URL: s.URL})
	var ids []string
	add := func() {
		for range 20 {
			ids = append(ids, send(t, svc, webhook.Message{Endpoints: []string{"a"}}))
		}
	}
	for _, jump := range []time.Duration{time.Hour, 0, -time.Hour, 0, time.Hour, 0} {
		add()
		offset.Store(int64(jump))
		add()
		time.Sleep(300 * time.Millisecond)
	}
	s.arrive(t, ids)
	stop()
}

// 100,000 retries are due when an outage ends: they drain at the endpoint's
// pace, and a healthy endpoint beside it does not feel them.
func TestDueRetriesAfterAnOutage(t *testing.T) {
	race.TooSlow(t, "TestAttemptCountSurvivesRestart has such retries, too")
	backlog(t, 3000)
}

func TestSoakDueRetriesAfterAnOutage(t *testing.T) {
	ringtest.OnlyNightly(t, "the long form")
	backlog(t, 100_000)
}

func backlog(t *testing.T, n int) {
	database := filepath.Join(t.TempDir(), "forbear.db")
	s := newSink(t)
	var inFlight, most atomic.Int32
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		inner.ServeHTTP(w, r)
	})
	setup, err := New(t.Context(), Options{Database: database, Allow: thisMachine, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	put(t, setup, webhook.Endpoint{ID: "a", URL: s.URL, Concurrency: 20})
	ids := make([]string, n)
	for i := 0; i < n; i += 500 {
		var batch []webhook.Message
		for k := i; k < min(i+500, n); k++ {
			ids[k] = fmt.Sprint("m", k)
			batch = append(batch, webhook.Message{ID: ids[k], Endpoints: []string{"a"}, Body: []byte(`{}`)})
		}
		if _, err := setup.Dispatcher.Accept(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	_ = setup.Close()
	db, err := sql.Open("sqlite", "file:"+database)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := json.Marshal(edge.Progress{
		Attempts: 1, State: forbear.State{Attempt: 1}, Postponed: 1,
		Pending: &edge.Pending{Class: forbear.ClassTransient, Type: "http_503", At: time.Now().Add(-time.Hour)},
	})
	if _, err := db.Exec(`UPDATE forbear_deliveries SET progress = ?`, string(state)); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	began := time.Now()
	_, stop := start(t, Options{Database: database})
	s.arrive(t, ids)
	took := time.Since(began)
	t.Logf("%d due retries drained in %v (%.0f/s), at most %d in flight", n, took.Round(time.Millisecond), float64(n)/took.Seconds(), most.Load())
	if m := most.Load(); m > 20 {
		t.Errorf("%d attempts in flight, want at most the endpoint's 20", m)
	}
	stop()
}
