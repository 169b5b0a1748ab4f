package a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	errGone  = errors.New("gone")
	errAgain = errors.New("again")
)

// feed opens a stream; a 404 has an error of its own.
func feed(c *http.Client, url string) (*http.Response, error) {
	resp, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, errGone
	case resp.StatusCode >= 300:
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp, nil
}

// consumes goes on after a success, and waits after a failure alone.
func consumes(c *http.Client, url string, handle func(*http.Response)) {
	for { // want `FB1035: retries a.feed on status 400, 401, 403, 404, 409, 422`
		resp, err := feed(c, url)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		handle(resp)
	}
}

// consumesUntilRefused knows what the server said by the error.
func consumesUntilRefused(c *http.Client, url string, handle func(*http.Response), known func(error) bool) {
	for {
		resp, err := feed(c, url)
		if known(err) {
			return
		}
		if err != nil {
			wait()
			continue
		}
		handle(resp)
	}
}

// waitUntilUp polls, and goes on after a 403 as after a 503.
func waitUntilUp(c *http.Client, url string) {
	for { // want `FB1035: retries http.Client.Get on status 400, 401, 403, 404, 409, 422`
		resp, err := c.Get(url)
		if err == nil && resp.StatusCode == http.StatusOK {
			return
		}
		time.Sleep(time.Second)
	}
}

// waitUntilThere polls for what is not there yet, and for nothing else.
func waitUntilThere(c *http.Client, url string) error {
	for {
		resp, err := c.Get(url)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusNotFound {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// gone asks something else about a 404 too.
func gone(c *http.Client, url string, moved func() bool) (*http.Response, error) {
	for { // want `FB1035: retries a.feed on status 400, 401, 403, 404, 409, 422`
		resp, err := feed(c, url)
		if err == nil {
			return resp, nil
		}
		if errors.Is(err, errGone) && !moved() {
			return nil, err
		}
		wait()
	}
}

// other asks for an error that feed does not return for any status.
func other(c *http.Client, url string) (*http.Response, error) {
	for { // want `FB1035: retries a.feed on status 400, 401, 403, 404, 409, 422`
		resp, err := feed(c, url)
		if err == nil || errors.Is(err, errAgain) {
			return resp, err
		}
		wait()
	}
}

// asks cannot be told: what says it may know the error of a 403.
func asks(c *http.Client, url string, fatal func(error) bool) (*http.Response, error) {
	for {
		resp, err := feed(c, url)
		if err == nil || fatal(err) {
			return resp, err
		}
		wait()
	}
}

// refusal is an error that says more than the status.
type refusal struct {
	StatusCode int
	Why        string
}

func (r *refusal) Error() string { return r.Why }

func explained(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return &refusal{resp.StatusCode, resp.Header.Get("Why")}
	}
	return nil
}

// byWhy looks at what the error says beside its status.
func byWhy(c *http.Client, url string) error {
	for {
		err := explained(c, url)
		var r *refusal
		if err == nil || !errors.As(err, &r) || r.StatusCode != 400 || r.Why != "busy" {
			return err
		}
		wait()
	}
}

// drains sends something else after each failure.
func drains(c *http.Client, url string, items <-chan []byte) {
	for {
		item := <-items
		resp, err := c.Post(url, "text/plain", bytes.NewReader(item))
		if err != nil || resp.StatusCode != http.StatusOK {
			wait()
			continue
		}
		resp.Body.Close()
	}
}

// drainsList is the same for what is taken off a list.
func drainsList(c *http.Client, url string, next func() any) {
	for {
		item := next()
		body, _ := json.Marshal(item)
		resp, err := c.Post(url, "text/plain", bytes.NewReader(body))
		if err != nil || resp.StatusCode != http.StatusOK {
			wait()
			continue
		}
		resp.Body.Close()
	}
}

// A streamError has the code of another protocol.
type streamError struct{ Code uint32 }

func (streamError) Error() string { return "reset" }

// onReset repeats what a reset stream has cut off, and no response.
func onReset(c *http.Client, req *http.Request) (*http.Response, error) {
	for {
		resp, err := c.Do(req)
		if err == nil {
			return resp, nil
		}
		var reset streamError
		if !errors.As(err, &reset) {
			return nil, err
		}
		time.Sleep(time.Second)
	}
}

// exactly takes one success for a success, and others for failures.
func exactly(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// renews goes on after a success, too, and waits longer then.
func renews(c *http.Client, url string) {
	for { // want `FB1035: retries a.exactly on status 400, 401, 403, 404, 409, 422`
		if err := exactly(c, url); err != nil {
			time.Sleep(time.Second)
			continue
		}
		time.Sleep(time.Hour)
	}
}

// answered takes every response for a success.
func answered(c *http.Client, url string) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// renewsAny waits so only when there was no response.
func renewsAny(c *http.Client, url string) {
	for {
		if err := answered(c, url); err != nil {
			time.Sleep(time.Second)
			continue
		}
		time.Sleep(time.Hour)
	}
}
