package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strconv"
)

// ErrPath is why a request target cannot be passed on as it came.
var ErrPath = errors.New("the path cannot be forwarded")

// Outgoing makes the request to the target out of r, under ctx. The caller may change
// its headers before it is sent.
func (x *Exchange) Outgoing(ctx context.Context, t *Target, w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	x.target, x.w, x.in = t, w, r
	h, err := outgoingHeader(r)
	if err != nil {
		return nil, err
	}
	trailer := announced(r.Trailer)
	if !t.aim(&x.url, r.URL) {
		return nil, ErrPath
	}
	t.Origin.add(h, r, &x.origin)
	x.out = *new(http.Request).WithContext(ctx)
	out := &x.out
	out.Method, out.URL, out.Header = r.Method, &x.url, h
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	out.ContentLength = r.ContentLength
	out.Trailer = trailer
	if r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0 {
		x.addBody()
	}
	return out, nil
}

// outgoingHeader returns the headers of r that go on.
func outgoingHeader(r *http.Request) (http.Header, error) {
	// With what is added, five as a rule: maps of up to eight keys are far cheaper.
	h := make(http.Header, len(r.Header)+5)
	EndToEnd(h, r.Header)
	if hasToken(r.Header["Te"], "trailers") { // the caller can receive them (RFC 9110 section 10.1.4)
		h["Te"] = teTrailers
	}
	if _, named := h["User-Agent"]; !named {
		h["User-Agent"] = noValue // net/http would send its own
	}
	if len(r.Header["Upgrade"]) > 0 {
		protocol, err := asked(r)
		if err != nil {
			return nil, err
		}
		if protocol != "" {
			h["Connection"], h["Upgrade"] = upgradeToken, []string{protocol}
		}
	}
	if n, ok := hopsLeft(r); ok && n > 0 && h["Max-Forwards"] != nil {
		h["Max-Forwards"] = []string{strconv.FormatUint(n-1, 10)}
	}
	return h, nil
}

// addBody gives the outgoing request the caller's body.
func (x *Exchange) addBody() {
	idle := x.target.BodyIdle
	if x.Stream {
		idle = 0
	}
	x.body.from(x.w, x.in, idle, x.target.MaxBody)
	if x.body.asks = !x.Stream && expects(x.in); x.body.asks {
		x.out.Header["Expect"] = expectation
	}
	if names, values := x.out.Trailer, x.in.Trailer; names != nil {
		x.body.ended = func() { fill(names, values) }
	}
	x.out.Body = &x.body
}

// expects reports whether the caller holds the body back until it is told to send it
// (RFC 9110 section 10.1.1). The server says 100 by itself when the body is first read,
// which must not be before the target has asked for it.
func expects(r *http.Request) bool {
	if r.ProtoMajor > 1 {
		return continues(r.Body)
	}
	return r.ProtoAtLeast(1, 1) && len(r.Header["Expect"]) > 0
}

// continues reports whether the server will say 100 at the first Read of a body. Over
// HTTP/2 it removes the header, and leaves this as the only trace. Where it cannot be
// seen, the target is not asked, and the caller is told to send at once.
func continues(body io.ReadCloser) bool {
	v := reflect.ValueOf(body)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return false
	}
	needs := v.Elem().FieldByName("needsContinue")
	return needs.IsValid() && needs.Kind() == reflect.Bool && needs.Bool()
}

var expectation = []string{"100-continue"}
