package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/forbear-go/forbear/internal/testkit/porttest"
	"github.com/forbear-go/forbear/internal/testkit/ringtest"
)

// TestMain silences the client's own log of connections that fail: here they
// are meant to.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	os.Exit(m.Run())
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// server is a redis-server of the test's own, on a free port of the loopback
// interface, that keeps nothing when it stops.
type server struct {
	address string
	dir     string
	args    []string // beyond the usual ones
	cmd     *exec.Cmd
}

// startRedis starts a server that ends with the test.
func startRedis(t *testing.T, args ...string) *server {
	t.Helper()
	ringtest.NotQuick(t, "it starts Redis")
	s := &server{args: args}
	t.Cleanup(func() {
		s.stop()
		_ = os.RemoveAll(s.dir)
	})
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) url() string { return "redis://" + s.address + "/0" }

// launch starts the server: the first time in a new folder, on a free port;
// later in the same place, with nothing in it.
func (s *server) launch() error {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("no redis-server to test with: apt-get install redis-server")
	}
	if s.address == "" {
		if s.dir, err = os.MkdirTemp("", "redisstore"); err != nil {
			return err
		}
		s.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(porttest.Free(&testing.T{}))) // examples have none
	}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	log := filepath.Join(s.dir, "redis.log")
	args := []string{"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile", log}
	s.cmd = exec.Command(binary, append(args, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: s.address})
	defer client.Close()
	for range 2400 {
		if client.Ping(context.Background()).Err() == nil {
			return nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	text, _ := os.ReadFile(log)
	return fmt.Errorf("redis-server did not come up:\n%s", text)
}

// stop kills the server: it cannot save anything.
func (s *server) stop() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}
