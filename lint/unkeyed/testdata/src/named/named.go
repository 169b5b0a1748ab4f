// Package named gives each request an identifier before it is sent, by which a
// server may know a repetition: no more than a warning.
package named

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

type repeating struct{ next http.RoundTripper }

func (t repeating) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = t.next.RoundTrip(req); err == nil {
			return resp, nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return nil, err
}

func post(c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequest("POST", url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Acme-Request-Id", strconv.Itoa(rand.Int()))
	return c.Do(req)
}
