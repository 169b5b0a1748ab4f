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
