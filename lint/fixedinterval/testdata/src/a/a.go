// Package a holds retries that wait the same time after every failure.
package a

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

type client struct {
	http     *http.Client
	db       *sql.DB
	base     string
	interval time.Duration
	retries  int
}

func counted(c *http.Client, url string) (resp *http.Response, err error) {
	for i := 0; i < 3; i++ { // want `FB1001: retries http.Client.Get on failure and waits 2s every time`
		if resp, err = c.Get(url); err == nil {
			return resp, nil
		}
		time.Sleep(2 * time.Second)
	}
	return nil, err
}

func endless(ctx context.Context, c *client) error {
	for attempt := 1; ; attempt++ { // want `FB1001: retries sql.DB.PingContext on failure and waits interval every time`
		err := c.db.PingContext(ctx)
		if err == nil {
			return nil
		}
		if attempt >= c.retries {
			return fmt.Errorf("giving up: %w", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.interval):
		}
	}
}

func sleepsAtTheHead(c *client) (body []byte, err error) {
	for i := range 5 { // want `FB1001: retries http.Client.Get on failure and waits 500ms every time`
		if i > 0 {
			time.Sleep(500 * time.Millisecond)
		}
		var resp *http.Response
		if resp, err = c.http.Get(c.base); err != nil {
			log.Println(err)
			continue
		}
		if resp.StatusCode >= 500 {
			resp.Body.Close()
			err = fmt.Errorf("status %d", resp.StatusCode)
			continue
		}
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			continue
		}
		return body, nil
	}
	return nil, err
}

func recursive(fn func() error, attempts int, pause time.Duration) error {
	if err := fn(); err != nil {
		if attempts--; attempts > 0 {
			time.Sleep(pause)
			return recursive(fn, attempts, pause) // want `FB1001: retries fn on failure and waits pause every time`
		}
		return err
	}
	return nil
}

func helper(attempts int, pause time.Duration, f func() error) (err error) {
	for i := 0; i < attempts; i++ { // want `FB1001: retries f on failure and waits pause every time`
		if i > 0 {
			time.Sleep(pause)
		}
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

func jump(addr string) net.Conn {
again:
	conn, err := net.Dial("tcp", addr) // want `FB1001: retries net.Dial on failure and waits 1s every time`
	if err != nil {
		time.Sleep(time.Second)
		goto again
	}
	return conn
}

func pause() { time.Sleep(time.Second) }

func byHelper(c *client) (err error) {
	for tries := 3; tries > 0; tries-- { // want `FB1001: retries a.client.put on failure`
		if err = c.put(); err == nil {
			return nil
		}
		pause()
	}
	return err
}

func (c *client) put() error {
	req, err := http.NewRequest("PUT", c.base, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func switched(c *client) error {
	for i := 0; i < 3; i++ { // want `FB1001: retries a.client.put on failure and waits 100ms every time`
		err := c.put()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, io.EOF):
			return err
		default:
			time.Sleep(100 * time.Millisecond)
		}
	}
	return errors.New("exhausted")
}

func attemptedBefore(c *client) error {
	err := c.put()
	for i := 0; err != nil && i < 5; i++ { // want `FB1001: retries a.client.put on failure and waits 1s every time`
		time.Sleep(time.Second)
		err = c.put()
	}
	return err
}

func contextSleep(ctx context.Context, c *client) error {
	for attempt := 1; ; attempt++ { // want `FB1001: retries a.client.put on failure and waits interval every time`
		err := c.put()
		if err == nil {
			return nil
		}
		if attempt == 4 {
			return err
		}
		if err := sleepContext(ctx, c.interval); err != nil {
			return err
		}
	}
}

func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func immediate(c *client) (err error) {
	for retry := 0; retry < 5; retry++ { // want `FB1001: retries a.client.put on failure without waiting at all`
		if err = c.put(); err == nil {
			return nil
		}
	}
	return err
}

// pauseAtMost waits d, cut off at a ceiling.
func pauseAtMost(d time.Duration) {
	if d > time.Minute {
		d = time.Minute
	}
	time.Sleep(d)
}

func byCappedHelper(c *client) (err error) {
	for range 3 { // want `FB1001: retries a.client.put on failure`
		if err = c.put(); err == nil {
			return nil
		}
		pauseAtMost(c.interval)
	}
	return err
}

func pauseMin(d time.Duration) { time.Sleep(min(d, time.Minute)) }

func byMinHelper(c *client) (err error) {
	for range 3 { // want `FB1001: retries a.client.put on failure`
		if err = c.put(); err == nil {
			return nil
		}
		pauseMin(c.interval)
	}
	return err
}

// Both helpers are handed what leaves the process.
func handsOver(c *client) error {
	if err := recursive(c.put, 3, time.Second); err != nil {
		return err
	}
	return helper(3, time.Second, c.put)
}
