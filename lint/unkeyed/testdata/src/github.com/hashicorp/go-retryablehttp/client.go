// Package retryablehttp has the signatures of go-retryablehttp.
package retryablehttp

import (
	"context"
	"net/http"
)

type CheckRetry func(ctx context.Context, resp *http.Response, err error) (bool, error)

type Client struct {
	HTTPClient *http.Client
	RetryMax   int
	CheckRetry CheckRetry
}

type Request struct{ *http.Request }

func NewClient() *Client { return &Client{} }
func NewRequest(method, url string, body any) (*Request, error) {
	return &Request{}, nil
}
func (c *Client) Do(req *Request) (*http.Response, error)               { return nil, nil }
func (c *Client) Post(url, ct string, body any) (*http.Response, error) { return nil, nil }
func (c *Client) Get(url string) (*http.Response, error)                { return nil, nil }
func (c *Client) StandardClient() *http.Client                          { return nil }
