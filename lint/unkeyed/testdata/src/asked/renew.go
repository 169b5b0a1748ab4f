package asked

import (
	"bytes"
	"net/http"
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
