// Package a holds equal jitter and its neighbors.
package a

import (
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

func halves(c *client) (err error) {
	for attempt := range 5 { // want `FB1003: retries a.client.put with equal jitter`
		if err = c.put(); err == nil {
			return nil
		}
		d := time.Second << attempt
		time.Sleep(d/2 + time.Duration(rand.Int63n(int64(d/2))))
	}
	return err
}

func factor(c *client) (err error) {
	d := time.Second
	for range 5 { // want `FB1003`
		if err = c.put(); err == nil {
			return nil
		}
		half := d / 2
		time.Sleep(half + time.Duration(rand.Float64()*float64(half)))
		d *= 2
	}
	return err
}

func full(c *client) (err error) {
	for attempt := range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		d := time.Second << attempt
		time.Sleep(time.Duration(rand.Int63n(int64(d / 2))))
	}
	return err
}

func tenth(c *client) (err error) {
	for attempt := range 5 {
		if err = c.put(); err == nil {
			return nil
		}
		d := time.Second << attempt
		time.Sleep(d + time.Duration(rand.Int63n(int64(d/10))))
	}
	return err
}
