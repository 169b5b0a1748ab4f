package forward

import (
	"net/http"

	"github.com/forbear-go/forbear/internal/eventstream"
)

// Result is what the caller got of a response.
type Result struct {
	// Err is why the response broke off, or could not be passed on at all. Nil means that
	// it came in full, or that the caller left before its end.
	Err error
	// Begun is true when the caller has the beginning of it: no other response can follow.
	Begun bool
	// Upgraded is true when the connection had changed its protocol.
	Upgraded bool
}

// BadResponse is a response that breaks the rules of HTTP.
type BadResponse struct{ what string }

func (e *BadResponse) Error() string { return "the response cannot be forwarded: " + e.what }

// check returns why a response to out cannot be passed on, or nil.
func check(out *http.Request, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		if err := switched(out, resp); err != nil {
			return err
		}
	case resp.StatusCode < 200 || resp.StatusCode > 999:
		return &BadResponse{"its status is outside 200 to 999"}
	}
	for name := range resp.Header {
		if !token(name) {
			return &BadResponse{"a header name contains a space"}
		}
	}
	return nil
}

// Respond passes the response on and closes its body. The caller of Respond writes
// another response where this one has not begun, and breaks the connection off where it
// broke off in the middle: no caller takes that for the end of a response (RFC 9112
// section 8).
func (x *Exchange) Respond(resp *http.Response) Result {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		if x.writes != nil {
			x.writes.end() // a protocol may outlast the call's time
		}
		return x.upgrade(resp)
	}
	h := x.w.Header()
	x.responseHeader(h, resp)
	if x.in.ProtoMajor == 1 { // HTTP/2 always lets a response begin before the end of the body
		x.body.respond()
	}
	x.body.last(h)
	c := copier{w: x.w, resp: resp}
	// Headers that end a stream stay what they are: to send them at once would put an
	// empty body after them. A caller who waits with its body waits for the status.
	atOnce := x.Stream || x.target.Stream || eventstream.Is(resp.Header) || x.body.waits()
	err := c.copy(atOnce && resp.ContentLength != 0)
	_ = resp.Body.Close()
	switch {
	case err == errCallerLeft:
		return Result{Begun: true}
	case err == nil:
		if len(resp.Trailer) > 0 {
			flush(x.w) // or a short response would get a length, and no trailers
			addTrailers(h, resp.Trailer)
		}
		return Result{Begun: true}
	case !c.began || unsent(x.w):
		clear(h)
		x.body.last(h)
		return Result{Err: err}
	}
	return Result{Err: err, Begun: true}
}

// responseHeader makes h the headers of the response.
func (x *Exchange) responseHeader(h http.Header, resp *http.Response) {
	EndToEnd(h, resp.Header)
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // or the server would guess one
	}
	if len(resp.Trailer) > 0 {
		announce(h, resp.Trailer)
	}
	chunks := x.in.ProtoMajor == 1 && x.in.ProtoMinor > 0 && x.in.Method != http.MethodHead
	if chunks && len(h["Trailer"]) > 0 {
		delete(h, "Content-Length") // HTTP/1 has trailers only after chunks
	}
}

// unsent takes back what was written of a response, where the writer has held back all
// of it, and reports whether it has.
func unsent(w http.ResponseWriter) bool {
	b, ok := w.(interface{ Unsend() bool })
	return ok && b.Unsend()
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
