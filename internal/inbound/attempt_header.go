package inbound

import (
	"context"
	"strconv"

	"github.com/forbear-go/forbear/internal/layer"
)

// maxAttempt bounds the number of an attempt that is believed.
const maxAttempt = 1000

// attemptHeader is a header by which a layer above says which attempt a request is.
type attemptHeader struct {
	name, metadata string // as net/http and as gRPC's metadata have it
	first          int    // its value in the first attempt
}

// Headers of forbear's own, of Envoy where a route has include_request_attempt_count,
// and of gRPC (gRFC A6).
var (
	headerOwn   = attemptHeader{"X-Retry-Attempt", "x-retry-attempt", 0}
	headerEnvoy = attemptHeader{"X-Envoy-Attempt-Count", "x-envoy-attempt-count", 1}
	headerGRPC  = attemptHeader{"Grpc-Previous-Rpc-Attempts", "grpc-previous-rpc-attempts", 0}
)

// read returns the number of the attempt; 0 where it cannot be read or is the first.
func (a *attemptHeader) read(h map[string][]string) int {
	lines, ok := h[a.name]
	if !ok {
		lines = h[a.metadata]
	}
	value := only(lines)
	if value == "" {
		return 0 // most requests: an error costs an allocation
	}
	n, err := strconv.Atoi(value)
	if err != nil || n <= a.first || n > maxAttempt-1+a.first {
		return 0
	}
	return n + 1 - a.first
}

// Repeated returns the number of the attempt that Envoy or gRPC says a request is;
// 0 where neither says that it is a retry. h is an [net/http.Header] or gRPC's metadata.
func Repeated(h map[string][]string) int { return max(headerEnvoy.read(h), headerGRPC.read(h)) }

// Retry returns ctx as that of a caller's attempt, when a header of a request says
// that it is a retry: calls made under it are inside a retry, and are not retried again
// . Of several numbers the highest counts. h is an [net/http.Header] or gRPC's
// metadata; dependency names what the attempt is made of.
func Retry(ctx context.Context, dependency string, h map[string][]string) context.Context {
	n := max(headerOwn.read(h), Repeated(h))
	if n == 0 {
		return ctx
	}
	return &layer.Attempt{Context: ctx, Dependency: dependency, Number: n}
}
