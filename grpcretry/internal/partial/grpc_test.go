package partial_test

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge/partial"
	"github.com/forbear-go/forbear/grpcretry"
)

//forbear:plain hours of calls in virtual time; grpcretry is raced in its own package

const method = "/partial.Test/Call"

// overGRPC is a partial.Client: the interceptor above an invoker without a
// connection.
func overGRPC(r *forbear.Retryer, send partial.Send) func(context.Context) bool {
	intercept := grpcretry.UnaryClientInterceptor(r, grpcretry.WithIdempotent(method), grpcretry.WithRetryDisabled())
	invoke := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		got, err := send(ctx)
		switch {
		case err != nil:
			return status.FromContextError(err).Err()
		case got == http.StatusServiceUnavailable:
			return status.Error(codes.Unavailable, "failed")
		case got == http.StatusTooManyRequests:
			return status.Error(codes.ResourceExhausted, "too many")
		}
		return nil
	}
	return func(ctx context.Context) bool { return intercept(ctx, method, nil, nil, nil, invoke) == nil }
}

func TestPartialFailureStaysPartialOverGRPC(t *testing.T) {
	partial.StaysPartial(t, overGRPC, forbear.Policy{Kind: forbear.GRPC})
}

func TestOutageOpensOverGRPC(t *testing.T) {
	partial.Opens(t, overGRPC, forbear.Policy{Kind: forbear.GRPC})
}
