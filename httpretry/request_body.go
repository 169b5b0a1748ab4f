package httpretry

import (
	"net/http"

	"github.com/forbear-go/forbear"
)

// rewind readies the request's body for a next attempt while the response
// to the last one can still be handed over: with a body that is gone, or that the
// caller's GetBody cannot give again, the call ends with that response.
func (x *exchange) rewind(s *forbear.State, f *forbear.Failure) {
	if x.body != nil {
		s.Unreplayable = !x.body.replayable()
		return
	}
	if x.envelope != nil || x.req.GetBody == nil || x.req.Body == nil || x.req.Body == http.NoBody {
		return
	}
	next, err := x.req.GetBody()
	if err != nil {
		s.Unreplayable = true
		f.Err = &bodyError{last: f.Err, err: err}
		return
	}
	x.next = next
}

// setBody gives a retry its body.
func (x *exchange) setBody(req *http.Request) {
	switch {
	case x.body != nil:
		req.Body = x.body.reader()
	case x.next != nil:
		req.Body, x.next = x.next, nil
	}
}

// closeNext closes a body that no attempt will send.
func (x *exchange) closeNext() {
	if x.next != nil {
		_ = x.next.Close()
		x.next = nil
	}
}

// bodyError is the failure of the caller's own GetBody, beside that of the
// attempt before it.
type bodyError struct{ last, err error }

// Error names both: the attempt's own failure is why there was a need to rewind.
func (e *bodyError) Error() string {
	if e.last == nil {
		return "rewinding the request body: " + e.err.Error()
	}
	return e.last.Error() + "; rewinding the request body: " + e.err.Error()
}

func (e *bodyError) Unwrap() []error { return []error{e.last, e.err} }
