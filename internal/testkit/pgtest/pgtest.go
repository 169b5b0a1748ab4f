// Package pgtest starts a PostgreSQL server of the tests' own, from the
// machine's binaries, on a free port and in a temporary folder. It imports no
// driver, which is why the tests of every module can share it.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/internal/wait"
)

// Server is a running PostgreSQL. The database folder and the socket are in dir,
// which goes when the server ends. Databases may be made from several goroutines.
type Server struct {
	dir, bin string
	settings []string
	env      []string // beside that of the test
	port     int
	cred     *syscall.Credential
	cmd      *exec.Cmd
	n        atomic.Int32
}

// Install is the line that makes the tests run where PostgreSQL is missing. It is
// part of each message about a missing PostgreSQL, so that no one has to search.
const Install = "sudo apt-get install postgresql"

// Start starts a server that ends with the test: for tests that halt or freeze it,
// need settings of their own, such as "max_connections=20", or look at all of it.
// Others take a [Database] of the server that the test binary shares. Settings count
// before those that all servers have.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	ringtest.NotQuick(t, "starts a PostgreSQL")
	s, err := start(settings)
	if errors.Is(err, errMissing) {
		missing(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// errMissing is the error where no PostgreSQL is installed.
var errMissing = errors.New("PostgreSQL is not installed: " + Install)

// missing fails the test when CI=true, and skips it otherwise.
func missing(t testing.TB) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(errMissing)
	}
	t.Skipf("NOT RUN: %v", errMissing)
}

// start makes a database folder and starts a server on it. After an error nothing is
// left.
func start(settings []string) (s *Server, err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if path, err := exec.LookPath("initdb"); err == nil {
		// A link to it has none of its siblings beside it.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, filepath.Dir(real))
		}
	}
	if len(found) == 0 {
		return nil, errMissing
	}
	slices.Sort(found)
	s = &Server{bin: found[len(found)-1], settings: settings}
	if s.dir, err = os.MkdirTemp(memory(), fmt.Sprintf("forbear-pg-%d-", os.Getpid())); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	if os.Geteuid() == 0 { // initdb refuses root
		if err := s.unprivileged(); err != nil {
			return nil, err
		}
	}
	// What initdb writes need not be on disk: half of its time is that wait.
	if out, err := s.command("initdb", "--no-sync", "-D", filepath.Join(s.dir, "data"), "-U", "forbear", "-A", "trust", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if s.port, err = porttest.Pick(); err != nil {
		return nil, err
	}
	return s, s.boot()
}

// memory returns a folder that is in memory, or "" where none is large enough: a
// database is three hundred files, which take five times as long on a disk. What tests
// that were killed have left there is removed.
func memory() string {
	const shm = "/dev/shm"
	var fs syscall.Statfs_t
	if syscall.Statfs(shm, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < 2<<30 {
		return ""
	}
	left, _ := filepath.Glob(shm + "/forbear-pg-*")
	for _, dir := range left {
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(dir), "forbear-pg-%d-", &pid); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
	return shm
}

// end stops the server and removes its folder.
func (s *Server) end() {
	s.Halt(syscall.SIGQUIT)
	_ = os.RemoveAll(s.dir)
}

// unprivileged chooses a system user for all of the server's commands and gives it
// the folder. A container's tests often run as root.
func (s *Server) unprivileged() error {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(s.dir, uid, gid)
	}
	return errors.New("no unprivileged user to run PostgreSQL as")
}

// command builds a call of one of PostgreSQL's programs. Pdeathsig ends the server
// with the test binary, even when a panic or a timeout skips the cleanups.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// Boot starts the server and waits until it takes statements. After Halt it starts
// the same data folder again, which is how tests cross a crash.
func (s *Server) Boot(t testing.TB) {
	t.Helper()
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) boot() error {
	// Without fsync nothing waits for the disk. What a killed server has written is with
	// the kernel all the same: only a power cut would lose it. The log has no more than a
	// crash needs, and stays small: a new database is not written to it.
	s.cmd = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-k", s.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200", "-c", "shared_buffers=64MB",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "max_wal_size=128MB")
	for _, setting := range s.settings { // the last one counts
		s.cmd.Args = append(s.cmd.Args, "-c", setting)
	}
	s.cmd.Env = append(os.Environ(), s.env...)
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	// As long as it takes to boot, and no longer than a broken one is worth.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for wait.Sleep(ctx, wait.Jitter(100*time.Millisecond)) {
		if err = s.exec("SELECT 1"); err == nil {
			return nil
		}
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("PostgreSQL does not respond: %w\n%s", err, text)
}

// Halt stops the server: SIGINT ends all connections, SIGQUIT is a crash. Halting a
// server that is stopped does nothing.
func (s *Server) Halt(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// URL returns the address of a database. The server trusts every local user and
// speaks no TLS: it is for tests alone.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://forbear@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Exec runs a statement as the superuser.
func (s *Server) Exec(t testing.TB, statement string) {
	t.Helper()
	if err := s.exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Database makes an empty database and returns its URL. Names are never used twice,
// so tests may run in parallel.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.copy(t, "template1")
}

// copy makes a database like another, to which no one may be connected.
func (s *Server) copy(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("t%d", s.n.Add(1))
	s.Exec(t, "CREATE DATABASE "+name+" TEMPLATE "+template)
	if s == shared.server { // other servers end with the test
		t.Cleanup(func() { _ = s.exec("DROP DATABASE " + name + " WITH (FORCE)") })
	}
	return s.URL(name)
}

// Dump returns a database, by its URL, as statements that make it again.
func (s *Server) Dump(t testing.TB, url string) string {
	t.Helper()
	out, err := s.command("pg_dump", "--no-owner", "--no-privileges", url).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}

// Load runs the statements of a dump in an empty database, by its URL. Those that set
// what only some versions of the server know may fail.
func (s *Server) Load(t testing.TB, url, dump string) {
	t.Helper()
	cmd := s.command("psql", "-X", "-q", url)
	cmd.Stdin = strings.NewReader(dump)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}
