// Package policed repeats requests as a policy says that its users may replace:
// what it does by default counts.
package policed

import (
	"math/rand"
	"net/http"
	"net/http/httputil"
	"time"
)

// A schedule looks at the outcome, and there is one kind of it.
type schedule interface {
	next(attempt int, resp *http.Response, err error) (time.Duration, error)
}

type byStatus struct{ again func(*http.Response) bool }

var usual schedule = &byStatus{again: overloaded}

func overloaded(resp *http.Response) bool { return resp.StatusCode >= 500 }

func (b *byStatus) next(attempt int, resp *http.Response, err error) (time.Duration, error) {
	if err == nil && !b.again(resp) {
		return -1, nil
	}
	return time.Duration(rand.Int63n(int64(time.Second) << attempt)), nil
}

type scheduled struct {
	base     http.RoundTripper
	schedule schedule
}

func (t *scheduled) RoundTrip(req *http.Request) (*http.Response, error) {
	s := t.schedule
	if s == nil {
		s = usual
	}
	for attempt := 0; ; attempt++ {
		resp, err := t.base.RoundTrip(req) // want `FB1030: retries every request, whatever its method`
		d, stop := s.next(attempt, resp, err)
		if stop != nil {
			return nil, stop
		}
		if d < 0 {
			return resp, err
		}
		time.Sleep(d)
	}
}

// A cautious schedule looks at the method as well, in what it asks by default.
type cautious interface {
	pause(attempt int, resp *http.Response, err error) time.Duration
}

type byMethod struct{ again func(*http.Response) bool }

func newCautious() cautious { return &byMethod{again: harmless} }

func harmless(resp *http.Response) bool {
	return resp.StatusCode >= 500 && resp.Request.Method == http.MethodGet
}

func (b *byMethod) pause(attempt int, resp *http.Response, err error) time.Duration {
	if err != nil || !b.again(resp) {
		return -1
	}
	return time.Duration(rand.Int63n(int64(time.Second) << attempt))
}

type guarded struct{ base http.RoundTripper }

func (t *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	c := newCautious()
	for attempt := 0; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		d := c.pause(attempt, resp, err)
		if d < 0 {
			return resp, err
		}
		time.Sleep(d)
	}
}

// A pace says nothing of the outcome, and a response that is thrown away nothing
// of the method: what chooses is not seen.
type pace interface{ step() time.Duration }

type paced struct {
	base http.RoundTripper
	pace pace
}

func (t *paced) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := t.base.RoundTrip(req)
		if known(resp) {
			return resp, err
		}
		d := t.pace.step()
		time.Sleep(d)
	}
}

func known(resp *http.Response) bool {
	text, _ := httputil.DumpResponse(resp, false)
	return strict(resp) && len(text) > 0
}

// strict may be set to anything.
var strict func(*http.Response) bool

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
	base  http.RoundTripper
	again func(*http.Response, error) bool
}

func NewChoosy(base http.RoundTripper) http.RoundTripper {
	return &choosy{base: base, again: func(resp *http.Response, err error) bool {
		return err == nil && resp.StatusCode == 503 && resp.Request.Method != "POST"
	}}
}

func (c *choosy) RoundTrip(req *http.Request) (*http.Response, error) {
	var resp *http.Response
	var err error
	for attempt := range 3 {
		if resp, err = c.base.RoundTrip(req); !c.again(resp, err) {
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
	for attempt := range 3 {
		if resp, err = c.base.RoundTrip(req); !c.again(resp, err) {
			return resp, err
		}
		time.Sleep(time.Duration(rand.Int63n(int64(time.Second) << attempt)))
	}
	return resp, err
}
