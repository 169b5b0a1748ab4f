// Package a builds retry clients and uses or bypasses them.
package a

import (
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

type api struct{ http *http.Client }

func returned() *http.Client {
	c := retryablehttp.NewClient()
	return c.HTTPClient // want `FB1050: takes the plain client out of the retry client`
}

func stored() *api {
	c := retryablehttp.NewClient()
	return &api{http: c.HTTPClient} // want `FB1050`
}

func assigned(a *api) {
	c := retryablehttp.NewClient()
	a.http = c.HTTPClient // want `FB1050`
}

func called(url string) (*http.Response, error) {
	c := retryablehttp.NewClient()
	return c.HTTPClient.Get(url) // want `FB1050`
}

func unused(url string) (*http.Response, error) {
	c := retryablehttp.NewClient() // want `FB1050: the retry client is configured but never used`
	c.RetryMax = 3
	return http.Get(url)
}

func configured() *http.Client {
	c := retryablehttp.NewClient()
	c.HTTPClient.Timeout = time.Second
	c.HTTPClient = &http.Client{}
	return c.StandardClient()
}

func used(url string) (*http.Response, error) {
	c := retryablehttp.NewClient()
	c.RetryMax = 3
	return c.Get(url)
}

func taken(c *retryablehttp.Client) *http.Client {
	return c.HTTPClient // of medium confidence: others built it
}
