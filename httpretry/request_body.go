package httpretry

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/forbear-go/forbear"
)

// prepareBody readies the request's body for replay: by the request's own GetBody,
// from memory where it lies in memory anyway, from its beginning where it can seek,
// and else from a buffer that fills while the first attempt sends it.
func (x *exchange) prepareBody(s *forbear.State, p *forbear.Policy) {
	body := x.req.Body
	if body == nil || body == http.NoBody || x.req.GetBody != nil {
		return
	}
	if p.Retries() == 0 || s.NeedsKey && s.Key == "" && !p.RetryUnsent && !x.unkeyed {
		s.Unreplayable = true
		return
	}
	if x.again = snapshot(body); x.again != nil {
		return
	}
	if x.body = newReplay(body, x.t.bodyLimit, x.t.bodyMemory); x.body == nil {
		s.Unreplayable = true
		return
	}
	x.body.announce(x.req.Trailer)
}

// getBody returns what gives the body again, or nil.
func (x *exchange) getBody() func() (io.ReadCloser, error) {
	if x.again != nil {
		return x.again
	}
	return x.req.GetBody
}

// rewind readies the request's body for a next attempt, if there may be one, while the
// response to the last can still be handed over: with a body that is gone, or that the
// caller's GetBody cannot give again, the call ends with that response.
func (x *exchange) rewind(s *forbear.State, f *forbear.Failure) {
	if !x.mayRepeat(f) {
		return
	}
	if x.body != nil {
		s.Unreplayable = !x.body.hold()
		return
	}
	again := x.getBody()
	if x.envelope != nil || again == nil || x.req.Body == nil || x.req.Body == http.NoBody {
		return
	}
	next, err := again()
	if err != nil {
		s.Unreplayable = true
		f.Err = &bodyError{last: f.Err, err: err}
		return
	}
	x.next = next
}

// mayRepeat reports whether the class of a failure does not rule another attempt out.
func (x *exchange) mayRepeat(f *forbear.Failure) bool {
	switch f.Class {
	case forbear.ClassCanceled, forbear.ClassCertificate:
		return false
	case forbear.ClassUnauthorized:
		return true
	}
	return f.Class.Retryable() || x.reclassed
}

// decided ends what rewind began. The upload of a response that is handed over goes on;
// where another attempt follows, that of the last one is of the past.
func (x *exchange) decided(retry bool) {
	switch {
	case !retry:
		x.closeNext()
		if x.body != nil {
			x.body.release()
		}
	case x.body != nil:
		x.body.next()
	}
}

// setBody gives an attempt its body, and net/http the means to begin it again.
func (x *exchange) setBody(a *attempt) {
	req := a.req
	switch {
	case x.body != nil:
		trailer := maps.Clone(x.body.names)
		if trailer != nil {
			req.Trailer = trailer
		}
		req.Body, req.GetBody = x.body.reader(trailer, a.guard.HTTP2), x.body.again(trailer, a.guard.HTTP2)
	case x.next != nil:
		req.Body, x.next = x.next, nil
	}
	if x.again != nil {
		req.GetBody = x.again
	}
}

// closeNext closes a body that no attempt will send.
func (x *exchange) closeNext() {
	if x.next != nil {
		_ = x.next.Close()
		x.next = nil
	}
}

// unreplayable says why the body of a call cannot be sent again, if that is why the call
// ends. A body that would be kept was not where there is no key, or no retry.
func (x *exchange) unreplayable(s *forbear.State, f *forbear.Failure) {
	if !s.Unreplayable || !x.mayRepeat(f) || x.body == nil && x.t.bodyLimit > 0 {
		return
	}
	if _, said := f.Err.(*bodyError); !said {
		e := &unreplayableError{last: f.Err, size: x.req.ContentLength, limit: x.t.bodyLimit}
		if x.body.noMemory() {
			e.memory = x.t.bodyMemory
		}
		f.Err = e
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

// unreplayableError is the failure of an attempt, and what kept its request from
// being sent again.
type unreplayableError struct {
	last   error
	size   int64
	limit  int
	memory *BodyMemory // that was full; nil where the limit was the reason
}

// Error returns "http status 503 Service Unavailable; body of 210 KiB without GetBody
// or Seek; WithBodyLimit (in a gateway's route body_limit) is 64 KiB".
func (e *unreplayableError) Error() string {
	if e.last == nil {
		return e.why()
	}
	return e.last.Error() + "; " + e.why()
}

// LogValue returns what of it may go into a log: nothing of the last failure.
func (e *unreplayableError) LogValue() slog.Value { return slog.StringValue(e.why()) }

// why names the size of the body and what was too small for it.
func (e *unreplayableError) why() string {
	size := "of unknown length"
	if e.size > 0 {
		size = "of " + bytesText(e.size)
	}
	text := "body " + size + " without GetBody or Seek; "
	if e.memory != nil {
		return text + "the " + bytesText(e.memory.Limit()) + " for the bodies of all requests are taken"
	}
	return text + "WithBodyLimit (in a gateway's route body_limit) is " + bytesText(int64(e.limit))
}

func (e *unreplayableError) Unwrap() error { return e.last }

// bytesText writes a number of bytes for people: "64 KiB".
func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 10<<20 && n%(1<<20) != 0:
		return strconv.FormatInt((n+1<<9)>>10, 10) + " KiB"
	default:
		return strconv.FormatInt((n+1<<19)>>20, 10) + " MiB"
	}
}

// snapshot returns what gives a body in memory again, as [http.NewRequest] does for a
// reader that it knows; nil for any other body. SDKs set such bodies without GetBody.
func snapshot(body io.ReadCloser) func() (io.ReadCloser, error) {
	switch r := unwrapped(body).(type) {
	case *bytes.Reader:
		at := *r
		return func() (io.ReadCloser, error) { r := at; return io.NopCloser(&r), nil }
	case *strings.Reader:
		at := *r
		return func() (io.ReadCloser, error) { r := at; return io.NopCloser(&r), nil }
	case *bytes.Buffer:
		at := r.Bytes()
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(at)), nil }
	}
	return nil
}

// inMemory reports whether the body is one of those that snapshot knows.
func inMemory(body io.Reader) bool {
	switch unwrapped(body).(type) {
	case *bytes.Reader, *strings.Reader, *bytes.Buffer:
		return true
	}
	return false
}

// unwrapped returns the reader inside an [io.NopCloser], or else r. The types of
// that function are not exported; net/http looks into them in the same way.
func unwrapped(r io.Reader) io.Reader {
	switch reflect.TypeOf(r) {
	case nopCloser, nopCloserWriterTo:
		return reflect.ValueOf(r).Field(0).Interface().(io.Reader)
	}
	return r
}

var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{}))
)
