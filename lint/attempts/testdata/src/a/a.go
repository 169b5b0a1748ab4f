// Package a holds counts of attempts inside and outside the ranges.
package a

import (
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

func fifty(c *client) (err error) {
	for i := 0; i < 50; i++ { // want `FB1011: retries a.client.put up to 50 times; at most 11 attempts are allowed`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func countsDown(c *client) (err error) {
	for left := 20; left > 0; left-- { // want `FB1011: retries a.client.put up to 20 times`
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func eleven(c *client) (err error) {
	for i := 0; i <= 10; i++ {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func configured(c *client, n int) (err error) {
	for i := 0; i < n; i++ {
		if err = c.put(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func thousandItems(c *client) {
	for i := 0; i < 1000; i++ {
		if err := c.put(); err != nil {
			return
		}
	}
}
