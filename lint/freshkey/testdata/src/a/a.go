// Package a holds idempotency keys of the right and the wrong lifetime.
package a

import (
	"crypto/rand"
	"errors"
	"net/http"
	"time"
)

func newKey() string { return rand.Text() }

func wait() { time.Sleep(time.Second) }

func inLoop(c *http.Client, url string) error {
	for range 3 {
		req, err := http.NewRequest("POST", url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", newKey()) // want `FB1031: makes a new idempotency key for each attempt of http.Client.Do`
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func create(c *http.Client, url string) error {
	req, err := http.NewRequest("POST", url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", rand.Text()) // want `FB1031: makes a new idempotency key for each attempt of a.create`
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func inHelper(c *http.Client, url string) (err error) {
	for range 3 {
		if err = create(c, url); err == nil {
			return nil
		}
		wait()
	}
	return err
}

// Near misses.

func before(c *http.Client, url string) error {
	key := newKey()
	for range 3 {
		req, err := http.NewRequest("POST", url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func perItem(c *http.Client, urls []string) error {
	for _, u := range urls {
		req, err := http.NewRequest("POST", u, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", newKey())
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
	}
	return nil
}

func requestID(c *http.Client, url string) error {
	for range 3 {
		req, err := http.NewRequest("POST", url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Request-Id", newKey())
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}
