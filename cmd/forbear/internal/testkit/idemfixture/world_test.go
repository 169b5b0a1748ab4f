//forbear:plain it drives processes, which share nothing with the test
package idemfixture

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/cmd/forbear/internal/database"
	"github.com/forbear-go/forbear/cmd/forbear/internal/testkit/redistest"
	"github.com/forbear-go/forbear/internal/testkit/pgtest"
)

// childEnv turns the test binary into a fixture.
const childEnv = "FORBEAR_TEST_FIXTURE"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		var c Config
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			panic(err)
		}
		if err := Serve(c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if place := os.Getenv(exactEnv); place != "" {
		if err := serveExact(place); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(redistest.Main(func() int { return pgtest.Main(m, migrate) }))
}

// migrate makes the tables in the database that each test gets a copy of.
func migrate(url string) error {
	db, err := database.Open(context.Background(), url)
	if err != nil {
		return err
	}
	_, err = db.Migrate(context.Background())
	return errors.Join(err, db.Close())
}

// world is the fixture processes over one store, and the ledger.
type world struct {
	t      *testing.T
	config Config
	servers
	ledger *ledger

	mu        sync.Mutex
	instances map[string]*instance
}

// servers are those of a test that halts them; nil where it takes a database of the
// one that all share.
type servers struct {
	pg    *pgtest.Server
	redis *redisServer
}

func ownServers(t *testing.T, store string) servers {
	if store == "postgres" {
		return servers{pg: pgtest.Start(t)}
	}
	return servers{redis: startRedis(t)}
}

type instance struct {
	url string
	cmd *exec.Cmd
	err *bytes.Buffer

	frozen bool
	skew   time.Duration
}

func newWorld(t *testing.T, store string, s servers, change func(*Config)) *world {
	w := &world{t: t, servers: s, ledger: newLedger(t), instances: map[string]*instance{}}
	w.config = Config{Store: store, Ledger: w.ledger.url}
	switch store {
	case "sqlite":
		w.config.DB = filepath.Join(t.TempDir(), "forbear.db")
	case "postgres":
		if s.pg != nil {
			w.config.DB = s.pg.Database(t)
		} else {
			w.config.DB = pgtest.Database(t)
		}
	case "redis":
		if s.redis != nil {
			w.config.DB = s.redis.database()
		} else {
			w.config.DB = redistest.Database(t)
		}
	}
	if change != nil {
		change(&w.config)
	}
	t.Cleanup(func() {
		for name := range w.instances {
			w.signal(name, syscall.SIGKILL)
		}
	})
	return w
}

// name is the process that hosts an instance: memory has only one.
func (w *world) name(instance string) string {
	if w.config.Store == "memory" || instance == "" {
		return "A"
	}
	return instance
}

// at returns the address of an instance, which is started when it is not there.
func (w *world) at(name string) string {
	name = w.name(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.instances[name]; i != nil {
		return i.url
	}
	text, err := json.Marshal(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	i := &instance{err: &bytes.Buffer{}}
	i.cmd = exec.Command(os.Args[0])
	i.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	i.cmd.Stderr = i.err
	if _, err := i.cmd.StdinPipe(); err != nil {
		w.t.Fatal(err)
	}
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = i.cmd.Wait()
		w.t.Fatalf("the fixture did not start: %v\n%s", err, i.err)
	}
	i.url = strings.TrimSpace(line)
	w.instances[name] = i
	return i.url
}

// signal sends a signal to an instance; SIGKILL waits for its end.
func (w *world) signal(name string, s syscall.Signal) {
	name = w.name(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[name]
	if i == nil {
		return
	}
	_ = i.cmd.Process.Signal(s)
	switch s {
	case syscall.SIGKILL:
		_ = i.cmd.Wait()
		delete(w.instances, name)
	case syscall.SIGSTOP:
		i.frozen = true
	case syscall.SIGCONT:
		i.frozen = false
		w.setClock(i)
	}
}

func (w *world) post(url string) {
	w.t.Helper()
	resp, err := http.Post(url, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: %d %s", url, resp.StatusCode, text)
	}
}

// advance moves the store's clock: that of a server cannot be moved, so
// that all that is stored there becomes older.
func (w *world) advance(by time.Duration) {
	w.t.Helper()
	switch w.config.Store {
	case "redis":
		age(w.t, w.config.DB, by)
		return
	case "memory", "sqlite":
		w.config.Offset += by
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, i := range w.instances {
			w.setClock(i)
		}
		return
	}
	w.exec(`UPDATE forbear_idempotency SET lease = lease - $1, created = created - $1, completed = completed - $1, expires = expires - $1`, by.Microseconds())
}

// skew turns the clock of one instance by d, and of no other.
func (w *world) skew(name string, d time.Duration) {
	w.t.Helper()
	w.at(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[w.name(name)]
	i.skew += d
	w.setClock(i)
}

// setClock tells an instance what time it is; one that is frozen learns it when
// it wakes.
func (w *world) setClock(i *instance) {
	if !i.frozen {
		w.post(i.url + "/_fixture/clock?offset=" + w.config.Offset.String() + "&skew=" + i.skew.String())
	}
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("pgx", w.config.DB)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(statement, args...); err != nil {
		w.t.Fatal(err)
	}
}

// store does something to the server that is the store.
func (w *world) store(action string) {
	w.t.Helper()
	var halt func(sig syscall.Signal)
	var boot func()
	switch w.config.Store {
	case "postgres":
		halt, boot = w.pg.Halt, func() { w.pg.Boot(w.t) }
	case "redis":
		halt, boot = w.redis.halt, func() { w.redis.boot(w.t) }
	default:
		w.t.Fatalf("store %s: %s has no server", action, w.config.Store)
	}
	switch action {
	case "down", "stop":
		halt(syscall.SIGINT)
	case "crash", "kill":
		halt(syscall.SIGQUIT) // an end at once for both: recovery at the next start
	case "up", "start":
		boot()
	case "restart":
		halt(syscall.SIGINT)
		boot()
	default:
		w.t.Fatalf("store action %q is not understood", action)
	}
}

// effects counts what was done, by principal.
func (w *world) effects() map[string]int {
	w.t.Helper()
	c := w.ledger.count()
	driver, name := "pgx", w.config.DB
	switch w.config.Store {
	case "memory", "redis":
		return c
	case "sqlite":
		driver, name = "sqlite", "file:"+name
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(`SELECT principal, count(*) FROM fixture_effects GROUP BY principal`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var p string
		var n int
		if err := rows.Scan(&p, &n); err != nil {
			w.t.Fatal(err)
		}
		c[p] += n
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// rss is the resident memory of an instance, in MiB.
func (w *world) rss(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.instances[w.name(name)]
	if i == nil {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}
