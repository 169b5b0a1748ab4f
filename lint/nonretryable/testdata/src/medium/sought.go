package medium

import (
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"strconv"
	"time"
)

type limited struct{ after time.Duration }

func (*limited) Error() string { return "limited" }

// page asks for a page; a 429 has an error of its own.
func page(c *http.Client, url string) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, &limited{after: time.Duration(seconds) * time.Second}
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp, nil
}

// pages goes on after a success, and after what the server says.
func pages(c *http.Client, url string, handle func(*http.Response)) error {
	for {
		resp, err := page(c, url)
		if err != nil {
			over, ok := errors.AsType[*limited](err)
			if !ok {
				return err
			}
			time.Sleep(over.after)
			continue
		}
		handle(resp)
	}
}

// pagesAnyhow waits after any failure.
func pagesAnyhow(c *http.Client, url string, handle func(*http.Response)) {
	for { // want `FB1035: retries medium.page on status 400, 401, 403, 404, 409, 422`
		resp, err := page(c, url)
		if err != nil {
			if over, ok := errors.AsType[*limited](err); ok {
				time.Sleep(over.after)
			} else {
				time.Sleep(time.Second)
			}
			continue
		}
		handle(resp)
	}
}

// pageOnce ends with the first success, and looks into the error by its type.
func pageOnce(c *http.Client, url string) (*http.Response, error) {
	for {
		resp, err := page(c, url)
		if err == nil {
			return resp, nil
		}
		if _, ok := errors.AsType[*limited](err); !ok {
			return nil, err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second))))
	}
}

// Deep below, it is not seen which error a status becomes.
func page1(c *http.Client, url string) (*http.Response, error) { return page(c, url) }
func page2(c *http.Client, url string) (*http.Response, error) { return page1(c, url) }
func page3(c *http.Client, url string) (*http.Response, error) { return page2(c, url) }
func page4(c *http.Client, url string) (*http.Response, error) { return page3(c, url) }
func page5(c *http.Client, url string) (*http.Response, error) { return page4(c, url) }

// everyPage ends with an error, unless that says when to come back.
func everyPage(c *http.Client, url string, handle func(*http.Response)) (err error) {
	var resp *http.Response
	for err == nil {
		resp, err = page5(c, url)
		if err == nil {
			handle(resp)
		} else if over, ok := errors.AsType[*limited](err); ok {
			time.Sleep(over.after)
			err = nil
		}
	}
	return err
}
