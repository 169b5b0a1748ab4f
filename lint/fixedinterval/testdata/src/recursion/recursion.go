// Package recursion holds retries that call themselves after the same wait.
package recursion

import (
	"net/http"
	"time"
)

type caller struct {
	client *http.Client
	url    string
	timer  *time.Timer
}

func (c *caller) call() error {
	resp, err := c.client.Get(c.url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// byTimer: a timer begins the next attempt.
func (c *caller) byTimer() {
	if err := c.call(); err != nil {
		c.timer = time.AfterFunc(5*time.Second, c.byTimer) // want `FB1001: retries recursion.caller.call on failure and waits 5s every time`
	}
}

// periodic comes back whether it fails or not.
func (c *caller) periodic(failed func(error)) {
	if err := c.call(); err != nil {
		failed(err)
	}
	c.timer = time.AfterFunc(5*time.Second, func() { c.periodic(failed) })
}

// another: what the timer begins after a failure is not this function.
func (c *caller) another() {
	if err := c.call(); err != nil {
		c.timer = time.AfterFunc(5*time.Second, c.given)
	}
}

func (c *caller) given() { c.timer = nil }

func literal(c *caller) error {
	var try func(n int) error
	try = func(n int) error {
		err := c.call()
		if err == nil || n == 0 {
			return err
		}
		time.Sleep(time.Second)
		return try(n - 1) // want `FB1001: retries recursion.caller.call on failure and waits 1s every time`
	}
	return try(5)
}

// assigned twice, so that the literal may call something else.
func assignedTwice(c *caller, other func(int) error) error {
	var try func(n int) error
	try = func(n int) error {
		err := c.call()
		if err == nil || n == 0 {
			return err
		}
		time.Sleep(time.Second)
		return try(n - 1)
	}
	if other != nil {
		try = other
	}
	return try(5)
}
