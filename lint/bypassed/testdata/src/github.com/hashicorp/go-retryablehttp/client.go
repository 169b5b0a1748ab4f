package retryablehttp

import "net/http"

type Client struct {
	HTTPClient *http.Client
	RetryMax   int
}

func NewClient() *Client { return &Client{HTTPClient: http.DefaultClient} }

func (c *Client) StandardClient() *http.Client { return c.HTTPClient }

func (c *Client) Get(url string) (*http.Response, error) { return c.HTTPClient.Get(url) }
