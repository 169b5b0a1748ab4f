package asked

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// renews goes on after a success, too, but later: after a failure it sends the
// same once more.
func renews(c *http.Client, url string, lease []byte) {
	for { // want `FB1030: retries POST by http.Client.Post`
		resp, err := c.Post(url, "text/plain", bytes.NewReader(lease))
		if err != nil {
			time.Sleep(time.Minute)
			continue
		}
		resp.Body.Close()
		time.Sleep(time.Hour)
	}
}

// reports sends in the same pace, come what may.
func reports(c *http.Client, url string, state []byte) {
	for {
		if resp, err := c.Post(url, "text/plain", bytes.NewReader(state)); err == nil {
			resp.Body.Close()
		}
		time.Sleep(time.Minute)
	}
}

// relays sends something else after a failure.
func relays(c *http.Client, url string, items <-chan []byte) {
	for {
		resp, err := c.Post(url, "text/plain", bytes.NewReader(<-items))
		if err != nil {
			time.Sleep(time.Minute)
			continue
		}
		resp.Body.Close()
	}
}

type busyError struct{ pause time.Duration }

func (*busyError) Error() string { return "busy" }

func post(c *http.Client, url string) error {
	resp, err := c.Post(url, "text/plain", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		return &busyError{time.Duration(seconds) * time.Second}
	}
	return nil
}

// pages goes on to the next page, and to the same one when the server says so.
func pages(c *http.Client, url string, next func() bool) (err error) {
	for err == nil && next() {
		err = post(c, url)
		if busy, ok := err.(*busyError); ok {
			time.Sleep(busy.pause)
			err = nil
		}
	}
	return err
}
