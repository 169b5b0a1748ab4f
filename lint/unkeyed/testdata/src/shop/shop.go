// Package shop sends by a client that its constructor makes.
package shop

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"sdk"
)

type store struct{ client *retryablehttp.Client }

func newStore() *store {
	c := retryablehttp.NewClient()
	c.RetryMax = 3
	return &store{c}
}

func (s *store) sell(item string) error {
	_, err := s.client.Post("http://example.com/sales", "text/plain", item) // want `FB1030: retryablehttp retries this POST, which carries no Idempotency-Key`
	return err
}

func (s *store) keyed(item, key string) error {
	req, err := retryablehttp.NewRequest("POST", "http://example.com/sales", item)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", key)
	_, err = s.client.Do(req)
	return err
}

func (s *store) exchange(method, path string) error {
	req, err := retryablehttp.NewRequest(method, path, nil)
	if err != nil {
		return err
	}
	_, err = s.client.Do(req) // want `FB1030: retryablehttp retries whatever method it is given, PATCH by rename too`
	return err
}

func rename(s *store) error { return s.exchange("PATCH", "http://example.com/1") }

func (s *store) put(item string) error {
	req, err := retryablehttp.NewRequest("PUT", "http://example.com/1", item)
	if err != nil {
		return err
	}
	_, err = s.client.Do(req)
	return err
}

// handed gives an SDK a client that repeats any request; it is likely a fault,
// and not certain.
func handed() *sdk.API { return sdk.New(retryablehttp.NewClient().StandardClient()) }

// A client of the package's own keeps the standard client.
type api struct{ http *http.Client }

func newAPI() *api {
	a := &api{}
	a.http = retryablehttp.NewClient().StandardClient() // want `FB1030: retryablehttp's standard client retries every request, POST too`
	return a
}

func (a *api) create(url string) (*http.Response, error) {
	req, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	return a.http.Do(req)
}
