// Package forward passes an HTTP request on to another server, and the response
// back: path, query and bodies byte for byte, and headers as RFC 9110 section 7.6
// asks of an intermediary. It refuses what the rules of HTTP do not allow.
//
// The gateway takes the steps of an [Exchange] in order, and decides between them:
//
//	defer x.End()
//	out, err := x.Outgoing(ctx, target, w, r) // outgoing.go: the request to the target
//	resp, err := x.Send(transport)            // this file: its response, if that may go on
//	result := x.Respond(resp)                 // response.go: what the caller got of it
//
// The parts:
//
//   - sound.go, loop.go: requests that cannot be passed on
//   - path.go, header.go, origin.go: the target, headers and trailers, who the caller is
//   - body.go: the caller's body
//   - interim.go: 1xx responses
//   - copy.go, upgrade.go: the body of a response, or a changed protocol
package forward

import (
	"net/http"
	"net/url"
	"time"
)

// Target is where the requests of a route go. It does not change while it is used, and
// is safe for concurrent use.
type Target struct {
	URL *url.URL
	// Prefix is taken off the paths of requests. It is not "/".
	Prefix string
	Origin Origin
	// BodyIdle bounds each wait for more of a caller's body; 0 sets no bound.
	BodyIdle time.Duration
	// MaxBody bounds the caller's body, in bytes; 0 sets no bound.
	MaxBody int64
	// Stream sends each part of a response to the caller at once, its headers included.
	// Without it that is done for Server-Sent Events only.
	Stream bool
}

// Exchange is one request under way. The zero value is ready. It serves one request and
// must not be copied.
type Exchange struct {
	Interim Interim
	// Stream says that messages go both ways and may be long in coming: each goes on at
	// once, and nothing bounds the wait for more of a body.
	Stream bool

	target *Target
	w      http.ResponseWriter
	in     *http.Request
	out    http.Request
	url    url.URL
	body   body
	origin originValues
	writes *writeBound // nil where the call has no deadline
}

// BodyError returns what was wrong with the body that the caller sent, or nil.
func (x *Exchange) BodyError() error { return x.body.fault() }

// Left reports whether it was the caller who ended the context of the request, if that
// has ended. The server ends it, too, when a Read of the caller's body is interrupted,
// as it is when the target has failed.
func (x *Exchange) Left() bool { return !x.body.wasCut() }

// Received returns how many bytes of the caller's body have been read.
func (x *Exchange) Received() int64 { return x.body.n.Load() }

// Send sends the outgoing request. It passes interim responses on, and returns the
// response if that may be passed on, too.
func (x *Exchange) Send(next http.RoundTripper) (*http.Response, error) {
	ctx := x.out.Context()
	x.Interim.open(x.w, x.in)
	if x.body.source != nil {
		x.body.watch(ctx)
	}
	resp, err := next.RoundTrip(&x.out)
	if due, ok := ctx.Deadline(); ok {
		x.writes = boundWrites(x.w, due)
	}
	x.Interim.close()
	if err != nil {
		return nil, err
	}
	if err := check(&x.out, resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// Flush sends what was written to a caller that may have more of its body to send:
// [Exchange.End] waits for that.
func (x *Exchange) Flush() {
	if x.body.both {
		flush(x.w)
	}
}

// End gives the caller's connection back to the server. It is deferred, since it must
// also run after a panic.
func (x *Exchange) End() {
	if x.writes != nil {
		x.writes.end()
	}
	if x.body.source != nil {
		x.body.over()
	}
	x.Interim.close()
}
