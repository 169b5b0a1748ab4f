package a

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"syscall"
)

// Code that repeats whatever it is given.

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

type persistent struct {
	inner doer
	times int
}

func (p persistent) Do(req *http.Request) (resp *http.Response, err error) {
	for range p.times { // want `FB1030: retries every request, whatever its method`
		log.Print(req.Method, req.URL)
		if resp, err = p.inner.Do(req); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

func decorate(next func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (resp *http.Response, err error) {
		for range 3 { // want `FB1030: retries every request, whatever its method`
			if resp, err = next(req); err == nil {
				return resp, nil
			}
			wait()
		}
		return nil, err
	}
}

func (p persistent) recursive(req *http.Request, left int) (*http.Response, error) {
	resp, err := p.inner.Do(req)
	if err != nil && left > 0 {
		wait()
		return p.recursive(req, left-1) // want `FB1030: retries whatever method it is given, POST by submit too`
	}
	return resp, err
}

func submit(p persistent, body io.Reader) error {
	req, err := http.NewRequest("POST", "http://example.com", body)
	if err != nil {
		return err
	}
	_, err = p.recursive(req, 3)
	return err
}

// Near misses: a look at the method decides.

type guarded struct{ next http.RoundTripper }

func (t guarded) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.Method == http.MethodPost || req.Method == http.MethodPatch {
		return t.next.RoundTrip(req)
	}
	for range 3 {
		if resp, err = t.next.RoundTrip(req); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

var repeatable = map[string]bool{"GET": true, "PUT": true}

type byTable struct{ next http.RoundTripper }

func (t byTable) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = t.next.RoundTrip(req); err == nil || !repeatable[req.Method] {
			return resp, err
		}
		wait()
	}
	return nil, err
}

type byPredicate struct{ next http.RoundTripper }

func again(req *http.Request, err error) bool {
	return err != nil && slices.Contains([]string{"GET", "HEAD"}, req.Method)
}

func (t byPredicate) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = t.next.RoundTrip(req); !again(req, err) {
			return resp, err
		}
		wait()
	}
	return nil, err
}

type byCount struct{ next http.RoundTripper }

func (t byCount) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	attempts := 1
	switch req.Method {
	case http.MethodGet, http.MethodDelete:
		attempts = 4
	}
	for range attempts {
		if resp, err = t.next.RoundTrip(req); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

func (p persistent) careful(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		if resp, err = p.inner.Do(req); err == nil {
			return resp, nil
		}
		wait()
	}
	return nil, err
}

func readsCarefully(p persistent) error {
	req, err := http.NewRequest("GET", "http://example.com", nil)
	if err != nil {
		return err
	}
	_, err = p.careful(req)
	return err
}

func inCallback(c *client, method string) error {
	return retry(3, func() error {
		err := c.send(method, "/x")
		if err != nil && method == http.MethodPost {
			log.Print("not again")
			return nil
		}
		return err
	})
}

func callsInCallback(c *client) error { return inCallback(c, "POST") }

// Near misses: what failed was not sent.

func refusedConnection(c *client) error {
	for range 3 {
		err := c.create(nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func notDialed(c *client) error {
	for range 3 {
		err := c.create(nil)
		if !isDialError(err) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

var errConflict = errors.New("conflict")

// conflicting repeats what the server refused for a reason that it named.
func conflicting(c *client) error {
	for range 3 {
		err := c.create(nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

// reset may have been sent: the connection broke at any time.
func reset(c *client) error {
	for range 3 { // want `FB1030: retries POST`
		err := c.create(nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
		wait()
	}
	return errors.New("exhausted")
}

// policyByMethod picks a policy by the method, which may leave a write out.
func (p persistent) under(req *http.Request, policy func(error) bool) (resp *http.Response, err error) {
	for range 3 { // want `FB1030: retries whatever method it is given, POST by unchosen too`
		if resp, err = p.inner.Do(req); err == nil || !policy(err) {
			return resp, err
		}
		wait()
	}
	return nil, err
}

func unchosen(p persistent) error {
	req, err := http.NewRequest("POST", "http://example.com", nil)
	if err != nil {
		return err
	}
	_, err = p.under(req, func(error) bool { return true })
	return err
}
