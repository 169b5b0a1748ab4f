// Package a holds retries with and without an end.
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

func endless(c *client) {
	for { // want `FB1010: retries a.client.put without a limit of attempts or time`
		if err := c.put(); err == nil {
			return
		}
		time.Sleep(rand.N(time.Second))
	}
}

func counted(c *client) (err error) {
	for attempts := 0; ; attempts++ {
		if err = c.put(); err == nil || attempts > 3 {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
}

func countedInside(c *client) (err error) {
	failures := 0
	for {
		if err = c.put(); err == nil {
			return nil
		}
		failures++
		if failures >= 4 {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
}

func timed(c *client) (err error) {
	start := time.Now()
	for time.Since(start) < 30*time.Second {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func deadline(c *client) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if err = c.put(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(time.Second)):
		}
	}
}

func limitInAll(c *client) error {
	limit := time.After(time.Minute)
	for {
		err := c.put()
		if err == nil {
			return nil
		}
		select {
		case <-limit:
			return err
		case <-time.After(rand.N(time.Second)):
		}
	}
}
