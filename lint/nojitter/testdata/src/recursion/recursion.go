// Package recursion holds retries that call themselves with a longer wait.
package recursion

import (
	"context"
	"errors"
	"net/http"
	"time"
)

type caller struct {
	client *http.Client
	url    string
	wait   time.Duration
}

func (c *caller) call() error {
	resp, err := c.client.Get(c.url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// through a helper, which waits and passes on twice as much.
func (c *caller) through(ctx context.Context, left int, wait time.Duration) error {
	err := c.call()
	if err != nil && left > 0 {
		return c.later(ctx, left, wait) // want `FB1002: retries recursion.caller.call on failure`
	}
	return err
}

func (c *caller) later(ctx context.Context, left int, wait time.Duration) error {
	if !errors.Is(ctx.Err(), context.Canceled) {
		select {
		case <-time.After(min(wait, time.Hour)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.through(ctx, left-1, 2*wait)
}

// steady passes on the same wait.
func (c *caller) steady(left int, wait time.Duration) error {
	err := c.call()
	if err != nil && left > 0 {
		time.Sleep(wait)
		return c.steady(left-1, wait)
	}
	return err
}

// byTimer: a timer begins the next attempt.
func (c *caller) byTimer() {
	if err := c.call(); err != nil {
		c.wait = min(2*c.wait, time.Minute)
		time.AfterFunc(c.wait, func() { c.byTimer() }) // want `FB1002: retries recursion.caller.call on failure`
		return
	}
	c.wait = time.Second
}

// byNumber: the wait is computed from the number of the attempt.
func byNumber(c *caller) error {
	var try func(n int) error
	try = func(n int) error {
		err := c.call()
		if err == nil || n == 5 {
			return err
		}
		time.Sleep(time.Duration(n) * time.Second)
		return try(n + 1) // want `FB1002: retries recursion.caller.call on failure`
	}
	return try(1)
}
