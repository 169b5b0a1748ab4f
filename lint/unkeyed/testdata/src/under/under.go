// Package under repeats whatever it is given.
package under

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

type Client struct{ base string }

func pause() { time.Sleep(rand.N(time.Second)) }

// Do leaves the method to callers in other packages.
func (c *Client) Do(method, path string) error {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		req, err := http.NewRequest(method, c.base+path, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		pause()
	}
	return errors.New("exhausted")
}

// SendAll repeats any request that it is given, which is a fault here.
func SendAll(req *http.Request) (resp *http.Response, err error) {
	for range 3 { // want `FB1030: retries every request, whatever its method`
		if resp, err = http.DefaultClient.Do(req); err == nil {
			return resp, nil
		}
		pause()
	}
	return nil, err
}
