// Package handed uses a client that was set up elsewhere.
package handed

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

func fetch(c *retryablehttp.Client, url string) error {
	return c.Again(func() error { // want `FB1002: retries through retryablehttp.Client.Again, whose wait grows without jitter`
		_, err := http.Get(url)
		return err
	})
}
