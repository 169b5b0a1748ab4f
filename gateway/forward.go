package gateway

import (
	"context"
	"net/http"
	"strconv"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/reason"
)

// The headers that the gateway adds to a response that is a failure.
const (
	// HeaderStop says why it was not retried (further), as
	// [forbear.Reason.String] says it.
	HeaderStop = "Forbear-Stop"
	// HeaderAttempts says how many attempts were made.
	HeaderAttempts = "Forbear-Attempts"
)

// forward sends the request on and passes the response back. ctx is that of the call.
func (x *request) forward(ctx context.Context, w http.ResponseWriter) {
	defer x.exchange.End()
	out, err := x.outgoing(ctx, w, x.in)
	if err == nil {
		send := x.route.senders.own
		if _, brought := out.Header["Authorization"]; brought { // an empty one, too: the caller said what it wants
			send = x.route.senders.callers
		}
		var resp *http.Response
		if resp, err = x.exchange.Send(send); err == nil {
			x.complete(resp)
			err = x.finish(ctx, w, x.exchange.Respond(resp))
		}
	}
	if err != nil {
		x.failed(ctx, w, err)
	}
	x.exchange.Flush()
}

// outgoing makes the request to the dependency out of r.
func (x *request) outgoing(ctx context.Context, w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	out, err := x.exchange.Outgoing(ctx, &x.route.target, w, r)
	if err != nil {
		return nil, err
	}
	h := out.Header
	h[headerCorrelation] = x.id[:1:1]
	// The attempts from here on are our own.
	delete(h, httpretry.HeaderAttempt)
	delete(h, "X-Envoy-Attempt-Count")
	return out, nil
}

// complete adds to a response what the gateway says of it. An upgraded connection is
// left alone: its headers belong to the protocol that it switches to.
func (x *request) complete(resp *http.Response) {
	h := resp.Header
	// A caller would take the dependency's word for the gateway's.
	delete(h, HeaderStop)
	delete(h, HeaderAttempts)
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	h[headerCorrelation] = x.id[:1:1]
	if e, ok := httpretry.Outcome(resp); ok {
		x.meter.reason = e.Reason
		x.stopped(h, e)
	}
}

// finish ends a response as far as it came. It returns why there has to be another one
// in its place, or nil.
func (x *request) finish(ctx context.Context, w http.ResponseWriter, result forward.Result) error {
	switch {
	case result.Upgraded:
		x.meter.status = http.StatusSwitchingProtocols
	case result.Err == nil:
	case !result.Begun:
		return result.Err
	case x.rpc != nil && x.rpc.cut(ctx, w.Header()):
	default:
		// What there was of the response may help to find out why it broke off.
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	return nil
}

// stopped writes into h why a call ended. A failure that no retry could have
// fixed needs no such word.
func (x *request) stopped(h http.Header, e *forbear.Error) {
	if e.Reason == reason.Terminal && e.Attempts == 1 {
		return
	}
	h.Set(HeaderStop, e.Reason.String())
	h.Set(HeaderAttempts, strconv.Itoa(e.Attempts))
	if x.rpc != nil {
		x.rpc.pushback(h, e)
		return
	}
	if edge.ExhaustedBelow(e) {
		h.Set(httpretry.HeaderExhausted, e.Reason.String())
	}
}
