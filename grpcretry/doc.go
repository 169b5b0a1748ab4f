// Package grpcretry puts forbear's decisions into gRPC clients, and idempotency
// keys into gRPC servers.
//
//	r, err := forbear.New("ledger", forbear.Policy{Kind: forbear.GRPC})
//	conn, err := grpc.NewClient(target, grpcretry.DialOptions(r,
//		grpcretry.WithTransportCredentials(credentials.NewTLS(nil)),
//		grpcretry.WithIdempotent("/ledger.Ledger/Get"),
//	)...)
//
// What it retries:
//
//   - Unary calls, and server-streaming calls until their headers or their
//     first message have arrived. Client streams are left alone.
//   - Calls that are safe to repeat: methods that their .proto declares
//     with idempotency_level, methods of [WithIdempotent], and calls with an
//     idempotency key in their metadata ([WithKey]).
//   - The codes of R-4: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED and
//     ABORTED. UNAUTHENTICATED gets one new token where [WithCredentials] has a
//     source of them.
//   - Never a refused certificate. gRPC hides it in UNAVAILABLE and goes
//     on connecting; the credentials of [WithTransportCredentials] keep the
//     typed error, and hold further handshakes back.
//
// grpc-retry-pushback-ms replaces the first backoff and, when negative, ends the
// call; google.rpc.RetryInfo is a floor under the wait. Up to 10 % is added to both,
// where gRFC A6 adds nothing: clients that were turned away together do not return
// together. Each retry carries grpc-previous-rpc-attempts.
//
// gRPC's own retries must be off, since their jitter is 20 % where R-1 demands
// all of it: [DialOptions] switches them off. Transparent retries, of calls
// that a server never saw, are gRPC's own affair and stay.
//
// A call that fails ends with a [*forbear.Error] that unwraps to the original:
// status.Code and status.Convert read it as before.
//
// In servers, [UnaryServerIdempotency] does calls once per idempotency key,
// [StreamServerIdempotency] refuses streams that carry one, and
// [UnaryServerInterceptor] makes the layers known to each other: a call made inside a
// retry is tried once, and a failure whose retries are used up below says so.
package grpcretry
