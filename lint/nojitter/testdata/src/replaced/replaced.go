// Package replaced says how long that client waits.
package replaced

import (
	"math/rand/v2"
	"net/http"
	"time"

	"retrykit"
)

func newClient() *retrykit.Client {
	return &retrykit.Client{Wait: func(attempt int) time.Duration { return rand.N(time.Second << attempt) }}
}

func fetch(c *retrykit.Client, url string) error {
	return c.Do(func() error {
		_, err := http.Get(url)
		return err
	})
}
