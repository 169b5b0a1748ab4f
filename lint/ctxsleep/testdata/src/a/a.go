// Package a holds sleeps with and without a context in scope.
package a

import (
	"context"
	"net/http"
	"time"
)

type client struct {
	http *http.Client
	base string
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

func scoped(ctx context.Context, c *client) (err error) {
	for range 3 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Second) // want `FB1020: the retry sleeps although ctx is in scope`
	}
	return err
}

// The context of one attempt is no end of the retry: where it is the only one,
// there is none to wait for, and where it hides the other, that one is meant.
func perAttempt(c *client) (err error) {
	for range 3 {
		attempt, cancel := context.WithTimeout(context.Background(), time.Second)
		err = c.putWith(attempt)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func hidden(ctx context.Context, c *client) (err error) {
	for range 3 {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		err = c.putWith(ctx)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(time.Second) // want `FB1020: the retry sleeps although ctx is in scope`
	}
	return err
}

func besideAttempt(ctx context.Context, c *client) (err error) {
	for range 3 {
		one, cancel := context.WithTimeout(ctx, time.Second)
		err = c.putWith(one)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(time.Second) // want `FB1020: the retry sleeps although ctx is in scope`
	}
	return err
}

func (c *client) putWith(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, "PUT", c.base, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

type point struct{ x, y int }

func values(parent context.Context, c *client) (*client, int, string, bool, point, error) {
	var err error
	for attempt := 0; attempt < 3; attempt++ {
		if err = c.put(); err == nil {
			return c, 1, "", true, point{}, nil
		}
		if attempt < 2 {
			time.Sleep(time.Duration(attempt) * time.Second) // want `FB1020: the retry sleeps although parent is in scope`
		}
	}
	return nil, 0, "", false, point{}, err
}

// noError cannot tell its caller, so there is no fix.
func noError(ctx context.Context, c *client) {
	for {
		if c.put() == nil {
			return
		}
		time.Sleep(time.Second) // want `FB1020`
	}
}

// Near misses.

func withoutContext(c *client) (err error) {
	for range 3 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func noRetry(ctx context.Context, c *client) error {
	time.Sleep(time.Second)
	return c.put()
}

func later(c *client) (err error) {
	for range 3 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	ctx := context.Background()
	return ctx.Err()
}

// neverEnds has a context, but one that tells nothing.
func neverEnds(c *client) (err error) {
	ctx := context.Background()
	for range 3 {
		if err = c.put(); err == nil {
			return ctx.Err()
		}
		time.Sleep(time.Second)
	}
	return err
}

// declared has a context that ends, under another one of the same form.
func declared(c *client) (err error) {
	var ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 3 {
		if err = c.put(); err == nil {
			return ctx.Err()
		}
		time.Sleep(time.Second) // want `FB1020: the retry sleeps although ctx is in scope`
	}
	return err
}

// assigned has one that is empty at first.
func assigned(c *client) (err error) {
	var ctx context.Context
	var cancel func()
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 3 {
		if err = c.put(); err == nil {
			return ctx.Err()
		}
		time.Sleep(time.Second) // want `FB1020: the retry sleeps although ctx is in scope`
	}
	return err
}
