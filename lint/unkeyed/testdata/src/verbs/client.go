// Package verbs has requests of a type of its own.
package verbs

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// A client is used by other packages, which choose the methods.
type client struct {
	http *http.Client
	base string
}

// once sends one request.
func (c *client) once(method, path string, body io.Reader) error {
	req, err := http.NewRequest(method, c.base+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// An operation is a request of this package's own.
type operation struct {
	Method, Path string
	Body         []byte
}

// Perform sends whatever it is given.
func (c *client) Perform(op *operation) (err error) {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		var req *http.Request
		if req, err = http.NewRequest(op.Method, c.base+op.Path, nil); err != nil {
			return err
		}
		if _, err = c.http.Do(req); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// Send leaves out what must not be repeated.
func (c *client) Send(op *operation) (err error) {
	for range 3 {
		if err = c.once(op.Method, op.Path, bytes.NewReader(op.Body)); err == nil || op.Method == "POST" {
			return err
		}
		time.Sleep(time.Second)
	}
	return err
}

// announce goes on after a success, too: a warning at most.
func (c *client) announce(body []byte) {
	for {
		if err := c.once("POST", "/here", bytes.NewReader(body)); err != nil {
			time.Sleep(time.Minute)
			continue
		}
		time.Sleep(time.Hour)
	}
}
