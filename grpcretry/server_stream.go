package grpcretry

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// StreamServerIdempotency returns an interceptor that refuses streams, of either side
// or both, that carry an idempotency key: UNIMPLEMENTED, which no client retries, with a
// google.rpc.ErrorInfo of reason KEY_ON_STREAM. A stream is not done once for its key,
// and a caller that sends one relies on that: [UnaryServerIdempotency] does unary calls
// alone. Streams without a key pass, and so do the given methods, which honor keys by
// themselves: "/ledger.Ledger/Watch", or "/ledger.Ledger/*" for a service.
func StreamServerIdempotency(pass ...string) grpc.StreamServerInterceptor {
	honored := newMethodSet(pass)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		if len(md[HeaderKey]) > 0 && !honored.has(info.FullMethod) {
			return refuse(codes.Unimplemented, "KEY_ON_STREAM", "idempotency keys are for unary calls: send a stream without one", 0)
		}
		return handler(srv, stream)
	}
}
