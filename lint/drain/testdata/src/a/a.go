// Package a holds responses that are thrown away.
package a

import (
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

func wait() { time.Sleep(rand.N(time.Second)) }

func leaked(c *http.Client, url string) (resp *http.Response, err error) {
	for range 3 { // want `FB1052: leaves the response of http.Client.Get open before the next attempt`
		resp, err = c.Get(url)
		if err == nil && resp.StatusCode < 500 {
			return resp, nil
		}
		wait()
	}
	return resp, err
}

func drained(c *http.Client, url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = c.Get(url); err != nil {
			wait()
			continue
		}
		if resp.StatusCode < 500 {
			return resp, nil
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		wait()
	}
	return resp, err
}

func discard(resp *http.Response) { resp.Body.Close() }

func byHelper(c *http.Client, url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = c.Get(url); err != nil {
			wait()
			continue
		}
		if resp.StatusCode < 500 {
			return resp, nil
		}
		discard(resp)
		wait()
	}
	return resp, err
}

func errorsOnly(c *http.Client, url string) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = c.Get(url); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

// Operations of the package: one reads the response to its end and closes it,
// the other hands it over open.

func read(c *http.Client, url string) (*http.Response, []byte, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func readThrough(c *http.Client, url string) (*http.Response, error) {
	resp, _, err := read(c, url)
	return resp, err
}

func closedByOperation(c *http.Client, url string) error {
	for range 3 {
		resp, err := readThrough(c, url)
		if err == nil && resp.StatusCode < 500 {
			return nil
		}
		wait()
	}
	return nil
}

func handOver(c *http.Client, url string) (*http.Response, error) { return c.Get(url) }

func leftOpenByOperation(c *http.Client, url string) error {
	for range 3 { // want `FB1052: leaves the response of a.handOver open before the next attempt`
		resp, err := handOver(c, url)
		if err == nil && resp.StatusCode < 500 {
			return nil
		}
		wait()
	}
	return nil
}
