// Package a holds retries on 429.
package a

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

func ignored(c *http.Client, url string) error {
	for range 3 { // want `FB1055: retries http.Client.Get on 429 or 503 without a look at Retry-After`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			time.Sleep(rand.N(time.Second))
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func honored(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			s, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			time.Sleep(time.Duration(s)*time.Second + rand.N(time.Second))
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func pause(resp *http.Response) {
	s, _ := strconv.Atoi(resp.Header.Get("retry-after"))
	time.Sleep(time.Duration(s)*time.Second + rand.N(time.Second))
}

func byHelper(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			pause(resp)
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func final(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err == nil {
			return resp.Body.Close()
		}
		time.Sleep(rand.N(time.Second))
	}
	return errors.New("exhausted")
}
