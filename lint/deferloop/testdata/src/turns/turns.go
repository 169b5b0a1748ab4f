// Package turns holds loops that go on after a success.
package turns

import (
	"math/rand/v2"
	"net/http"
	"time"
)

func wait() { time.Sleep(rand.N(time.Second)) }

// failed defers before it knows whether the turn failed.
func failed(c *http.Client, url string, done func()) {
	for {
		defer done() // want `FB1053: defers done in a loop that retries http.Client.Get`
		resp, err := c.Get(url)
		if err != nil {
			wait()
			continue
		}
		resp.Body.Close()
	}
}

// settled defers after a success, which another attempt follows all the same.
func settled(c *http.Client, url string) {
	for {
		resp, err := c.Get(url)
		if err != nil {
			wait()
			continue
		}
		defer resp.Body.Close() // want `FB1053: defers io.Closer.Close in a loop that retries http.Client.Get`
	}
}
