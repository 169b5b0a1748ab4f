// Package asked repeats requests for as long as a policy says so, and looks at no
// failure itself.
package asked

import (
	"net/http"
	"time"
)

type policy interface {
	next(attempt int, resp *http.Response, err error) time.Duration
}

type transport struct {
	base   http.RoundTripper
	policy policy
}

func New(base http.RoundTripper, p policy) http.RoundTripper { return &transport{base, p} }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ { // want `FB1030: retries every request, whatever its method`
		resp, err := t.base.RoundTrip(req)
		d := t.policy.next(attempt, resp, err)
		if d < 0 {
			return resp, err
		}
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(d)
	}
}

// reading asks for reads alone.
type reading struct{ transport }

func NewReading(base http.RoundTripper, p policy) http.RoundTripper {
	return &reading{transport{base, p}}
}

func (t *reading) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		resp, err := t.base.RoundTrip(req)
		d := t.policy.next(attempt, resp, err)
		if d < 0 || req.Method != http.MethodGet {
			return resp, err
		}
		time.Sleep(d)
	}
}

// following sends each request once: where it is told to go next is another.
type following struct{ transport }

func NewFollowing(base http.RoundTripper) http.RoundTripper {
	return &following{transport{base: base}}
}

func (t *following) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		resp, err := t.base.RoundTrip(req)
		if err != nil || resp.Header.Get("Location") == "" {
			return resp, err
		}
	}
}
