// Package a holds defers in and out of retry loops.
package a

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

func wait() { time.Sleep(rand.N(time.Second)) }

func inside(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			wait()
			continue
		}
		defer resp.Body.Close() // want `FB1053: defers io.Closer.Close in a loop that retries http.Client.Get`
		if resp.StatusCode < 500 {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

func onTheWayOut(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			wait()
			continue
		}
		defer resp.Body.Close()
		return nil
	}
	return errors.New("exhausted")
}

func ofItsOwn(c *http.Client, url string) (err error) {
	for range 3 {
		err = func() error {
			resp, err := c.Get(url)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			return nil
		}()
		if err == nil {
			return nil
		}
		wait()
	}
	return err
}

// settled defers only after a success, which no attempt follows.
func settled(c *http.Client, req *http.Request) error {
	for range 3 {
		resp, err := c.Do(req)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		return errors.New(resp.Status)
	}
	return errors.New("no answer")
}
