// Package near holds loops that look like fixed-interval retries and are none.
package near

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

type state struct{ Done bool }

func get(url string) (*state, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	return &state{}, resp.Body.Close()
}

// polling: the failure leaves, "not yet" stays.
func polling(url string) error {
	for {
		s, err := get(url)
		if err != nil {
			return err
		}
		if s.Done {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// swallowing: success and failure meet in the same wait.
func swallowing(url string) {
	for {
		s, err := get(url)
		if err == nil && s.Done {
			return
		}
		time.Sleep(time.Second)
	}
}

func ticking(ctx context.Context, url string) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if _, err := get(url); err != nil {
				continue
			}
		}
	}
}

func rangingOverTicks(url string) {
	for range time.Tick(time.Minute) {
		if _, err := get(url); err != nil {
			continue
		}
	}
}

func pacing(urls []string) error {
	for _, u := range urls {
		if _, err := get(u); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// items: each turn is another operation, although it pauses after a failure.
func items(urls []string) {
	for _, u := range urls {
		if _, err := get(u); err != nil {
			time.Sleep(time.Second)
			continue
		}
	}
}

func failover(addrs []string) (net.Conn, error) {
	for i := 0; i < len(addrs); i++ {
		conn, err := net.Dial("tcp", addrs[i])
		if err == nil {
			return conn, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.New("no address answers")
}

func compareAndSwap(v *atomic.Int64) {
	for !v.CompareAndSwap(0, 1) {
		time.Sleep(time.Millisecond)
	}
}

type lock struct{}

func (lock) TryLock() error { return nil }

func locking(l lock) {
	for {
		if err := l.TryLock(); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func reading(r *bufio.Reader) {
	for {
		if _, err := r.ReadString('\n'); err != nil {
			if err == io.EOF {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func accepting(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		go conn.Close()
	}
}

func local(path string) (err error) {
	for try := 0; try < 3; try++ {
		if err = os.Remove(path); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// waitForServer says by its name that it waits for a state.
func waitForServer(addr string) {
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(time.Second)
	}
}

func jittered(url string) (err error) {
	for range 3 {
		if _, err = get(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

type schedule interface{ Next() time.Duration }

func decidedElsewhere(url string, s schedule) (err error) {
	for range 3 {
		if _, err = get(url); err == nil {
			return nil
		}
		time.Sleep(s.Next())
	}
	return err
}

func growing(url string) (err error) {
	d := time.Second
	for range 3 {
		if _, err = get(url); err == nil {
			return nil
		}
		time.Sleep(d)
		d *= 2
	}
	return err
}

func serverSays(url string) error {
	for range 3 {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode != 429 {
			return resp.Body.Close()
		}
		resp.Body.Close()
		d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		if err != nil {
			return err
		}
		time.Sleep(d)
	}
	return nil
}

func rows(db *sql.DB) error {
	r, err := db.Query("select 1")
	if err != nil {
		return err
	}
	for r.Next() {
		var n int
		if err := r.Scan(&n); err != nil {
			continue
		}
	}
	return r.Err()
}

func work(ch <-chan string) {
	for u := range ch {
		if _, err := get(u); err != nil {
			time.Sleep(time.Second)
			continue
		}
	}
}

type conn struct{ addr string }

func (c *conn) connect() error { _, err := net.Dial("tcp", c.addr); return err }

// servers: the next attempt goes to the next server.
func servers(c *conn, pool []string) error {
	for i := 0; i < len(pool); i++ {
		c.addr = pool[i]
		if err := c.connect(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return errors.New("none")
}

func leader(ctx context.Context, campaign func(context.Context) error) {
	leaderLoop(ctx, campaign)
}

func leaderLoop(ctx context.Context, campaign func(context.Context) error) {
	for {
		if err := campaign(ctx); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}
