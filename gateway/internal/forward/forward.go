// Package forward passes an HTTP request on to another server, and the response
// back: path, query and bodies byte for byte, and headers as RFC 9110 section 7.6 has
// it for an intermediary. What the rules of HTTP do not allow it refuses.
//
//   - path.go: the request target
//   - header.go: what goes on from one connection to the next
//   - trailer.go: what may follow a body
//   - origin.go: X-Forwarded-*, Forwarded and Via
//   - hops.go: Max-Forwards
//   - body.go: the caller's body
//   - expect.go: one that the caller holds back
//   - interim.go: responses before the response
//   - copy.go: the body of a response
//   - upgrade.go: connections that change their protocol
package forward

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/forbear-go/forbear/internal/eventstream"
)

// Forwarder sends requests to one target. It is safe for concurrent use, and its
// fields do not change while it is used.
type Forwarder struct {
	Target *url.URL
	// Prefix is taken off the paths of requests, and is not "/".
	Prefix string
	Origin Origin
	// BodyIdle is for how long a caller's body may stand still; 0 is for ever.
	BodyIdle time.Duration
	// MaxBody bounds the caller's body, in bytes; 0 sets no bound.
	MaxBody int64
	Send    http.RoundTripper
	// Prepare completes the headers of a request.
	Prepare func(out *http.Request)
	// Accept completes a response before it is passed on, or says why it cannot be.
	Accept func(*http.Response) error
	// Failed responds in place of a target that did not. It is called before
	// anything of a response was written.
	Failed func(context.Context, http.ResponseWriter, error)
	// Streams reports whether each part of a response goes to the caller at once,
	// its headers included; nil means those of Server-Sent Events.
	Streams func(*http.Response) bool
	// Upgraded, where set, is called when a call has changed its protocol.
	Upgraded func(context.Context)
	// Cut may end a response that broke off in trailers, which it adds to the header,
	// where the protocol in it can say so. If it reports false, or is nil, the stream or
	// the connection breaks off.
	Cut func(ctx context.Context, h http.Header) bool
}

// ErrPath is why a request target cannot be passed on as it came.
var ErrPath = errors.New("the path cannot be passed on")

// Call is one request under way. The zero value is ready; it serves one request and
// must not be copied.
type Call struct {
	Interim Interim
	// Stream says that messages go both ways, and may be long in coming: each goes on
	// at once, and the time that a body may stand still is not counted.
	Stream bool
	out    http.Request
	url    url.URL
	body   body
	chunks bool // the response may go out in chunks
	origin originValues
}

// BodyError returns what was wrong with the body that the caller sent, or nil.
func (c *Call) BodyError() error { return c.body.fault() }

// Left reports whether it was the caller who ended the context of the request, if that
// has ended. The server ends it, too, when a Read of the caller's body is ended in its
// middle, as it is when the target has failed.
func (c *Call) Left() bool { return !c.body.wasCut() }

// Received returns how many bytes of the caller's body have been read.
func (c *Call) Received() int64 { return c.body.n.Load() }

// Forward passes r on and the response back. ctx is that of the request to the target.
func (f *Forwarder) Forward(ctx context.Context, w http.ResponseWriter, r *http.Request, c *Call) {
	if err := f.outgoing(ctx, c, w, r); err != nil {
		f.Failed(ctx, w, err)
		return
	}
	c.Interim.open(w, r)
	defer c.Interim.close() // after a panic, too
	defer c.body.watch(ctx)()
	resp, err := f.Send.RoundTrip(&c.out)
	over := bounded(ctx, w)
	defer over()
	c.Interim.close()
	if err == nil {
		if err = f.check(c, resp); err == nil {
			if r.ProtoMajor == 1 { // a stream of HTTP/2 has a connection to itself, as it were
				c.body.respond()
				c.chunks = r.ProtoMinor > 0 && r.Method != http.MethodHead
			}
			if resp.StatusCode == http.StatusSwitchingProtocols {
				over() // a protocol may outlast the call's time
			}
			f.respond(ctx, w, resp, c)
			if c.body.both { // the caller may have more to send, which is waited for
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		_ = resp.Body.Close()
	}
	f.Failed(ctx, w, err)
}

// outgoing makes the request to the target.
func (f *Forwarder) outgoing(ctx context.Context, c *Call, w http.ResponseWriter, r *http.Request) error {
	if !f.aim(&c.url, r.URL) {
		return ErrPath
	}
	upgrade, err := asked(r)
	if err != nil {
		return err
	}
	// With what is added, five as a rule: maps of up to eight keys are far cheaper.
	h := make(http.Header, len(r.Header)+5)
	EndToEnd(h, r.Header)
	if te(r.Header) {
		h["Te"] = teTrailers
	}
	if _, named := h["User-Agent"]; !named {
		h["User-Agent"] = noValue // net/http would send one of its own
	}
	if upgrade != "" {
		h["Connection"], h["Upgrade"] = upgradeToken, []string{upgrade}
	}
	forwardOnce(h, r)
	f.Origin.add(h, r, &c.origin)
	c.out = *new(http.Request).WithContext(ctx)
	out := &c.out
	out.Method, out.URL, out.Header = r.Method, &c.url, h
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	out.ContentLength, out.Trailer = r.ContentLength, announced(r.Trailer)
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		idle := f.BodyIdle
		if c.Stream {
			idle = 0
		}
		c.body.from(w, r, idle, f.MaxBody)
		if c.body.asks = !c.Stream && expects(r); c.body.asks {
			h["Expect"] = expectation
		}
		if out.Trailer != nil {
			c.body.ended = func() { fill(out.Trailer, r.Trailer) }
		}
		out.Body = &c.body
	}
	if f.Prepare != nil {
		f.Prepare(out)
	}
	return nil
}

// check says why a response cannot be passed on, or nil.
func (f *Forwarder) check(c *Call, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		if err := switched(&c.out, resp); err != nil {
			return err
		}
	case resp.StatusCode < 200 || resp.StatusCode > 999:
		return &BadResponse{"its status is outside 200 to 999"}
	}
	for name := range resp.Header {
		if !token(name) {
			return &BadResponse{"there is a space in the name of a header"}
		}
	}
	if f.Accept == nil {
		return nil
	}
	return f.Accept(resp)
}

// BadResponse is a response that breaks the rules of HTTP.
type BadResponse struct{ what string }

func (e *BadResponse) Error() string { return "the response cannot be passed on: " + e.what }

// respond passes a response of a call on.
func (f *Forwarder) respond(ctx context.Context, w http.ResponseWriter, resp *http.Response, call *Call) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		f.upgrade(ctx, w, resp)
		return
	}
	h := w.Header()
	EndToEnd(h, resp.Header)
	call.body.last(h)
	if _, typed := h["Content-Type"]; !typed {
		h["Content-Type"] = nil // or the server would guess one
	}
	announce(h, resp.Trailer)
	if call.chunks && len(h["Trailer"]) > 0 {
		delete(h, "Content-Length") // HTTP/1 has trailers after chunks alone
	}
	c := copier{w: w, resp: resp}
	// Headers that end a stream stay what they are: to send them at once would put an
	// empty body after them.
	// A caller who waits with its body waits for the status.
	atOnce := call.Stream || f.streams(resp) || call.body.waits()
	err := c.copy(atOnce && resp.ContentLength != 0)
	_ = resp.Body.Close()
	switch {
	case err == nil:
		if len(resp.Trailer) > 0 {
			c.flush() // or a short response would get a length, and no trailers
		}
		addTrailers(h, resp.Trailer)
	case err == errCallerLeft:
	case !c.began || unsent(w): // the caller can still get another response
		clear(h)
		call.body.last(h)
		f.Failed(ctx, w, err)
	case f.Cut != nil && f.Cut(ctx, h):
	default:
		// A connection that breaks off is the one sign that the caller cannot take
		// for the end of a response (RFC 9112 section 8). What there was of it may
		// still help to find out why.
		c.flush()
		panic(http.ErrAbortHandler)
	}
}

// unsent takes back what was written of a response where the writer has held all of it
// back, and reports whether it has.
func unsent(w http.ResponseWriter) bool {
	b, ok := w.(interface{ Unsend() bool })
	return ok && b.Unsend()
}

func (f *Forwarder) streams(resp *http.Response) bool {
	if f.Streams != nil {
		return f.Streams(resp)
	}
	return eventstream.Is(resp.Header)
}
