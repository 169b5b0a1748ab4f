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

type probe struct {
	url    string
	accept func(status int) bool
}

func newProbe(url string) *probe {
	return &probe{url: url, accept: func(status int) bool { return status == 200 }}
}

func (p *probe) byDefault(c *http.Client) error {
	for range 3 { // want `FB1035: retries http.Client.Get on status 400`
		resp, err := c.Get(p.url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if p.accept == nil || p.accept(resp.StatusCode) {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

func byWanted(c *http.Client, url string, wantStatus int) error {
	for range 3 { // want `FB1035: retries http.Client.Get on status 400`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == wantStatus {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

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

type caller interface{ Call(name string) error }

// throughInterface knows of the response by its error alone.
func throughInterface(c caller) error {
	for range 3 { // want `FB1035: retries medium.caller.Call on status 409`
		err := c.Call("get")
		var r *helper.Refused
		if errors.As(err, &r) && (r.StatusCode == 409 || r.StatusCode == 503) {
			wait()
			continue
		}
		return err
	}
	return errors.New("exhausted")
}

func throughNumber(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries helper.Send on status 400, 401, 403, 404, 409, 422`
		n, err := helper.Send(c, url)
		if err != nil {
			return err
		}
		if n/100 == 2 {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
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

// A code may be that of another protocol.

type coded struct{ Code int }

func (r *coded) Error() string { return "refused" }

func dialCoded(addr string) error

func byCode(addr string) error {
	for range 3 { // want `FB1035: retries medium.dialCoded on status 400`
		err := dialCoded(addr)
		if err == nil {
			return nil
		}
		var r *coded
		if errors.As(err, &r) && r.Code == 404 {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}
