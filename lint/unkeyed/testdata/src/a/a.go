// Package a holds writes that are retried.
package a

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

type client struct {
	http *http.Client
	base string
}

func wait() { time.Sleep(rand.N(time.Second)) }

func inLoop(c *client, v any) (err error) {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for range 3 { // want `FB1030: retries POST by http.Client.Do without an Idempotency-Key`
		req, err := http.NewRequest(http.MethodPost, c.base+"/charges", bytes.NewReader(data))
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			wait()
			continue
		}
		return resp.Body.Close()
	}
	return errors.New("exhausted")
}

func builtBefore(c *client) error {
	req, err := http.NewRequest("PATCH", c.base, nil)
	if err != nil {
		return err
	}
	for range 3 { // want `FB1030: retries PATCH`
		resp, err := c.http.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func (c *client) create(body []byte) error {
	resp, err := c.http.Post(c.base, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func throughHelper(c *client) (err error) {
	for range 3 { // want `FB1030: retries POST by a.client.create`
		if err = c.create(nil); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func (c *client) send(method, path string) error {
	req, err := http.NewRequest(method, c.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func methodByArgument(c *client) (err error) {
	for range 3 { // want `FB1030: retries POST by a.client.send`
		if err = c.send("POST", "/orders"); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func retry(attempts int, f func() error) (err error) {
	for range attempts {
		if err = f(); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func callback(c *client) error {
	return retry(3, func() error { return c.send("POST", "/orders") }) // want `FB1030: retries POST through a.retry`
}

func (c *client) sendRetried(method string) (err error) {
	for range 3 { // want `FB1030: retries whatever method it is given, POST by caller too`
		req, err := http.NewRequest(method, c.base, nil)
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return err
}

func caller(c *client) error { return c.sendRetried("POST") }

type transport struct{ next http.RoundTripper }

func (t transport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		if resp, err = t.next.RoundTrip(req); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

// Near misses.

func keyed(c *client, key string) error {
	for range 3 {
		req, err := http.NewRequest("POST", c.base, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := c.http.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func (c *client) createKeyed(key string) error {
	req, err := http.NewRequest("POST", c.base, nil)
	if err != nil {
		return err
	}
	req.Header["X-Idempotency-Key"] = []string{key}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func keyedHelper(c *client) (err error) {
	for range 3 {
		if err = c.createKeyed("k"); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func put(c *client) (err error) {
	for range 3 {
		if err = c.send("PUT", "/orders/1"); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func once(c *client) error { return c.create(nil) }

func pollAfterPost(c *client) error {
	if err := c.create(nil); err != nil {
		return err
	}
	for {
		if err := c.send("GET", "/orders/1"); err != nil {
			return err
		}
		wait()
	}
}

func manyPosts(c *client, bodies [][]byte) error {
	for _, b := range bodies {
		if err := c.create(b); err != nil {
			return err
		}
	}
	return nil
}

type careful struct{ next http.RoundTripper }

func (t careful) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		resp, err = t.next.RoundTrip(req)
		if err == nil || req.Method != http.MethodGet {
			return resp, err
		}
		wait()
	}
	return nil, err
}

// refused repeats only what the server did not carry out.
func refused(c *http.Client, url string, body []byte) error {
	for range 3 {
		resp, err := c.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			time.Sleep(time.Second)
			continue
		}
		return nil
	}
	return nil
}

// sendRefused repeats whatever it is given, but only what was not carried out.
func (c *client) sendRefused(method string) error {
	for range 3 {
		req, err := http.NewRequest(method, c.base, nil)
		if err != nil {
			return err
		}
		resp, err := c.http.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			wait()
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func callerOfRefused(c *client) error { return c.sendRefused("POST") }

// refusedOnly repeats a request of any method that the server refused.
type refusedOnly struct{ next http.RoundTripper }

func (t refusedOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	for range 3 {
		resp, err := t.next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			resp.Body.Close()
			wait()
			continue
		}
		return resp, nil
	}
	return nil, errors.New("exhausted")
}

// lostToo repeats what was refused, and what may have been carried out.
func lostToo(c *http.Client, url string, body []byte) error {
	for range 3 { // want `FB1030: retries POST`
		resp, err := c.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			wait()
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			wait()
			continue
		}
		return nil
	}
	return nil
}

// turnedAway repeats what the server refused, for want of a fresh token or for
// its rate.
func turnedAway(c *http.Client, url string, body []byte) error {
	for range 3 {
		resp, err := c.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusTooManyRequests {
			wait()
			continue
		}
		return nil
	}
	return nil
}
