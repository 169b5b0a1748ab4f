package gateway

import (
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpccode"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/errtype"
)

// rpc is a gRPC call under way, which is judged by its own status and not by HTTP's. It
// implements [httpretry.Envelope]: its bodies are HTTP's, which go out as they come. What
// R-6 asks of a POST it asks of a gRPC call: an idempotency key in the metadata, or a policy
// that says that operations are safe to repeat.
type rpc struct {
	due   time.Time     // when the time for the call runs out; zero for never
	slack time.Duration // how much earlier the server may see that
	// recycled says that the latest attempt met the end of a connection, and was not processed.
	recycled bool
}

// margin returns what is kept of a timeout for the way back. Callers of gRPC give less
// than a second where those of HTTP give many, so that it is a share of it.
func margin(timeout time.Duration) time.Duration { return min(httpretry.SafetyMargin, timeout/10) }

// Begin implements [httpretry.Envelope]: the transport knows what there is to know.
func (c *rpc) Begin(*forbear.State) {}

// Send implements [httpretry.Envelope]. Retries say how many attempts came before them
// (gRFC A6); the number of a caller's own retry, which is the only attempt here, goes on
// as it came. What HTTP says in headers of its own gRPC says in these.
func (c *rpc) Send(req *http.Request, number int, limit time.Duration) (time.Duration, error) {
	if _, own := req.Header[httpretry.HeaderAttempt]; !own {
		req.Header = maps.Clone(req.Header) // without it the transport leaves them shared
	}
	h := req.Header
	delete(h, httpretry.HeaderAttempt)
	delete(h, httpretry.HeaderDeadline)
	if number > 1 {
		h[grpcwire.HeaderAttempts] = []string{strconv.Itoa(number - 1)}
	}
	if due, ok := req.Context().Deadline(); ok {
		left := time.Until(due)
		c.due, c.slack = due, margin(left)
		h[grpcwire.HeaderTimeout] = []string{grpcwire.FormatTimeout(left)}
	}
	return limit, nil
}

// Classify implements [httpretry.Envelope] by grpcretry's rules. Headers without a status
// are the beginning of a response: what follows is passed on, once.
func (c *rpc) Classify(resp *http.Response) forbear.Failure {
	c.recycled = false
	if code, ok := grpcwire.Status(resp.Header); ok {
		return judge(code, resp.Header, resp.Request)
	}
	if resp.StatusCode == http.StatusOK && grpcwire.Is(resp.Header) {
		return forbear.Failure{Class: forbear.ClassSuccess}
	}
	// A proxy or another server. What it says of waiting and stopping it says by HTTP.
	f := httpretry.Classify(resp.Request, resp, nil)
	code := grpcwire.FromHTTP(resp.StatusCode)
	f.Class, f.Type = grpccode.Class(code), grpccode.Label(code)
	if f.Err == nil {
		f.Err = httpretry.StatusError(resp.StatusCode)
	}
	return f
}

// Ended judges a response by its trailers. What the caller has got it has got: this is for
// the breaker. A response without a status is left for its caller to judge.
func (c *rpc) Ended(resp *http.Response) forbear.Failure {
	if code, ok := grpcwire.Status(resp.Trailer); ok {
		return judge(code, resp.Trailer, resp.Request)
	}
	return forbear.Failure{Class: forbear.ClassSuccess}
}

// judge judges a status, in response to req.
func judge(code uint32, h http.Header, req *http.Request) forbear.Failure {
	keyed := req != nil && req.Header.Get(httpretry.HeaderKey) != ""
	f := grpcwire.Judge(code, grpcwire.DetailsOf(h[grpcwire.HeaderDetails]), h[grpcwire.HeaderPushback], keyed)
	if f.Class != forbear.ClassSuccess {
		f.Err = rpcError(code)
	}
	return f
}

// Failed judges an attempt without a response as gRPC does: a stream that the server
// has reset is INTERNAL or CANCELLED, and those are not retried. Servers reset
// streams whose time has run out, and that is the caller's own.
func (c *rpc) Failed(f forbear.Failure) forbear.Failure {
	c.recycled = f.Disowned && f.Type != "http2_refused_stream"
	switch {
	case f.Type != streamReset:
	case c.late():
		f.Class, f.Type = forbear.ClassCanceled, errtype.CallerDeadline
	default:
		f.Class = forbear.ClassTerminal
	}
	return f
}

// late reports whether the time for the call has run out, or is about to and has by the
// server's clock.
func (c *rpc) late() bool { return !c.due.IsZero() && time.Until(c.due) <= c.slack }

// streamReset is the error_type of a stream that was reset with INTERNAL_ERROR or CANCEL.
const streamReset = "http2_stream_reset"

// rpcError is a failed status as an error. It holds nothing of its message.
type rpcError uint32

// Error returns "grpc_UNAVAILABLE".
func (e rpcError) Error() string { return grpccode.Label(uint32(e)) }
