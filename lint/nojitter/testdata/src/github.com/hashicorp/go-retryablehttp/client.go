// Package retryablehttp stands in for the library: its client retries by itself.
package retryablehttp

import (
	"net/http"
	"time"
)

type Client struct {
	HTTPClient *http.Client
	RetryMax   int
}

func NewClient() *Client { return &Client{HTTPClient: http.DefaultClient, RetryMax: 4} }

func (c *Client) Get(url string) (resp *http.Response, err error) {
	for i := range c.RetryMax {
		if resp, err = c.HTTPClient.Get(url); err == nil {
			return resp, nil
		}
		time.Sleep(time.Second << i)
	}
	return nil, err
}

// Again is a helper: it calls what it is given.
func (c *Client) Again(op func() error) (err error) {
	for i := range c.RetryMax {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(time.Second << i)
	}
	return err
}
