// Package libs uses a library.
package libs

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/hashicorp/go-retryablehttp"
)

func build(b *retrypolicy.Builder) {
	b.WithBackoff(time.Second, time.Minute) // want `FB1002: failsafe-go WithBackoff without WithJitter`
}

// One cause is one finding: where the client is made.
func fetch(url string) error {
	c := retryablehttp.NewClient() // want `FB1002: retryablehttp's default backoff grows without jitter`
	return c.Again(func() error {
		_, err := http.Get(url)
		return err
	})
}
