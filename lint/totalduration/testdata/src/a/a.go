// Package a holds retries with and without a total duration.
package a

import (
	"context"
	"math/rand/v2"
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

func long(c *client) (err error) {
	for range 5 { // want `FB1012: retries a.client.put for 1m0s of waits alone; at most 30s are allowed in all`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(15 * time.Second)
	}
	return err
}

func counted(c *client) (err error) {
	for range 5 { // want `FB1012: retries a.client.put without a total duration`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func withContext(ctx context.Context, c *client) (err error) {
	for range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Second)):
		}
	}
	return err
}
