// Package inner retries, for another package.
package inner

import (
	"math/rand/v2"
	"net/http"
	"time"
)

func Fetch(url string) (err error) {
	for range 5 {
		if err = Once(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func Once(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
