package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/resend"
)

// headerCorrelation is the name in its canonical form.
const headerCorrelation = "X-Correlation-Id"

// incoming is one request of a caller, and the context of the call that it
// becomes.
type incoming struct {
	context.Context
	id   [1]string     // the correlation id, ready to be the value of a header
	in   *http.Request // as the caller sent it
	call forward.Call  // what is sent on

	route *route // nil for none
	rpc   *rpc   // nil for plain HTTP
	meter meter
}

// incomingOf returns the request that the context of a call belongs to.
func incomingOf(ctx context.Context) *incoming {
	return ctx.Value(incomingKey{}).(*incoming) // forward put it there
}

// incomingKey is the key under which a context knows its incoming.
type incomingKey struct{}

// Value makes the request known to those who handle its outgoing request.
func (x *incoming) Value(key any) any {
	switch key {
	case incomingKey{}:
		return x
	case resend.TraceKey:
		return &x.call.Interim.Trace
	}
	return x.Context.Value(key)
}

// newIncoming returns the context of a request, with the correlation id under
// which its retries are logged.
func newIncoming(r *http.Request) *incoming {
	id := correlation(r)
	return &incoming{Context: forbear.WithCorrelationID(r.Context(), id), id: [1]string{id}, in: r, rpc: newRPC(r)}
}

// forward sends the request on, under what its headers say of the call.
func (x *incoming) forward(w http.ResponseWriter, rt *route) {
	r := x.in
	x.route = rt
	ctx := inbound.Retry(x, rt.Retryer.Dependency(), r.Header)
	if x.rpc != nil {
		var cancel context.CancelFunc
		ctx, cancel = x.rpc.bounded(ctx, r.Header)
		defer cancel()
		x.call.Stream = true
	}
	if deadline, ok := inbound.Deadline(r.Header[httpretry.HeaderDeadline]); ok {
		left := time.Until(deadline)
		if left <= httpretry.SafetyMargin {
			w.Header().Set(httpretry.HeaderNoRetry, httpretry.NoRetryDeadline)
			x.problem(w, newProblem(http.StatusGatewayTimeout, "deadline", "No time left", inbound.Lateness(left)))
			return
		}
		// What is kept is for the gateway's own response. The transport takes as
		// much off again for the dependency's.
		deadline = deadline.Add(-httpretry.SafetyMargin)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	ctx, leave, ok := rt.enter(ctx, x, w)
	if !ok {
		return
	}
	defer leave()
	if rt.keyed(r) {
		if x.rpc != nil {
			x.problem(w, notKept)
			return
		}
		rt.ingress.ServeHTTP(w, r.WithContext(ctx))
		return
	}
	rt.forward.Forward(ctx, w, r, &x.call)
}

// correlation returns the caller's correlation id, or a new one where it brought
// none that could go into logs and headers.
func correlation(r *http.Request) string {
	if id := inbound.Correlation(r.Header); id != "" {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return hex.EncodeToString(b[:])
}
