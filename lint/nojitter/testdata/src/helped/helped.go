// Package helped retries through helpers of a library that no table knows.
package helped

import (
	"math/rand/v2"
	"net/http"
	"time"

	"retrykit"
)

func send() error {
	resp, err := http.Get("https://example.com")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func growing() error {
	return retrykit.Doubling(time.Second, send) // want `FB1002: retries through retrykit.Doubling, whose wait grows without jitter`
}

func spread() error { return retrykit.Spread(time.Second, send) }

func decided(b retrykit.Backoff) error { return retrykit.With(b, send) }

// What is random in a number is random in the wait that another package makes of
// it.
func converted() (err error) {
	for n := range 5 {
		if err = send(); err == nil {
			return nil
		}
		time.Sleep(retrykit.Seconds(float64(n) * rand.Float64()))
	}
	return err
}

func counted() (err error) {
	for n := range 5 { // want `FB1002: retries helped.send on failure with a growing wait that has no jitter`
		if err = send(); err == nil {
			return nil
		}
		time.Sleep(retrykit.Seconds(float64(n)))
	}
	return err
}

func waiting() (err error) {
	for n := range 5 { // want `FB1002: retries helped.send on failure with a growing wait that has no jitter`
		if err = send(); err == nil {
			return nil
		}
		retrykit.WaitBefore(n)
	}
	return err
}

// asLong waits for as many seconds as it says.
func asLong(seconds int) (err error) {
	for range 5 {
		if err = send(); err == nil {
			return nil
		}
		retrykit.WaitSeconds(seconds)
	}
	return err
}
