// Package a holds request bodies that are sent again.
package a

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

func wait() { time.Sleep(rand.N(time.Second)) }

var errExhausted = errors.New("exhausted")

func builtBefore(c *http.Client, url string, b []byte) error {
	req, err := http.NewRequest("PUT", url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	for range 3 { // want `FB1051: sends the body of a request built before the loop again by http.Client.Do without rewinding it`
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

func readerBefore(c *http.Client, url string, b []byte) error {
	body := bytes.NewBuffer(b)
	for range 3 { // want `FB1051: sends a reader made before the loop again`
		resp, err := c.Post(url, "text/plain", body)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

func readerParameter(c *http.Client, url string, body io.Reader) error {
	for range 3 { // want `FB1051`
		req, err := http.NewRequest("PUT", url, body)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

// Near misses.

func inLoop(c *http.Client, url string, b []byte) error {
	for range 3 {
		req, err := http.NewRequest("PUT", url, bytes.NewReader(b))
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

func withoutBody(c *http.Client, url string) error {
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return err
	}
	for range 3 {
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

func rewound(c *http.Client, url string, b []byte) error {
	req, err := http.NewRequest("PUT", url, bytes.NewReader(b))
	if err != nil {
		return err
	}
	for range 3 {
		if req.Body, err = req.GetBody(); err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}

func sought(c *http.Client, url string, body io.ReadSeeker) error {
	for range 3 {
		if _, err := body.Seek(0, io.SeekStart); err != nil {
			return err
		}
		resp, err := c.Post(url, "text/plain", body)
		if err == nil {
			return resp.Body.Close()
		}
		wait()
	}
	return errExhausted
}
