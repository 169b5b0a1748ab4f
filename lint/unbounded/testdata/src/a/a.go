// Package a holds retries with and without an end.
package a

import (
	"context"
	"errors"
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

type budget struct{ left int }

func (b *budget) take() bool {
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

func countedByHelper(c *client, b *budget) {
	for b.take() {
		if err := c.put(); err == nil {
			return
		}
		time.Sleep(rand.N(time.Second))
	}
}

func countedByClosure(c *client) (err error) {
	tries := 0
	enough := func() bool { tries++; return tries > 4 }
	for {
		if err = c.put(); err == nil || enough() {
			return err
		}
		time.Sleep(rand.N(time.Second))
	}
}

// countedOnly: what is counted ends nothing.
func countedOnly(c *client) {
	tries := 0
	note := func() { tries++ }
	for { // want `FB1010: retries a.client.put without a limit of attempts or time`
		if err := c.put(); err == nil {
			return
		}
		note()
		time.Sleep(rand.N(time.Second))
	}
}

type patience struct {
	waits int
	until time.Time
}

func (p *patience) Wait() error {
	if p.waits++; p.waits > 5 {
		return errors.New("exhausted")
	}
	time.Sleep(rand.N(time.Second))
	return nil
}

func (p *patience) over() bool { return time.Now().After(p.until) }

func refusedByWait(c *client, p *patience) error {
	for {
		err := c.put()
		if err == nil {
			return nil
		}
		if p.Wait() != nil {
			return err
		}
	}
}

func timedByHelper(c *client, p *patience) {
	for !p.over() {
		if err := c.put(); err == nil {
			return
		}
		time.Sleep(rand.N(time.Second))
	}
}

// stopped by others, who may never do it: a hint, and no warning.
func stopped(c *client, stop chan struct{}) {
	for {
		if err := c.put(); err == nil {
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(rand.N(time.Second)):
		}
	}
}

func (c *client) get(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, "GET", c.base, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// background never ends.
func background(c *client) {
	for { // want `FB1010: retries a.client.get without a limit of attempts or time`
		if err := c.get(context.Background()); err == nil {
			return
		}
		time.Sleep(rand.N(time.Second))
	}
}

// short ends one attempt each.
func short(c *client) {
	for { // want `FB1010: retries a.client.get without a limit of attempts or time`
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := c.get(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(rand.N(time.Second))
	}
}
