// Package place hands predicates and operations to helpers that retry.
package place

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

type client struct {
	CheckRetry func(ctx context.Context, resp *http.Response, err error) (bool, error)
	Accept     func(resp *http.Response) bool
}

func checked() *client {
	c := &client{}
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) { // want `FB1035: CheckRetry calls 400, 401, 403, 404, 409, 422 retryable`
		if err != nil {
			return true, nil
		}
		return resp.StatusCode >= 400, nil
	}
	return c
}

func retry(n int, f func() error) (err error) {
	for range n {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(rand.N(time.Second))
	}
	return err
}

func blindly(url string) error {
	return retry(3, func() error { // want `FB1035: retries through place.retry on status 400, 401, 403, 404, 409, 422`
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
}

func isRetryable(err error) bool { // want `FB1035: isRetryable calls a certificate error retryable`
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}

// Near misses.

func accepted() *client {
	return &client{Accept: func(resp *http.Response) bool { return resp.StatusCode >= 400 }}
}

func checkedWell() *client {
	c := &client{}
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		if err != nil {
			return true, nil
		}
		return resp.StatusCode == 429 || resp.StatusCode >= 500, nil
	}
	return c
}

func outagesOnly(url string) error {
	return retry(3, func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 500 {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
}

func retriesOthers(err error) bool {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return false
	}
	return true
}

// retryPolicy leaves certificate errors, as retryablehttp's does.
func retryPolicy(resp *http.Response, err error) (bool, error) {
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			if _, ok := u.Err.(x509.UnknownAuthorityError); ok {
				return false, u
			}
		}
		return true, nil
	}
	return resp.StatusCode >= 500, nil
}

// answer is decided by more than its status: the body names the reason.
type answer struct{ Reason string }

func read(resp *http.Response) (a answer) { return a }

func byReason(c *http.Client, req *http.Request) error {
	for range 3 {
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			if read(resp).Reason != "busy" {
				return errors.New(resp.Status)
			}
			resp.Body.Close()
			time.Sleep(rand.N(time.Second))
			continue
		}
		return resp.Body.Close()
	}
	return errors.New("busy")
}
