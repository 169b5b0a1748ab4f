// Package a holds retries on answers that will not change.
package a

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"helper"
)

func wait() { time.Sleep(rand.N(time.Second)) }

func blanket(c *http.Client, url string) (*http.Response, error) {
	for i := 0; i < 3; i++ { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err != nil || resp.StatusCode >= 400 {
			wait()
			continue
		}
		return resp, nil
	}
	return nil, errors.New("exhausted")
}

func notOK(c *http.Client, url string) error {
	for i := 0; i < 3; i++ { // want `FB1035`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			wait()
			continue
		}
		return nil
	}
	return nil
}

// created: its success has another status than 200.
func created(c *http.Client, url string) error {
	for i := 0; i < 3; i++ { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusCreated {
				return nil
			}
		}
		wait()
	}
	return nil
}

func listed(c *http.Client, url string) error {
	for i := 0; i < 3; i++ { // want `FB1035: retries http.Client.Get on status 403`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		switch resp.StatusCode {
		case 403, 429, 503:
			wait()
			continue
		}
		return nil
	}
	return nil
}

func get(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func throughHelper(c *http.Client, url string) (err error) {
	for range 3 { // want `FB1035: retries a.get on status 400, 401, 403, 404, 409, 422`
		if err = get(c, url); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func throughFact(c *http.Client, url string) (err error) {
	for range 3 { // want `FB1035: retries helper.Get on status 400, 401, 403, 404, 409, 422`
		if err = helper.Get(c, url); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func shouldRetry(resp *http.Response, err error) bool { // want `FB1035: shouldRetry calls 422 retryable`
	if err != nil {
		return true
	}
	switch resp.StatusCode {
	case 429, 500, 502, 503, 504, 422:
		return true
	}
	return false
}

var retryable = []int{400, 429, 503} // want `FB1035: retryable holds 400`

var retryStatus = map[int]bool{403: true, 503: true, 422: false} // want `FB1035: retryStatus holds 403`

// Near misses.

func serverFaults(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil || resp.StatusCode >= 500 || resp.StatusCode == 429 {
			wait()
			continue
		}
		return resp.Body.Close()
	}
	return errors.New("exhausted")
}

func guarded(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			wait()
			continue
		}
		resp.Body.Close()
		if resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != 429 {
			return errors.New("refused")
		}
		if resp.StatusCode != 200 {
			wait()
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func byPredicate(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err == nil && !retriable(resp.StatusCode) {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func retriable(status int) bool { return status == 429 || status >= 500 }

func byList(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if !slices.Contains([]int{502, 503}, resp.StatusCode) {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

var nonRetryable = []int{400, 401, 429}

var retryDelays = []int{400, 800, 1600}

func refreshed(c *http.Client, url string, refreshToken func()) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == 401 {
			refreshToken()
			wait()
			continue
		}
		return nil
	}
	return nil
}

func missingIsFinal(c *http.Client, url string) (found bool, err error) {
	for range 3 {
		var resp *http.Response
		if resp, err = c.Get(url); err != nil {
			wait()
			continue
		}
		resp.Body.Close()
		return resp.StatusCode != 404, nil
	}
	return false, err
}

func retried(attempts int, f func() error) (err error) {
	for range attempts {
		if err = f(); err == nil {
			return nil
		}
		wait()
	}
	return err
}

func throughRetried(c *http.Client, url string) error {
	return retried(3, func() error { return get(c, url) }) // want `FB1035: retries through a.retried on status 400`
}

var errFinal = errors.New("final")

// selecting looks into the error before it tries again.
func selecting(attempts int, f func() error, final func(error) bool) (err error) {
	for range attempts {
		if err = f(); err == nil || final(err) {
			return err
		}
		wait()
	}
	return err
}

func throughSelecting(c *http.Client, url string, final func(error) bool) error {
	return selecting(3, func() error { return get(c, url) }, final)
}

// ending ends at one error alone.
func ending(attempts int, f func() error) (err error) {
	for range attempts {
		if err = f(); err == nil || errors.Is(err, errFinal) {
			return err
		}
		wait()
	}
	return err
}

func throughEnding(c *http.Client, url string) {
	_ = ending(3, func() error { return get(c, url) }) // want `FB1035: retries through a.ending on status 400`
	_ = ending(3, func() error {
		if err := get(c, url); err != nil {
			return errFinal
		}
		return nil
	})
}

// shouldRetryGiven: where there is an answer beside the error, the error says
// that there was none.
func shouldRetryGiven(resp *http.Response, err error) bool {
	return err != nil || resp.StatusCode == 429
}

// shouldRetryAnswer looks at the status only when there is an answer.
func shouldRetryAnswer(resp *http.Response, err error) bool { // want `FB1035: shouldRetryAnswer calls 422 retryable`
	if err != nil {
		return false
	}
	return resp.StatusCode == 422
}
