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
