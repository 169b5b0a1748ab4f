package edge

import (
	"context"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/internal/layer"
)

// This file is what an edge tells of a call, and what it learns of the layers around it.

// CorrelationID returns the id that forbear.WithCorrelationID has put into ctx, or "".
func CorrelationID(ctx context.Context) string { return layer.Correlation(ctx) }

// CorrelationOf returns the id under which the calls that r makes under ctx are logged:
// that of the context, or of forbear.WithCorrelation; "" when one will be made.
func CorrelationOf(ctx context.Context, r *forbear.Retryer) string {
	return r.Edge(key).Correlation(ctx)
}

// ExhaustedBelow reports whether err holds the end of a call that a forbear below has
// given up, so that a synchronous layer above should not begin its own retries.
func ExhaustedBelow(err error) bool { return none.Edge(key).ExhaustedBelow(err) }

// Repeated records that a request which r is about to send is the given attempt of a
// layer above that retries by itself, such as an SDK. It is reported once.
func Repeated(ctx context.Context, r *forbear.Retryer, attempt int) {
	r.Edge(key).Repeated(ctx, attempt)
}

// DeadLettered reports to r's observers that failed work has reached the named queue, for
// those who route their dead letters themselves.
func DeadLettered(ctx context.Context, r *forbear.Retryer, queue string, why forbear.Reason) {
	r.Edge(key).DeadLettered(ctx, queue, why)
}

// Refreshed reports to r's observers that credentials were fetched anew for a retry, or
// why they could not be.
func Refreshed(ctx context.Context, r *forbear.Retryer, err error) { r.Edge(key).Refreshed(ctx, err) }
