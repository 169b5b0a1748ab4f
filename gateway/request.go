package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/gateway/internal/forward"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/resend"
)

// headerCorrelation is the name in its canonical form.
const headerCorrelation = "X-Correlation-Id"

// request is one request of a caller, and the context of the call that it becomes. Each
// step of the gateway gets it as an argument. It is one allocation.
type request struct {
	context.Context
	id       [1]string     // the correlation id, ready to be the value of a header
	in       *http.Request // as the caller sent it
	named    bool          // a route names its host
	grpc     bool          // its content is gRPC's
	route    *route        // that it was admitted to, or nil
	rpc      *rpc          // nil for plain HTTP
	exchange forward.Exchange
	meter    meter
}

// newRequest returns the context of a request, with the correlation id under which its
// retries are logged.
func newRequest(r *http.Request, named bool) *request {
	id := inbound.Correlation(r.Header)
	if id == "" { // none that could go into logs and headers
		var b [16]byte
		_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
		id = hex.EncodeToString(b[:])
	}
	x := &request{Context: forbear.WithCorrelationID(r.Context(), id), id: [1]string{id}, in: r, named: named, grpc: grpcwire.Is(r.Header)}
	if r.ProtoMajor == 2 && r.Method == http.MethodPost && x.grpc {
		x.rpc, x.exchange.Stream = &rpc{}, true
	}
	return x
}

// Value makes the request known to those who get its context alone: the log, the
// transport, and the middleware for idempotency keys.
func (x *request) Value(key any) any {
	switch key {
	case requestKey{}:
		return x
	case resend.TraceKey:
		return &x.exchange.Interim.Trace
	}
	return x.Context.Value(key)
}

// requestKey is the key under which a context knows its request.
type requestKey struct{}

// requestOf returns the request whose context ctx is or was derived from, or nil.
func requestOf(ctx context.Context) *request {
	x, _ := ctx.Value(requestKey{}).(*request)
	return x
}

// rpcOf returns the gRPC call that an outgoing request belongs to, or nil.
func rpcOf(out *http.Request) httpretry.Envelope {
	if x := requestOf(out.Context()); x != nil && x.rpc != nil {
		return x.rpc
	}
	return nil
}
