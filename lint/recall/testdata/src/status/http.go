// Package status holds retries on answers that no retry can mend.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

func jittered(attempt int) time.Duration {
	return rand.N(min(30*time.Second, 200*time.Millisecond<<attempt))
}

// case not 200, continue: FB1035

func Fetch(u string) ([]byte, error) {
	for i := 0; i < 5; i++ {
		resp, err := http.Get(u)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != 200 {
			resp.Body.Close()
			time.Sleep(jittered(i))
			continue
		}
		defer resp.Body.Close()
		return io.ReadAll(resp.Body)
	}
	return nil, errors.New("no luck")
}

// case 400 and above: FB1035

func Get(c *http.Client, req *http.Request) (resp *http.Response, err error) {
	for n := range 4 {
		resp, err = c.Do(req)
		if err == nil && resp.StatusCode < 400 {
			return resp, nil
		}
		if err == nil {
			resp.Body.Close()
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
		time.Sleep(jittered(n))
	}
	return nil, err
}

// case switch with a default: FB1035

func Poke(ctx context.Context, c *http.Client, u string) error {
	attempt := 0
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK, http.StatusNoContent:
			return nil
		case http.StatusUnauthorized:
			return errors.New("log in first")
		default:
			attempt++
			if attempt == 6 {
				return fmt.Errorf("still %s", resp.Status)
			}
			time.Sleep(jittered(attempt))
		}
	}
}

// case map of codes: FB1035

var retryStatus = map[int]bool{
	http.StatusNotFound:            true,
	http.StatusTooManyRequests:     true,
	http.StatusInternalServerError: true,
	http.StatusBadGateway:          true,
}

func Download(u string) (*http.Response, error) {
	var resp *http.Response
	var err error
	for i := range 3 {
		resp, err = http.Get(u)
		if err != nil || !retryStatus[resp.StatusCode] {
			return resp, err
		}
		resp.Body.Close()
		time.Sleep(jittered(i))
	}
	return resp, err
}

// case slice of codes: FB1035 FB1030

type options struct {
	RetryOn []int
	Max     int
}

func defaults() options {
	return options{
		RetryOn: []int{http.StatusConflict, http.StatusTooManyRequests, 500, 502, 503, 504},
		Max:     3,
	}
}

func (o options) Do(c *http.Client, req *http.Request) (*http.Response, error) {
	for i := 0; ; i++ {
		resp, err := c.Do(req)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(o.RetryOn, resp.StatusCode) || i == o.Max {
			return resp, nil
		}
		resp.Body.Close()
		time.Sleep(jittered(i))
	}
}

// case predicate on a code: FB1035

func shouldRetry(code int) bool {
	switch code {
	case 401, 403, 408, 429:
		return true
	}
	return code >= 500
}

// case predicate on a response: FB1035

func retryableResponse(resp *http.Response, err error) bool {
	if err != nil {
		return true
	}
	return resp.StatusCode != http.StatusOK
}

func Head(c *http.Client, u string) (*http.Response, error) {
	resp, err := c.Head(u)
	for i := 0; i < 3 && retryableResponse(resp, err); i++ {
		time.Sleep(jittered(i))
		resp, err = c.Head(u)
	}
	return resp, err
}

// case typed error, status 400 and above: FB1035

type httpError struct {
	Status int
	Body   string
}

func (e *httpError) Error() string { return fmt.Sprintf("%d: %s", e.Status, e.Body) }

func isTemporary(err error) bool {
	var he *httpError
	if errors.As(err, &he) {
		return he.Status >= 400
	}
	return false
}

func fetchJSON(u string, out any) error {
	resp, err := http.Get(u)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return &httpError{resp.StatusCode, string(b)}
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func Load(u string, out any) error {
	for i := 0; i < 4; i++ {
		err := fetchJSON(u, out)
		if err == nil || !isTemporary(err) {
			return err
		}
		time.Sleep(jittered(i))
	}
	return errors.New("gave up")
}

// case every error of a helper that judges the status: FB1035

func ping(u string) error {
	resp, err := http.Get(u)
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ping: unexpected status %s", resp.Status)
	}
	return nil
}

func EnsureUp(u string) (err error) {
	for i := range 8 {
		if err = ping(u); err == nil {
			return nil
		}
		time.Sleep(jittered(i))
	}
	return err
}

// case equality with not found: FB1035

func Lookup(u string) (*http.Response, error) {
	tries := 3
retry:
	resp, err := http.Get(u)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && tries > 0 {
		resp.Body.Close()
		tries--
		time.Sleep(jittered(3 - tries))
		goto retry
	}
	return resp, nil
}

// case range of 2xx by division: FB1035

func Upload(c *http.Client, mk func() *http.Request) error {
	var code int
	for i := 0; i < 3; i++ {
		resp, err := c.Do(mk())
		if err != nil {
			return err
		}
		resp.Body.Close()
		code = resp.StatusCode
		if code/100 == 2 {
			return nil
		}
		time.Sleep(jittered(i))
	}
	return fmt.Errorf("upload failed: %d", code)
}
