// Package recursion holds retries that call themselves with a longer wait.
package recursion

import (
	"net/http"
	"time"
)

type caller struct {
	client *http.Client
	url    string
}

func (c *caller) call() error {
	resp, err := c.client.Get(c.url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
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

// doubling passes on twice as much.
func (c *caller) doubling(left int, wait time.Duration) error {
	err := c.call()
	if err != nil && left > 0 {
		time.Sleep(wait)
		return c.doubling(left-1, 2*wait) // want `FB1002: retries recursion.caller.call on failure`
	}
	return err
}
