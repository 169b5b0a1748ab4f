package idemfixture

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
	"github.com/forbear-go/forbear/redisstore"
)

// redisServer is a Redis of a test's own, which writes all that it is told to
// disk before it answers.
type redisServer struct {
	address, dir string
	cmd          *exec.Cmd
	databases    int
}

// startRedis starts a server that ends with the test. Without Redis on the
// machine the test fails when CI=true, and is otherwise skipped with the line
// that installs it.
func startRedis(t *testing.T) *redisServer {
	t.Helper()
	ringtest.NotQuick(t, "starts a Redis")
	const install = "sudo apt-get install redis-server"
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("Redis is not installed: %s", install)
		}
		t.Skipf("NOT RUN: Redis is not installed: %s", install)
	}
	s := &redisServer{address: fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)), dir: t.TempDir()}
	s.boot(t)
	t.Cleanup(func() { s.halt(syscall.SIGKILL) })
	return s
}

func (s *redisServer) boot(t *testing.T) {
	t.Helper()
	_, port, _ := strings.Cut(s.address, ":")
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--databases", "1024")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if answer, err := call(s.address+"/0", "PING"); err == nil && answer == "+PONG" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("Redis does not answer")
}

func (s *redisServer) halt(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// call sends one command to a database, by its URL, and returns the first line of the
// answer.
func call(url string, args ...string) (string, error) {
	address, db, _ := strings.Cut(strings.TrimPrefix(url, "redis://"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	line := ""
	for _, command := range [][]string{{"SELECT", db}, args} {
		fmt.Fprintf(conn, "*%d\r\n", len(command))
		for _, a := range command {
			fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
		}
		if line, err = in.ReadString('\n'); err != nil {
			return "", err
		}
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "-") {
			return "", fmt.Errorf("%s: %s", command[0], line)
		}
	}
	return line, nil
}

// aging makes all records of a database older: Redis has a clock of its own.
const aging = `for _, key in ipairs(redis.call('KEYS', 'forbear:key:*')) do
	for _, f in ipairs({'lease', 'created', 'completed', 'expires'}) do
		local v = redis.call('HGET', key, f)
		if v then redis.call('HSET', key, f, string.format('%.0f', tonumber(v) - ARGV[1])) end
	end
	local ttl = redis.call('PTTL', key)
	if ttl > 0 then redis.call('PEXPIRE', key, math.max(1, math.floor(ttl - ARGV[1] / 1000))) end
end
return redis.status_reply('OK')`

func age(t *testing.T, url string, by time.Duration) {
	t.Helper()
	if _, err := call(url, "EVAL", aging, "0", strconv.FormatInt(by.Microseconds(), 10)); err != nil {
		t.Fatal(err)
	}
}

// database returns the URL of one that is empty.
func (s *redisServer) database() string {
	s.databases++
	return fmt.Sprintf("redis://%s/%d", s.address, s.databases)
}

// openRedis opens the records of a database.
func openRedis(t *testing.T, url string) idempotency.Store {
	t.Helper()
	store, err := redisstore.OpenIdempotency(context.Background(), url, redisstore.IdempotencyOptions{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}
