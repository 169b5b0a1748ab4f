// Package far is used by another package, which knows of it by facts alone.
package far

import (
	"errors"
	"net/http"
	"time"
)

// Get fails for each status but 200 and 404.
func Get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 && resp.StatusCode != 404 {
		return errors.New("refused")
	}
	return nil
}

// Post sends a write.
func Post(url string) error {
	resp, err := http.Post(url, "text/plain", nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Rest waits for what it is given.
func Rest(d time.Duration) { time.Sleep(d) }

// Again is a helper: it calls what it is given.
func Again(op func() error) (err error) {
	for range 3 {
		if err = op(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
