// Package a holds retries of retries.
package a

import (
	"math/rand/v2"
	"net/http"
	"time"

	"inner"
)

func fetchRetried(url string) (err error) {
	for range 4 {
		var resp *http.Response
		if resp, err = http.Get(url); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func outer(url string) (err error) {
	for attempt := 0; attempt < 3; attempt++ { // want `FB1040: retries a.fetchRetried, which retries itself: 3 x 4 = 12 attempts`
		if err = fetchRetried(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func acrossPackages(url string) (err error) {
	for attempt := 0; attempt < 3; attempt++ { // want `FB1040: retries inner.Fetch, which retries itself: 3 x 5 = 15 attempts`
		if err = inner.Fetch(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func once(url string) error { return fetchRetried(url) }

func single(url string) (err error) {
	for attempt := 0; attempt < 3; attempt++ {
		if err = inner.Once(url); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func each(urls []string) error {
	for _, u := range urls {
		if err := fetchRetried(u); err != nil {
			return err
		}
	}
	return nil
}
