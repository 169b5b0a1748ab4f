package grpcretry

import (
	"context"
	"hash/maphash"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/edge/grpcwire"
	"github.com/forbear-go/forbear/internal/inbound"
	"github.com/forbear-go/forbear/internal/layer"
)

// TrailerExhausted in the trailer of a failed call says that a layer below has
// used its retries for it: the caller does not begin its own.
const TrailerExhausted = grpcwire.Exhausted

// UnaryServerInterceptor returns an interceptor for a server whose handlers make
// calls of their own. It hands the number of the attempt (grpc-previous-rpc-attempts,
// Envoy's x-envoy-attempt-count and X-Retry-Attempt) to the handler's context, so that a call made inside a caller's retry is not retried again, and
// marks a failed response with [TrailerExhausted] when the calls below have used
// their retries. The deadline travels with gRPC itself.
func UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, below := served(ctx)
		reply, err := handler(ctx, req)
		if exhausted(err, below) {
			_ = grpc.SetTrailer(ctx, metadata.Pairs(TrailerExhausted, "true"))
		}
		return reply, err
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams.
func StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, below := served(stream.Context())
		err := handler(srv, &inboundStream{stream, ctx})
		if exhausted(err, below) {
			stream.SetTrailer(metadata.Pairs(TrailerExhausted, "true"))
		}
		return err
	}
}

// inboundStream is a stream under the context that served made.
type inboundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *inboundStream) Context() context.Context { return s.ctx }

// served returns the context of a handler: with the number of the attempt that
// it serves, and watched for the exhaustion of the calls below.
func served(ctx context.Context) (context.Context, *layer.Exhaustion) {
	md, _ := metadata.FromIncomingContext(ctx)
	return layer.Watch(inbound.Retry(ctx, "inbound", md))
}

// exhausted reports whether a handler failed because the calls below it did, for
// good.
func exhausted(err error, below *layer.Exhaustion) bool {
	return err != nil && (below.Below() || edge.ExhaustedBelow(err))
}

// exhaustedBelow reports whether another forbear, in this process or further
// down the wire, has given this call up already.
func exhaustedBelow(err error, trailer metadata.MD) bool {
	return len(trailer[TrailerExhausted]) > 0 || edge.ExhaustedBelow(err)
}

// sendSeed makes the identities of requests unguessable, since they come from
// outside.
var sendSeed = maphash.MakeSeed()

// noteSend reports to an outer retry what is being sent, so that a layer in between
// that repeats it by itself is noticed.
func noteSend(ctx context.Context, cc *grpc.ClientConn, method string, req any) {
	if _, ok := forbear.AttemptFrom(ctx); !ok {
		return
	}
	m, ok := req.(proto.Message)
	if !ok || cc == nil {
		return
	}
	body, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(m)
	if err != nil {
		return
	}
	var h maphash.Hash
	h.SetSeed(sendSeed)
	for _, part := range [...]string{cc.Target(), method} {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(body)
	layer.NoteSend(ctx, h.Sum64())
}
