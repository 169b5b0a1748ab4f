// Package helper turns statuses into errors, for another package.
package helper

import (
	"errors"
	"net/http"
)

func Get(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		return errors.New("refused")
	}
	return nil
}

// Send returns the status as a number.
func Send(c *http.Client, url string) (int, error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// Refused is an error that holds a status.
type Refused struct{ StatusCode int }

func (r *Refused) Error() string { return http.StatusText(r.StatusCode) }

// Fetch returns a Refused.
func Fetch(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode >= 400 {
		return &Refused{resp.StatusCode}
	}
	return nil
}

// Busy is true for what may pass.
func Busy(err error) bool {
	var r *Refused
	return errors.As(err, &r) && (r.StatusCode == 429 || r.StatusCode > 499)
}

// Known is true for what has a status below 500 too.
func Known(err error) bool {
	var r *Refused
	return errors.As(err, &r) && r.StatusCode != 404
}
