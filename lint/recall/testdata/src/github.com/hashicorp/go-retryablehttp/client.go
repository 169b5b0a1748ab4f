// Package retryablehttp has the signatures of hashicorp/go-retryablehttp.
package retryablehttp

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

type (
	CheckRetry func(ctx context.Context, resp *http.Response, err error) (bool, error)
	Backoff    func(min, max time.Duration, attemptNum int, resp *http.Response) time.Duration
	Request    struct{ *http.Request }
)

type Client struct {
	HTTPClient   *http.Client
	RetryWaitMin time.Duration
	RetryWaitMax time.Duration
	RetryMax     int
	CheckRetry   CheckRetry
	Backoff      Backoff
}

func NewClient() *Client                                                    { return &Client{} }
func NewRequest(method, url string, rawBody any) (*Request, error)          { return nil, nil }
func (c *Client) Do(req *Request) (*http.Response, error)                   { return nil, nil }
func (c *Client) Get(url string) (*http.Response, error)                    { return nil, nil }
func (c *Client) StandardClient() *http.Client                              { return nil }
func (c *Client) PostForm(url string, d url.Values) (*http.Response, error) { return nil, nil }
func (c *Client) Post(url, bodyType string, body any) (*http.Response, error) {
	return nil, nil
}

func DefaultBackoff(min, max time.Duration, attemptNum int, resp *http.Response) time.Duration {
	return 0
}

func LinearJitterBackoff(min, max time.Duration, attemptNum int, resp *http.Response) time.Duration {
	return 0
}

func DefaultRetryPolicy(ctx context.Context, resp *http.Response, err error) (bool, error) {
	return false, nil
}
