package deep

import (
	"fmt"
	"math/rand"
	"net/http"
	"time"
)

type counted struct {
	http  *http.Client
	count int
}

func (c *counted) once(url string) (*http.Response, error) {
	resp, err := c.http.Get(url)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		resp.Body.Close()
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp, nil
}

// some makes an attempt at least, as what counts attempts does.
func (c *counted) some(url string, again func(error) bool) (resp *http.Response, err error) {
	for n := 0; n < c.count; n++ {
		resp, err = c.once(url)
		if again(err) {
			continue
		}
		break
	}
	return resp, err
}

func (c *counted) fetch(url string, again func(error) bool) (*http.Response, error) {
	for { // want `FB1035: retries deep.counted.some on status 400, 401, 403, 404, 409, 422`
		resp, err := c.some(url, again)
		if err == nil {
			return resp, nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second))))
	}
}

// others tries only what a server may do later, and hands the rest on.
func (c *counted) others(url string) error {
	for n := 0; n < c.count; n++ {
		resp, err := c.http.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil
		}
		if resp.StatusCode < 500 {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	return nil
}

func (c *counted) fetchOthers(url string) error {
	for { // want `FB1035: retries deep.counted.others on status 400, 401, 403, 404, 409, 422`
		if err := c.others(url); err == nil {
			return nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second))))
	}
}

// each asks as many as there are, which may be none.
func (c *counted) each(urls []string) (err error) {
	for _, u := range urls {
		if _, err = c.once(u); err == nil {
			break
		}
	}
	return err
}

func (c *counted) fetchAny(urls []string) error {
	for {
		if err := c.each(urls); err == nil {
			return nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second))))
	}
}
