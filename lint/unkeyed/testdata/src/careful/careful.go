// Package careful has a client whose policy looks at the method.
package careful

import (
	"context"
	"net/http"

	"github.com/hashicorp/go-retryablehttp"
)

type store struct{ client *retryablehttp.Client }

func readsOnly(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if resp == nil || resp.Request.Method == http.MethodPost {
		return false, err
	}
	return resp.StatusCode >= 500, nil
}

func newStore() *store {
	c := retryablehttp.NewClient()
	c.CheckRetry = readsOnly
	return &store{c}
}

func (s *store) sell(item string) error {
	_, err := s.client.Post("http://example.com/sales", "text/plain", item)
	return err
}
