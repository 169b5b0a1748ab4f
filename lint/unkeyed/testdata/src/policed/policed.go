// Package policed repeats requests as a condition says that its users may replace.
package policed

import (
	"math/rand"
	"net/http"
	"time"
)

// A condition in a field is the package's own unless an option replaces it.
type conditional struct {
	base  http.RoundTripper
	again func(*http.Response, error) bool
}

type option func(*conditional)

func While(fn func(*http.Response, error) bool) option {
	return func(c *conditional) { c.again = fn }
}

func New(base http.RoundTripper, opts ...option) http.RoundTripper {
	c := &conditional{base: base, again: passing}
	for _, o := range opts {
		o(c)
	}
	return c
}

func passing(resp *http.Response, err error) bool { return err != nil || resp.StatusCode == 503 }

func (c *conditional) RoundTrip(req *http.Request) (*http.Response, error) {
	var resp *http.Response
	var err error
	for attempt := range 3 { // want `FB1030: retries every request, whatever its method`
		if resp, err = c.base.RoundTrip(req); !c.again(resp, err) {
			return resp, err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return resp, err
}

// The same with a condition that looks at the method.
type choosy struct {
	base   http.RoundTripper
	choose func(*http.Response, error) bool
}

func NewChoosy(base http.RoundTripper) http.RoundTripper {
	return &choosy{base: base, choose: func(resp *http.Response, err error) bool {
		return err == nil && resp.StatusCode == 503 && resp.Request.Method != "POST"
	}}
}

func (c *choosy) RoundTrip(req *http.Request) (*http.Response, error) {
	var resp *http.Response
	var err error
	for attempt := range 3 {
		if resp, err = c.base.RoundTrip(req); !c.choose(resp, err) {
			return resp, err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return resp, err
}

// And with one that nothing but its users sets.
type given struct {
	base  http.RoundTripper
	again func(*http.Response, error) bool
}

func NewGiven(base http.RoundTripper, again func(*http.Response, error) bool) http.RoundTripper {
	return &given{base: base, again: again}
}

func (c *given) RoundTrip(req *http.Request) (*http.Response, error) {
	var resp *http.Response
	var err error
	for attempt := range 3 { // want `FB1030: retries every request, whatever its method`
		if resp, err = c.base.RoundTrip(req); !c.again(resp, err) {
			return resp, err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return resp, err
}

// A round tripper that is a literal hands its request on.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func Persistent(base http.RoundTripper) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) { return persist(base, req, 3) })
}

func persist(base http.RoundTripper, req *http.Request, times int) (resp *http.Response, err error) {
	for attempt := range times { // want `FB1030: retries every request, whatever its method`
		if resp, err = base.RoundTrip(req); err == nil {
			return resp, nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return nil, err
}

// A method that exchanges a request for a response is one of a client.
func (c *conditional) Stream(req *http.Request) (resp *http.Response, err error) {
	for attempt := range 3 { // want `FB1030: retries every request, whatever its method`
		if resp, err = c.base.RoundTrip(req); err == nil {
			return resp, nil
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return nil, err
}
