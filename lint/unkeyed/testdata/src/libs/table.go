package libs

import (
	"github.com/hashicorp/go-retryablehttp"
	"github.com/sethgrid/pester"
)

// The table of libraries knows these clients.

func send(url string) error {
	return pester.New().Post(url, "text/plain", nil) // want `FB1030: pester retries this POST, which carries no Idempotency-Key`
}

func sendKeyed(url, key string) error {
	c := pester.New()
	c.Header.Set("Idempotency-Key", key)
	return c.Post(url, "text/plain", nil)
}

func sendOnce(url string) error {
	_, err := retryablehttp.NewClient().Post(url, "text/plain", nil) // want `FB1030: retryablehttp retries this POST, which carries no Idempotency-Key`
	return err
}
