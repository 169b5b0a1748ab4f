// Package medium holds what is reported with less than high confidence.
package medium

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"helper"
)

func wait() { time.Sleep(rand.N(time.Second)) }

// statusError is what a response that failed is made into.
type statusError struct{ Status int }

func (e *statusError) Error() string { return fmt.Sprint(e.Status) }

var errMissing = errors.New("missing")

func typed(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == 404:
		return fmt.Errorf("%s: %w", url, errMissing)
	case resp.StatusCode >= 300:
		return &statusError{resp.StatusCode}
	}
	return nil
}

func byTyped(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries medium.typed on status 401, 403, 404, 409, 422`
		err := typed(c, url)
		if err == nil {
			return nil
		}
		var se *statusError
		if errors.As(err, &se) && se.Status == 400 {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

func bySentinel(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries medium.typed on status 400, 401, 403, 409, 422`
		err := typed(c, url)
		if err == nil || errors.Is(err, errMissing) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

// consumer goes on after a success, with the next page.
func consumer(c *http.Client, url string, use func(*http.Response) bool) error {
	for { // want `FB1035: retries http.Client.Get on status 400`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			wait()
			continue
		}
		if !use(resp) {
			return nil
		}
	}
}

// endless has no way out but a broken connection.
func endless(c *http.Client, url string, use func(*http.Response)) error {
	for { // want `FB1035: retries http.Client.Get on status 400`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode/100 != 2 {
			resp.Body.Close()
			wait()
			continue
		}
		use(resp)
	}
}

func throughKnown(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries helper.Fetch on status 400, 401, 403, 409, 422`
		err := helper.Fetch(c, url)
		if err == nil || !helper.Known(err) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

// again comes back to itself instead of a loop.
func again(c *http.Client, url string, left int) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil || resp.StatusCode < 200 || resp.StatusCode >= 300 {
		if left == 0 {
			return nil, errors.New("exhausted")
		}
		wait()
		return again(c, url, left-1) // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
	}
	return resp, nil
}

// Near misses.

func againOnOutage(c *http.Client, url string, left int) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil || resp.StatusCode == 429 || resp.StatusCode >= 500 {
		if left == 0 {
			return nil, errors.New("exhausted")
		}
		wait()
		return againOnOutage(c, url, left-1)
	}
	return resp, nil
}

func throughBusy(c *http.Client, url string) error {
	for range 3 {
		err := helper.Fetch(c, url)
		if err == nil || !helper.Busy(err) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

func againRefreshed(c *http.Client, url string, left int, refreshToken func()) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil || resp.StatusCode == 401 {
		if left == 0 {
			return nil, errors.New("exhausted")
		}
		refreshToken()
		wait()
		return againRefreshed(c, url, left-1, refreshToken)
	}
	return resp, nil
}

func byTypedOutage(c *http.Client, url string) error {
	for range 3 {
		err := typed(c, url)
		if err == nil || errors.Is(err, errMissing) {
			return err
		}
		var se *statusError
		if !errors.As(err, &se) || se.Status < 500 {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

// asking lets somebody else judge the response.
func asking(c *http.Client, url string, judge interface {
	Fair(*http.Response) bool
}) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode < 300 || !judge.Fair(resp) {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

// isRetryableStatus sees a status alone, and isRetryableError asks for no
// certificate.
func isRetryableStatus(status int) bool { return status == 0 || status == 429 || status >= 500 }

func isRetryableError(err error) bool {
	if err == nil {
		return false
	}
	var se *statusError
	if errors.As(err, &se) {
		return isRetryableStatus(se.Status)
	}
	return true
}
