// Package redistest gives tests a Redis, from the machine's binary. A fake would agree
// with our own idea of its scripts and expiries, which is what the tests are to check.
package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// shared is the one server of the test binary. It starts when the first test asks.
var shared struct {
	once    sync.Once
	open    bool // whether Main will end it
	server  *exec.Cmd
	address string
	err     error
	n       atomic.Int32
}

// databases is how many there are: one for each test, and for each of -count.
const databases = 4096

// Main runs tests that share a Redis, ends the server and returns their exit code:
// func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }. The server starts
// only when a test asks for it.
func Main(run func() int) int {
	shared.open = true
	code := run()
	if shared.server != nil {
		_ = shared.server.Process.Kill()
		_ = shared.server.Wait()
	}
	return code
}

// Database returns the URL of an empty database, which no other test gets.
func Database(t testing.TB) string {
	t.Helper()
	ringtest.NotQuick(t, "needs Redis")
	if !shared.open {
		t.Fatal("redistest.Main does not run the tests of this package: no one would end the server")
	}
	shared.once.Do(func() { shared.err = start() })
	if errors.Is(shared.err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
		t.Skipf("NOT RUN: %v", shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	n := shared.n.Add(1)
	if n >= databases {
		t.Fatalf("Redis has %d databases", databases)
	}
	return fmt.Sprintf("redis://%s/%d", shared.address, n)
}

// start starts the server on a free port, without a file.
func start() error {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("redis-server is not installed: sudo apt-get install redis-server: %w", err)
	}
	port, err := porttest.Pick()
	if err != nil {
		return err
	}
	shared.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	server := exec.Command(binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--save", "", "--databases", strconv.Itoa(databases))
	server.Dir = os.TempDir()
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when a panic skips Main's end
	if err := server.Start(); err != nil {
		return err
	}
	shared.server = server
	//forbear:ignore FB1001,FB1011,FB1012,FB1054 no call has failed: the server is starting
	for range 2400 {
		c, err := net.Dial("tcp", shared.address)
		if err == nil {
			return c.Close()
		}
		time.Sleep(25 * time.Millisecond)
	}
	return errors.New("redis-server does not respond")
}
