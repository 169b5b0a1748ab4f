package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/bench/internal/postgres"
)

// servers are the processes that this program starts and ends.
type servers struct {
	dir       string
	pg        *postgres.Server
	redis     *exec.Cmd
	redisAddr string
	closers   []func() error
}

func startServers(ctx context.Context, dir string) (s *servers, err error) {
	s = &servers{dir: dir}
	if err = s.startRedis(ctx); err == nil {
		s.pg, err = postgres.Start(ctx, dir)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// startRedis starts a server that writes nothing to disk: so do Fiber's users,
// whose records are gone with it.
func (s *servers) startRedis(ctx context.Context) error {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return errors.New("redis-server is not installed: sudo apt-get install redis-server")
	}
	l, err := loopback()
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	s.redisAddr = l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	s.redis = exec.Command(binary, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--loglevel", "warning")
	s.redis.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.redis.Start(); err != nil {
		s.redis = nil
		return err
	}
	for range 200 {
		var c *client
		if c, err = s.client(); err == nil {
			c.close()
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	return fmt.Errorf("redis-server does not respond: %w", err)
}

func (s *servers) stop() {
	for _, c := range s.closers {
		_ = c()
	}
	if s.redis != nil {
		_ = s.redis.Process.Kill()
		_ = s.redis.Wait()
	}
	if s.pg != nil {
		s.pg.Stop()
	}
}
