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
	dir     string
	pg      *postgres.Server
	redis   server // that keeps nothing
	synced  server // that syncs each write
	closers []func() error
}

func startServers(ctx context.Context, dir string) (s *servers, err error) {
	s = &servers{dir: dir}
	// Fiber's users keep nothing on disk, and their records are gone with the
	// server; who wants to keep them has each write synced.
	if s.redis, err = startRedis(ctx, dir, "--appendonly", "no"); err == nil {
		s.synced, err = startRedis(ctx, dir, "--appendonly", "yes", "--appendfsync", "always")
	}
	if err == nil {
		s.pg, err = postgres.Start(ctx, dir)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// server is one Redis.
type server struct {
	addr string
	cmd  *exec.Cmd
}

func startRedis(ctx context.Context, dir string, settings ...string) (s server, err error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return s, errors.New("redis-server is not installed: sudo apt-get install redis-server")
	}
	l, err := loopback()
	if err != nil {
		return s, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	s.addr = l.Addr().String()
	if err := l.Close(); err != nil {
		return s, err
	}
	cmd := exec.Command(binary, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--loglevel", "warning"}, settings...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	s.cmd = cmd
	for range 200 {
		var c *client
		if c, err = s.client(); err == nil {
			c.close()
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	return s, fmt.Errorf("redis-server does not respond: %w", err)
}

func (s *servers) stop() {
	for _, c := range s.closers {
		_ = c()
	}
	for _, redis := range []server{s.redis, s.synced} {
		if redis.cmd != nil {
			_ = redis.cmd.Process.Kill()
			_ = redis.cmd.Wait()
		}
	}
	if s.pg != nil {
		s.pg.Stop()
	}
}
