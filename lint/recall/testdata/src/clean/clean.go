// Package clean holds loops in which nothing is wrong by the rules that are
// measured here.
package clean

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

func jittered(attempt int) time.Duration {
	return rand.N(min(30*time.Second, 200*time.Millisecond<<attempt))
}

// case full jitter, transient statuses only: none

func Get(c *http.Client, u string) (*http.Response, error) {
	for i := 0; ; i++ {
		resp, err := c.Get(u)
		if err == nil && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			return resp, nil
		}
		if i == 3 {
			return resp, err
		}
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		time.Sleep(jittered(i))
	}
}

// case post with a key: none

func Charge(ctx context.Context, c *http.Client, u, key string, b []byte) error {
	var last error
	for i := range 4 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(b))
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := c.Do(req)
		if err == nil && resp.StatusCode < 500 {
			return resp.Body.Close()
		}
		last = err
		time.Sleep(jittered(i))
	}
	return last
}

// case waits for a job: none

type job struct{ State string }

func WaitFor(ctx context.Context, get func(context.Context) (job, error)) error {
	for {
		j, err := get(ctx)
		if err != nil {
			return err
		}
		if j.State == "done" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// case reconcile loop: none

func Reconcile(ctx context.Context, sync func(context.Context) error) {
	t := time.NewTicker(30 * time.Second)
	defer t.Stop()
	for {
		if err := sync(ctx); err != nil {
			log.Printf("sync: %v", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// case heartbeat that ends on failure: none

func Heartbeat(conn net.Conn) error {
	for {
		time.Sleep(10 * time.Second)
		if _, err := conn.Write([]byte("ping")); err != nil {
			return err
		}
	}
}

// case pacing of items: none

func SendAll(send func(string) error, items []string) error {
	for _, it := range items {
		if err := send(it); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// case failover over addresses: none

func DialAny(addrs []string) (c net.Conn, err error) {
	for _, a := range addrs {
		if c, err = net.DialTimeout("tcp", a, time.Second); err == nil {
			return c, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, err
}

// case compare and swap: none

func Max(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// case lock file: none

func Lock(path string) (*os.File, error) {
	for i := 0; i < 50; i++ {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, errors.New("locked")
}

// case free port: none

func Listen() (l net.Listener, err error) {
	for range 10 {
		l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+rand.IntN(20000)))
		if err == nil {
			return l, nil
		}
	}
	return nil, err
}

// case pages: none

func Pages(c *http.Client, u string) (n int, err error) {
	for page := 1; ; page++ {
		resp, err := c.Get(fmt.Sprintf("%s?page=%d", u, page))
		if err != nil {
			return n, err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return n, nil
		}
		n++
		time.Sleep(200 * time.Millisecond)
	}
}

// case statuses that are not retried: FB1030

var final = []int{400, 401, 403, 404, 409, 422}

func Do(c *http.Client, mk func() *http.Request) (*http.Response, error) {
	for i := 0; ; i++ {
		resp, err := c.Do(mk())
		if err == nil && (resp.StatusCode < 400 || slices.Contains(final, resp.StatusCode)) {
			return resp, nil
		}
		if i == 3 {
			return resp, err
		}
		time.Sleep(jittered(i))
	}
}

// case token that is refreshed once: none

func Authorized(c *http.Client, req *http.Request, refresh func() (string, error)) (*http.Response, error) {
	for range 2 {
		resp, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized {
			return resp, nil
		}
		resp.Body.Close()
		token, err := refresh()
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil, errors.New("unauthorized")
}

// case post without a retry: none

func Once(c *http.Client, u string, items [][]byte) (failed int) {
	for _, b := range items {
		resp, err := c.Post(u, "application/json", bytes.NewReader(b))
		if err != nil {
			failed++
			continue
		}
		resp.Body.Close()
	}
	return failed
}

// case wait told by the server: none

func Obey(c *http.Client, u string) (*http.Response, error) {
	for range 3 {
		resp, err := c.Get(u)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusServiceUnavailable {
			return resp, nil
		}
		resp.Body.Close()
		s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			return nil, errors.New("no hint")
		}
		time.Sleep(time.Duration(s) * time.Second)
	}
	return nil, errors.New("busy")
}
