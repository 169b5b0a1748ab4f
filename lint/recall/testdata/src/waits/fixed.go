// Package waits holds retries that wait a fixed time, or a growing one without
// jitter.
package waits

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/exec"
	"time"
)

// case plain counted loop: FB1001

func Connect(dsn string) (db *sql.DB, err error) {
	for i := 0; i < 10; i++ {
		db, err = sql.Open("postgres", dsn)
		if err == nil {
			if err = db.Ping(); err == nil {
				return db, nil
			}
		}
		log.Printf("waiting for the database: %v", err)
		time.Sleep(3 * time.Second)
	}
	return nil, err
}

// case select with a timer: FB1001

func Dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		}
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		timer.Reset(time.Second)
	}
}

// case ticker as the pause between attempts: FB1001

func Handshake(ctx context.Context, c *http.Client, req *http.Request) (*http.Response, error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := c.Do(req)
		if err == nil {
			return resp, nil
		}
		log.Println("handshake failed, retrying:", err)
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// case field of a config: FB1001

type config struct {
	Retries  int
	Interval time.Duration
}

type store struct {
	cfg config
	net net.Conn
}

func (s *store) flush(b []byte) (err error) {
	for n := s.cfg.Retries; n >= 0; n-- {
		if _, err = s.net.Write(b); err == nil {
			return
		}
		if n > 0 {
			<-time.After(s.cfg.Interval)
		}
	}
	return
}

// case helper with a wait as parameter: FB1001

func Retry(attempts int, sleep time.Duration, f func() error) error {
	if err := f(); err != nil {
		if attempts--; attempts > 0 {
			time.Sleep(sleep)
			return Retry(attempts, sleep, f)
		}
		return err
	}
	return nil
}

// case goto: FB1001

func Pull(image string) error {
	left := 5
pull:
	out, err := exec.Command("docker", "pull", image).CombinedOutput()
	if err != nil {
		if left--; left > 0 {
			log.Printf("pull failed: %s", out)
			time.Sleep(10 * time.Second)
			goto pull
		}
		return fmt.Errorf("pull %s: %w", image, err)
	}
	return nil
}

// case subscriber that connects again: FB1001

type stream interface {
	Subscribe(topic string) (<-chan []byte, error)
}

func Listen(s stream, topic string, out chan<- []byte, done <-chan struct{}) {
	for {
		msgs, err := s.Subscribe(topic)
		if err != nil {
			log.Printf("subscribe: %v; again in 5s", err)
			select {
			case <-time.After(5 * time.Second):
				continue
			case <-done:
				return
			}
		}
		for m := range msgs {
			out <- m
		}
	}
}

// case bool result: FB1001

func (s *store) try(b []byte) bool {
	_, err := s.net.Write(b)
	return err == nil
}

func (s *store) Push(b []byte) bool {
	for range 3 {
		if s.try(b) {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// case own sleeper: FB1001

func sleepCtx(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const retryDelay = 2 * time.Second

func Resolve(ctx context.Context, host string) (addrs []string, err error) {
	for {
		addrs, err = net.DefaultResolver.LookupHost(ctx, host)
		if err == nil {
			return addrs, nil
		}
		if sleepCtx(ctx, retryDelay) != nil {
			return nil, err
		}
	}
}

// case condition in the loop header: FB1001

func Fetch(u string) (*http.Response, error) {
	resp, err := http.Get(u)
	for tries := 0; err != nil && tries < 4; tries++ {
		time.Sleep(250 * time.Millisecond)
		resp, err = http.Get(u)
	}
	return resp, err
}

// case no wait at all: FB1001

func Hammer(c *http.Client, req *http.Request) (resp *http.Response, err error) {
	for i := 0; i < 3; i++ {
		resp, err = c.Do(req)
		if err == nil {
			return resp, nil
		}
		log.Printf("attempt %d: %v", i+1, err)
	}
	return nil, err
}

// case generic helper: FB1001

func Attempt[T any](n int, f func() (T, error)) (v T, err error) {
	for i := 0; i < n; i++ {
		v, err = f()
		if err == nil {
			return v, nil
		}
		if i+1 < n {
			time.Sleep(100 * time.Millisecond)
		}
	}
	return v, fmt.Errorf("after %d attempts: %w", n, err)
}

// case failure through a channel: FB1001

func Await(addr string, max time.Duration) error {
	deadline := time.Now().Add(max)
	for time.Now().Before(deadline) {
		errc := make(chan error, 1)
		go func() {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			errc <- err
		}()
		if err := <-errc; err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return errors.New("not reachable")
}
