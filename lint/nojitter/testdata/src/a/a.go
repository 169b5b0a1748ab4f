// Package a holds growing backoffs, with and without jitter.
package a

import (
	"context"
	"errors"
	"math"
	"math/rand"
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

func product(c *client) error {
	backoff := time.Second
	for i := 0; i < 5; i++ { // want `FB1002: retries a.client.put on failure with a growing wait`
		err := c.put()
		if err == nil {
			return nil
		}
		time.Sleep(backoff)
		backoff *= 2
	}
	return errors.New("exhausted")
}

func power(c *client) (err error) {
	for i := 0; i < 5; i++ { // want `FB1002`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(math.Pow(2, float64(i))) * time.Second)
	}
	return err
}

func shift(c *client) (err error) {
	for i := range 5 { // want `FB1002`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond << i)
	}
	return err
}

func table(ctx context.Context, c *client) (err error) {
	for _, d := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} { // want `FB1002`
		if err = c.put(); err == nil {
			return nil
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

func delayFor(attempt int) time.Duration {
	d := 100 * time.Millisecond
	for i := 0; i < attempt; i++ {
		if d *= 2; d > 10*time.Second {
			return 10 * time.Second
		}
	}
	return d
}

func helper(c *client) (err error) {
	for i := 0; i < 5; i++ { // want `FB1002`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(delayFor(i))
	}
	return err
}

type schedule struct{ current, limit time.Duration }

func (s *schedule) next() time.Duration {
	d := s.current
	if s.current *= 2; s.current > s.limit {
		s.current = s.limit
	}
	return d
}

func method(c *client) error {
	s := &schedule{time.Second, time.Minute}
	for attempt := 0; ; attempt++ { // want `FB1002`
		err := c.put()
		if err == nil || attempt == 5 {
			return err
		}
		time.Sleep(s.next())
	}
}

func capped(c *client) error {
	delay := 100 * time.Millisecond
	for attempt := 0; ; attempt++ { // want `FB1002`
		err := c.put()
		if err == nil {
			return nil
		}
		if attempt == 5 {
			return err
		}
		time.Sleep(delay)
		delay = min(delay*2, 5*time.Second)
	}
}

func linear(c *client, attempt int) error {
	err := c.put()
	if err != nil && attempt < 5 {
		time.Sleep(time.Duration(attempt) * time.Second)
		return linear(c, attempt+1) // want `FB1002`
	}
	return err
}

// Near misses.

func full(c *client) (err error) {
	for i := range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second << i))))
	}
	return err
}

func jitter(d time.Duration) time.Duration { return time.Duration(rand.Int63n(int64(d))) }

func added(c *client) (err error) {
	d := time.Second
	for range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(d + jitter(d))
		d *= 2
	}
	return err
}

func fixed(c *client) (err error) {
	for range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func growingPoll(c *client) error {
	d := time.Second
	for {
		if err := c.put(); err != nil {
			return err
		}
		time.Sleep(d)
		d *= 2
	}
}

func elsewhere(c *client, next func(int) time.Duration) (err error) {
	for i := range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(next(i))
	}
	return err
}

func turns(c *client, servers int) {
	turn, times := 0, 0
	for { // want `FB1002`
		if err := c.put(); err == nil {
			return
		}
		if times > 0 && times%servers == 0 {
			if turn < 50 {
				turn++
			}
		}
		times++
		time.Sleep(time.Duration(math.Min(float64(turn), 50)*100) * time.Millisecond)
	}
}

// retryAfter is what the server asks for, or else what it is given.
func retryAfter(resp *http.Response, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
		return d
	}
	return otherwise
}

func fallsBack(c *client) (*http.Response, error) {
	d := time.Second
	for range 5 { // want `FB1002`
		resp, err := c.http.Get(c.base)
		if err != nil || resp.StatusCode != 429 {
			return resp, err
		}
		resp.Body.Close()
		d = min(retryAfter(resp, d), time.Minute)
		time.Sleep(d)
		d *= 2
	}
	return nil, errors.New("exhausted")
}

func fallsBackOnChance(c *client) (*http.Response, error) {
	d := time.Second
	for range 5 {
		resp, err := c.http.Get(c.base)
		if err != nil || resp.StatusCode != 429 {
			return resp, err
		}
		resp.Body.Close()
		time.Sleep(retryAfter(resp, time.Duration(rand.Int63n(int64(d)))))
		d *= 2
	}
	return nil, errors.New("exhausted")
}

func within(c *client, longest time.Duration) (*http.Response, error) {
	for range 5 {
		resp, err := c.http.Get(c.base)
		if err != nil || resp.StatusCode != 429 {
			return resp, err
		}
		resp.Body.Close()
		time.Sleep(retryAfter(resp, longest))
	}
	return nil, errors.New("exhausted")
}
