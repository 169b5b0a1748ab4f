package httpretry

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/layer"
	"github.com/forbear-go/forbear/internal/problem"
)

// SafetyMargin is what a server keeps for itself of the time it was given: it
// is taken off the deadline that goes to the next service, and a request with
// less left is not begun.
const SafetyMargin = 100 * time.Millisecond

// NoRetryDeadline is the value of [HeaderNoRetry] with which a server refuses, by
// 504, a request whose deadline has passed by its clock. A transport of this
// package takes that for the caller's own deadline, when the request carried one: it
// is not retried, and does not count against the server.
const NoRetryDeadline = "deadline"

// Inbound is middleware for a server whose handlers make calls of their own. It
// hands what the wire says to the request's context: the deadline, the number
// of the attempt (X-Retry-Attempt, Envoy's X-Envoy-Attempt-Count and gRPC's
// Grpc-Previous-Rpc-Attempts), so that a call made inside a caller's retry is not
// retried again, and the correlation id. On the way out it marks a failed response when
// the calls below have used their retries, so that the caller does not begin
// its own.
//
// A request whose deadline leaves less than the safety margin gets 504 and a
// problem document at once, which says by how much it is late, and with it the
// word [NoRetryDeadline]: to come again would be later still.
func Inbound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if id := inbound.Correlation(r.Header); id != "" {
			ctx = forbear.WithCorrelationID(ctx, id)
			w.Header().Set(HeaderCorrelation, id)
		}
		ctx = inbound.Retry(ctx, "inbound", r.Header)
		if deadline, ok := inbound.Deadline(r.Header[HeaderDeadline]); ok {
			if left := time.Until(deadline); left < SafetyMargin {
				w.Header().Set(HeaderNoRetry, NoRetryDeadline)
				problem.Write(w, problem.Problem{
					Type: problem.Namespace + "deadline", Title: "No time left", Status: http.StatusGatewayTimeout,
					Detail:   inbound.Lateness(left),
					Instance: r.URL.EscapedPath(), CorrelationID: edge.CorrelationID(ctx),
				})
				return
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline)
			defer cancel()
		}
		ctx, below := layer.Watch(ctx)
		next.ServeHTTP(marked(w, below), r.WithContext(ctx))
	})
}

// marking adds the exhaustion mark to a failed response.
type marking struct {
	http.ResponseWriter
	below *layer.Exhaustion
	wrote bool
}

// marked returns a marking writer that can be hijacked, or push, if w can: libraries ask
// the writer itself, and not an [http.ResponseController].
func marked(w http.ResponseWriter, below *layer.Exhaustion) http.ResponseWriter {
	m := &marking{ResponseWriter: w, below: below}
	switch w := w.(type) {
	case http.Hijacker: // over HTTP/1
		return struct {
			*marking
			http.Hijacker
		}{m, w}
	case http.Pusher: // over HTTP/2
		return struct {
			*marking
			http.Pusher
		}{m, w}
	}
	return m
}

// WriteHeader adds the mark to a failure of the server, which is when the calls
// below matter. An informational status is not the response yet.
func (m *marking) WriteHeader(status int) {
	if !m.wrote && status >= 200 {
		m.wrote = true
		if m.below.Below() && (status >= 500 || status == http.StatusTooManyRequests) {
			m.Header().Set(HeaderExhausted, "true")
		}
	}
	m.ResponseWriter.WriteHeader(status)
}

// Write sends a response without a status, which is a success and needs no mark.
func (m *marking) Write(p []byte) (int, error) {
	m.wrote = true // an implicit 200
	return m.ResponseWriter.Write(p)
}

// ReadFrom lets a file go out without a copy of it, where the server can do that.
func (m *marking) ReadFrom(r io.Reader) (int64, error) {
	m.wrote = true
	return io.Copy(m.ResponseWriter, r)
}

// Flush lets streaming handlers through.
func (m *marking) Flush() {
	m.wrote = true
	_ = http.NewResponseController(m.ResponseWriter).Flush()
}

// Unwrap serves http.ResponseController.
func (m *marking) Unwrap() http.ResponseWriter { return m.ResponseWriter }
