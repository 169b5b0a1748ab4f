package forbeartest

import (
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
)

// Step is what happens to one request. It is plain data: fill it in, or start
// from [Status], [Text], [Reset], [Hang] or one of their siblings. The zero
// value responds 200 without a body.
type Step struct {
	Status int // 0 means 200
	Header http.Header
	Body   string
	Delay  time.Duration // before anything else happens
	Break  Break
	// Err is what a [RoundTripper] returns instead of a response. A [Server],
	// which cannot choose its client's error, resets the connection.
	Err error
}

// Break is a way not to respond.
type Break uint8

const (
	BreakNone Break = iota
	// BreakBeforeHeaders resets the connection without a response.
	BreakBeforeHeaders
	// BreakAfterHeaders sends the status and the headers, then resets.
	BreakAfterHeaders
	// BreakMidBody resets after the first half of the body.
	BreakMidBody
	// BreakHang never responds: it waits until the client leaves.
	BreakHang
	// BreakOnReuse responds on a fresh connection, but closes one that has
	// served before, as a server does whose idle connections have expired.
	// Such a request is recorded and does not use up the step.
	BreakOnReuse
)

// Status responds with a status and no body.
func Status(code int) Step { return Step{Status: code} }

// Text responds with a status and a body.
func Text(code int, body string) Step { return Step{Status: code, Body: body} }

// Reset resets the connection before any response.
func Reset() Step { return Step{Break: BreakBeforeHeaders} }

// ResetAfterHeaders sends a status and resets before the body.
func ResetAfterHeaders(code int) Step {
	return Step{Status: code, Body: "never sent", Break: BreakAfterHeaders}
}

// ResetMidBody sends a status and half of the body, then resets.
func ResetMidBody(code int, body string) Step {
	return Step{Status: code, Body: body, Break: BreakMidBody}
}

// Hang never responds.
func Hang() Step { return Step{Break: BreakHang} }

// CloseOnReuse responds with a status, but only on a fresh connection.
func CloseOnReuse(code int) Step { return Step{Status: code, Break: BreakOnReuse} }

// Fail makes a [RoundTripper] return err.
func Fail(err error) Step { return Step{Err: err, Break: BreakBeforeHeaders} }

// With returns the step with one more header line.
func (s Step) With(name, value string) Step {
	h := maps.Clone(s.Header)
	if h == nil {
		h = http.Header{}
	}
	// Clone is shallow: do not append to the other step's lines.
	name = http.CanonicalHeaderKey(name)
	h[name] = append(h[name][:len(h[name]):len(h[name])], value)
	s.Header = h
	return s
}

// After returns the step delayed by d.
func (s Step) After(d time.Duration) Step {
	s.Delay = d
	return s
}

func (s Step) status() int {
	if s.Status == 0 {
		return http.StatusOK
	}
	return s.Status
}

// Request is one request as it arrived.
type Request struct {
	Number int // in order of arrival, from 1
	Method string
	Path   string
	Query  string
	Header http.Header
	Body   []byte
	Time   time.Time
	// Reused says that its connection had served a request before; always
	// false in a [RoundTripper].
	Reused bool
}

// maxBody bounds the recorded part of a request's body.
const maxBody = 16 << 20

// script hands out steps and records requests. It is safe for concurrent use.
type script struct {
	mu       sync.Mutex
	steps    []Step
	next     int
	requests []Request
}

// take records the request and returns its step.
func (s *script) take(r *http.Request, reused bool) Step {
	var body []byte
	if r.Body != nil {
		// A client that breaks off is part of many tests: keep what came.
		body, _ = io.ReadAll(io.LimitReader(r.Body, maxBody))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Number: len(s.requests) + 1,
		Method: r.Method,
		Path:   r.URL.Path,
		Query:  r.URL.RawQuery,
		Header: r.Header.Clone(),
		Body:   body,
		Time:   time.Now(),
		Reused: reused,
	})
	if len(s.steps) == 0 {
		return Step{}
	}
	step := s.steps[min(s.next, len(s.steps)-1)]
	if step.Break != BreakOnReuse || !reused {
		s.next++
	}
	return step
}

// Requests returns what has arrived so far, in order.
func (s *script) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Keys returns the Idempotency-Key of each request so far, in order; "" for
// one without.
func (s *script) Keys() []string {
	var keys []string
	for _, r := range s.Requests() {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
	}
	return keys
}

// Gaps returns the times between the arrivals so far.
func (s *script) Gaps() []time.Duration {
	var gaps []time.Duration
	requests := s.Requests()
	for i := 1; i < len(requests); i++ {
		gaps = append(gaps, requests[i].Time.Sub(requests[i-1].Time))
	}
	return gaps
}

// Script replaces the steps still to come.
func (s *script) Script(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.next = steps, 0
}
