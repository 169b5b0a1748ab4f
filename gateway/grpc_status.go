package gateway

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/problem"
	"github.com/forbear-go/forbear/reason"
)

// codes are the gRPC codes of the gateway's problems, by their types. A type that is not
// among them has the code of its HTTP status. Of these UNAVAILABLE and RESOURCE_EXHAUSTED
// alone are such that callers come again, and the pushback then says when.
var codes = map[string]uint32{
	"no-route":     12, // UNIMPLEMENTED: no server has that method
	"bad-path":     12,
	"method":       12,
	"loop":         9, // FAILED_PRECONDITION: the routes must be fixed first
	"idempotency":  9,
	"request-body": 13, // INTERNAL, as a reset stream
	"deadline":     4,  // DEADLINE_EXCEEDED
	"timeout":      4,
	"upstream":     14, // UNAVAILABLE
	"suppressed":   14,
	"credentials":  14,
	"certificate":  14,
	"throttled":    8, // RESOURCE_EXHAUSTED
}

// notKept refuses a gRPC call where the gateway is to keep responses: those of gRPC end
// in trailers, and its own middleware keeps them in the server.
var notKept = newProblem(http.StatusNotImplemented, "idempotency", "Not for gRPC",
	"a route with idempotency keys does not take gRPC calls")

// needsHTTP2 refuses gRPC over HTTP/1, which cannot carry it.
var needsHTTP2 = newProblem(http.StatusHTTPVersionNotSupported, "http-version", "Wrong HTTP version", "gRPC needs HTTP/2")

// codeOf returns the code of a problem.
func codeOf(p *problem.Problem) uint32 {
	switch {
	case p.Attempts == 0 && p.Reason == reason.BulkheadFull.String(), p.ErrorType == "http2_enhance_your_calm", p.Status == http.StatusTooManyRequests:
		return 8 // RESOURCE_EXHAUSTED
	case p.Status == http.StatusRequestEntityTooLarge:
		return 3 // INVALID_ARGUMENT: gRPC's own RESOURCE_EXHAUSTED would be tried again
	case p.ErrorType == streamReset, p.ErrorType == "http2_protocol":
		return 13 // INTERNAL
	}
	if code, ok := codes[strings.TrimPrefix(p.Type, problem.Namespace)]; ok {
		return code
	}
	return grpcwire.FromHTTP(p.Status)
}

// grpcContentType is that of a response without messages.
var grpcContentType = []string{grpcwire.ContentType}

// status responds to a gRPC call with p: headers alone, at whose end the stream ends.
func (x *request) status(w http.ResponseWriter, p problem.Problem) {
	h := w.Header()
	translate(h)
	h["Content-Type"], h["Content-Length"] = grpcContentType, nil // nor "0", which net/http would add
	h[grpcwire.HeaderStatus] = []string{strconv.FormatUint(uint64(codeOf(&p)), 10)}
	h[grpcwire.HeaderMessage] = []string{grpcwire.EncodeMessage(p.Title + ": " + p.Detail)}
	h[headerCorrelation] = x.id[:1:1]
	w.WriteHeader(http.StatusOK)
}

// translate says in gRPC's words what the headers say in HTTP's of when to come again.
func translate(h http.Header) {
	_, pushed := h[grpcwire.HeaderPushback]
	switch seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32); {
	case pushed:
	case h.Get(httpretry.HeaderNoRetry) != "":
		h.Set(grpcwire.HeaderPushback, grpcwire.Stop)
	case err == nil && seconds >= 0:
		h.Set(grpcwire.HeaderPushback, grpcwire.FormatPushback(time.Duration(seconds)*time.Second))
	}
	h.Del("Retry-After")
	h.Del(httpretry.HeaderNoRetry)
}

// pushback tells a gRPC caller when to retry, by gRFC A6: when the breaker lets the next
// attempt through; at once, where the server had only recycled a connection; and not at
// all where the retries below are used up or a certificate was refused. That a
// call was not processed REFUSED_STREAM would say, and callers would send it again without
// a policy for it; but a handler of net/http cannot reset its stream with a code.
func (c *rpc) pushback(h http.Header, e *forbear.Error) {
	exhausted := edge.ExhaustedBelow(e)
	if exhausted {
		h.Set(grpcwire.HeaderExhausted, e.Reason.String())
	}
	switch {
	case !e.Until.IsZero():
		h.Set(grpcwire.HeaderPushback, grpcwire.FormatPushback(time.Until(e.Until)))
	case exhausted || e.Reason == reason.Certificate:
		h.Set(grpcwire.HeaderPushback, grpcwire.Stop)
	case c.recycled:
		h.Set(grpcwire.HeaderPushback, grpcwire.FormatPushback(0))
	}
}

// cut ends a gRPC response that its deadline has cut short, in trailers in h: a stream
// that is reset would be an error of the server's. It reports whether that was so.
func (c *rpc) cut(ctx context.Context, h http.Header) bool {
	if ctx.Err() == context.Canceled || !c.late() {
		return false
	}
	h.Set(http.TrailerPrefix+grpcwire.HeaderStatus, "4")
	h.Set(http.TrailerPrefix+grpcwire.HeaderMessage, "the call has no time left")
	return true
}

// codeSent returns the name of the code that a response ended with, or "" if it broke off
// before that.
func codeSent(h http.Header) string {
	for _, name := range [...]string{grpcwire.HeaderStatus, http.TrailerPrefix + grpcwire.HeaderStatus} {
		code, ok := grpcwire.Status(http.Header{grpcwire.HeaderStatus: h[name]})
		switch {
		case !ok:
		case code < uint32(len(grpccode.Names)):
			return grpccode.Names[code]
		default:
			return "invalid"
		}
	}
	return ""
}
