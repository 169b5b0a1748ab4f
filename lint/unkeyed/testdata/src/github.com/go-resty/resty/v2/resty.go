// Package resty has the signatures of go-resty.
package resty

import "time"

type (
	Client             struct{}
	Request            struct{}
	Response           struct{}
	RetryConditionFunc func(*Response, error) bool
)

func New() *Client                                                       { return &Client{} }
func (c *Client) R() *Request                                            { return &Request{} }
func (c *Client) SetRetryCount(count int) *Client                        { return c }
func (c *Client) SetRetryWaitTime(waitTime time.Duration) *Client        { return c }
func (c *Client) SetRetryMaxWaitTime(maxWaitTime time.Duration) *Client  { return c }
func (c *Client) AddRetryCondition(condition RetryConditionFunc) *Client { return c }
func (r *Request) SetHeader(header, value string) *Request               { return r }
func (r *Request) SetBody(body any) *Request                             { return r }
func (r *Request) Get(url string) (*Response, error)                     { return nil, nil }
func (r *Request) Post(url string) (*Response, error)                    { return nil, nil }
func (r *Request) Patch(url string) (*Response, error)                   { return nil, nil }
func (r *Request) Execute(method, url string) (*Response, error)         { return nil, nil }
func (r *Response) StatusCode() int                                      { return 0 }
func (r *Response) IsError() bool                                        { return false }
