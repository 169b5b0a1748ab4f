// Package pester stands in for the real one: it retries every request.
package pester

import (
	"io"
	"net/http"
)

type Client struct{ Header http.Header }

func New() *Client { return &Client{} }

func (c *Client) Post(url, contentType string, body io.Reader) error { return nil }
