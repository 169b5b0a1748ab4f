package a

import (
	"errors"
	"net/http"
)

// Statuses in ranges, classes, variables, fields, lists.

func between(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err == nil && resp.StatusCode >= 200 && resp.StatusCode < 300 {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

func isSuccess(resp *http.Response) bool { return resp.StatusCode/100 == 2 }

func bySuccess(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		if good := isSuccess(resp); !good {
			resp.Body.Close()
			wait()
			continue
		}
		return resp.Body.Close()
	}
	return errors.New("exhausted")
}

func byFlag(c *http.Client, url string) (err error) {
	done := false
	for i := 0; i < 4 && !done; i++ { // want `FB1035: retries http.Client.Get on status 400`
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if done = resp.StatusCode < 300; !done {
			wait()
		}
	}
	return nil
}

type reply struct {
	kind int // the status
	text string
}

func fetch(c *http.Client, url string) (reply, error) {
	resp, err := c.Get(url)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	return reply{kind: resp.StatusCode, text: resp.Status}, nil
}

func byField(c *http.Client, url string) error {
	for range 3 { // want `FB1035: retries a.fetch on status 400`
		r, err := fetch(c, url)
		if err == nil && r.kind < 300 {
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

type pool struct {
	CheckRetry func(resp *http.Response, err error) (bool, error)
}

func policy(resp *http.Response, err error) (bool, error) { // want `FB1035: CheckRetry calls 400, 401, 403, 404, 409, 422 retryable`
	return err != nil || resp.StatusCode > 399, nil
}

func newPool() *pool { return &pool{CheckRetry: policy} }

// Near misses.

func outages(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if outage := resp.StatusCode >= 500 && resp.StatusCode <= 599; outage {
			wait()
			continue
		}
		return nil
	}
	return errors.New("exhausted")
}

func byClass(c *http.Client, url string) error {
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		resp.Body.Close()
		switch class := resp.StatusCode / 100; class {
		case 2, 3, 4:
			return nil
		}
		wait()
	}
	return errors.New("exhausted")
}

func pooled(resp *http.Response, err error) (bool, error) {
	return err != nil || resp.StatusCode == 429 || resp.StatusCode > 499, nil
}

func newOtherPool() *pool { return &pool{CheckRetry: pooled} }

// Bounds of which one of several is chosen: what lies beyond all of them is a
// failure.

func chosenBound(c *http.Client, url string, strict bool) error {
	most := 299
	if strict {
		most = 204
	}
	for range 3 { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err == nil && resp.StatusCode >= 200 && resp.StatusCode <= most {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}

// lenientBound is less sure: with the other bound nothing is sent again that is
// final.
func lenientBound(c *http.Client, url string, lenient bool) error {
	most := 299
	if lenient {
		most = 499
	}
	for range 3 {
		resp, err := c.Get(url)
		if err == nil && resp.StatusCode <= most {
			return resp.Body.Close()
		}
		wait()
	}
	return errors.New("exhausted")
}
