// Package waits uses a client whose users may say how long to wait, and leaves it
// as it is.
package waits

import (
	"net/http"

	"retrykit"
)

func fetch(c *retrykit.Client, url string) error {
	return c.Do(func() error { // want `FB1002: retries through retrykit.Client.Do, whose wait grows without jitter`
		_, err := http.Get(url)
		return err
	})
}
