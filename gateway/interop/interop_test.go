package interop_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	grpcinterop "google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/forbear-go/forbear"
)

// TestInterop runs gRPC's interop cases, those that need no cloud, through a gateway. A
// case that fails ends the process with its own words.
func TestInterop(t *testing.T) {
	for wire, connect := range map[string]func(*testing.T, *service, forbear.Policy) *grpc.ClientConn{
		"clear": func(t *testing.T, s *service, p forbear.Policy) *grpc.ClientConn { return between(t, s, p) },
		"tls":   betweenTLS,
	} {
		t.Run(wire, func(t *testing.T) {
			cc := connect(t, &service{}, quick)
			client := testpb.NewTestServiceClient(cc)
			for name, do := range cases {
				t.Run(name, func(t *testing.T) { do(t.Context(), client) })
			}
			t.Run("unimplemented_method", func(t *testing.T) { grpcinterop.DoUnimplementedMethod(t.Context(), cc) })
			t.Run("unimplemented_service", func(t *testing.T) {
				grpcinterop.DoUnimplementedService(t.Context(), testpb.NewUnimplementedServiceClient(cc))
			})
		})
	}
}

// cases are those of a client of the test service, by the names of the specification.
var cases = map[string]func(context.Context, testpb.TestServiceClient){
	"empty_unary":                 plain(grpcinterop.DoEmptyUnaryCall),
	"large_unary":                 plain(grpcinterop.DoLargeUnaryCall),
	"client_streaming":            plain(grpcinterop.DoClientStreaming),
	"server_streaming":            plain(grpcinterop.DoServerStreaming),
	"ping_pong":                   plain(grpcinterop.DoPingPong),
	"empty_stream":                plain(grpcinterop.DoEmptyStream),
	"timeout_on_sleeping_server":  plain(grpcinterop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          plain(grpcinterop.DoCancelAfterBegin),
	"cancel_after_first_response": plain(grpcinterop.DoCancelAfterFirstResponse),
	"custom_metadata":             plain(grpcinterop.DoCustomMetadata),
	"status_code_and_message":     plain(grpcinterop.DoStatusCodeAndMessage),
	"special_status_message":      plain(grpcinterop.DoSpecialStatusMessage),
}

// plain is a case without call options.
func plain(do func(context.Context, testpb.TestServiceClient, ...grpc.CallOption)) func(context.Context, testpb.TestServiceClient) {
	return func(ctx context.Context, c testpb.TestServiceClient) { do(ctx, c) }
}
