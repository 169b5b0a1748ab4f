package interop_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/grpcretry"
)

// first fails the first n calls.
func first(n int, err error) func(context.Context, int) error {
	return func(_ context.Context, call int) error {
		if call <= n {
			return err
		}
		return nil
	}
}

// pushed fails with a pushback.
func pushed(value string) func(context.Context, int) error {
	return func(ctx context.Context, call int) error {
		if call > 1 {
			return nil
		}
		_ = grpc.SetTrailer(ctx, metadata.Pairs(grpcretry.TrailerPushback, value))
		return status.Error(codes.Unavailable, "busy")
	}
}

// waiting is RESOURCE_EXHAUSTED with a RetryInfo.
func waiting(t *testing.T, d time.Duration) error {
	t.Helper()
	s, err := status.New(codes.ResourceExhausted, "quota").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

// TestFlakyServer: what reaches a server that fails, and what its caller sees.
func TestFlakyServer(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, "starting")
	for _, tc := range []struct {
		name string
		fail func(context.Context, int) error
		key  string
		sent int
		code codes.Code
		stop string
	}{
		{"unavailable twice", first(2, unavailable), "k", 3, codes.OK, ""},
		{"unavailable, no key", first(2, unavailable), "", 1, codes.Unavailable, "no_idempotency_key"},
		{"unavailable for good", first(99, unavailable), "k", 4, codes.Unavailable, "exhausted"},
		{"internal", first(1, status.Error(codes.Internal, "bug")), "k", 1, codes.Internal, ""},
		{"pushed back", pushed("1"), "k", 2, codes.OK, ""},
		{"told to stop", pushed("-1"), "k", 1, codes.Unavailable, "server_said_stop"},
		{"a quota", first(1, waiting(t, time.Millisecond)), "k", 2, codes.OK, ""},
		{"a long quota", first(1, waiting(t, time.Hour)), "k", 1, codes.ResourceExhausted, "after_exceeds_deadline"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &service{fail: tc.fail}
			client := testpb.NewTestServiceClient(between(t, s, quick, grpc.WithDisableRetry()))
			ctx := t.Context()
			if tc.key != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, grpcretry.HeaderKey, tc.key)
			}
			var trailer metadata.MD
			_, err := client.EmptyCall(ctx, &testpb.Empty{}, grpc.Trailer(&trailer))
			calls := s.received()
			if status.Code(err) != tc.code || len(calls) != tc.sent {
				t.Errorf("%v after %d calls, want %v after %d", err, len(calls), tc.code, tc.sent)
			}
			if got := trailer["forbear-stop"]; tc.stop != "" && (len(got) != 1 || got[0] != tc.stop) {
				t.Errorf("forbear-stop %q, want %q", got, tc.stop)
			}
			for i, md := range calls {
				if n := md[grpcretry.HeaderAttempts]; (i > 0) != (len(n) == 1) {
					t.Errorf("call %d came with %s %q", i+1, grpcretry.HeaderAttempts, n)
				}
			}
		})
	}
}

// TestOneLayerRetries: callers that retry by themselves, gRPC's own way and with the
// interceptors, leave it at what the gateway has tried.
func TestOneLayerRetries(t *testing.T) {
	const config = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s",
		"maxBackoff":"0.01s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	r, err := forbear.New("gateway", quick, forbear.WithoutLog(),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "gateway", Reason: "a budget in no test's way"}))
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]grpc.DialOption{
		"gRPC":         {grpc.WithDefaultServiceConfig(config)},
		"interceptors": grpcretry.DialOptions(r),
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{fail: first(99, status.Error(codes.Unavailable, "down"))}
			client := testpb.NewTestServiceClient(between(t, s, quick, opts...))
			_, err := client.EmptyCall(grpcretry.WithKey(t.Context(), "k"), &testpb.Empty{})
			if n := len(s.received()); status.Code(err) != codes.Unavailable || n != 4 {
				t.Errorf("%v after %d calls, want 4", err, n)
			}
			if name == "interceptors" && !edge.ExhaustedBelow(err) {
				t.Errorf("%v does not say that retries are used up below", err)
			}
		})
	}
}

// TestStreams: a stream that is refused before it began is opened again, with a key;
// one that has begun is not.
func TestStreams(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, "starting")
	t.Run("refused", func(t *testing.T) {
		s := &service{fail: first(2, unavailable)}
		stream, err := testpb.NewTestServiceClient(between(t, s, quick)).FullDuplexCall(grpcretry.WithKey(t.Context(), "k"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			err := stream.Send(&testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 3}}})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := stream.Recv(); err != nil || len(got.GetPayload().GetBody()) != 3 {
				t.Fatal(got, err)
			}
		}
		_ = stream.CloseSend()
		if _, err := stream.Recv(); err != io.EOF || len(s.received()) != 3 {
			t.Errorf("%v after %d calls", err, len(s.received()))
		}
	})
	t.Run("begun", func(t *testing.T) {
		s := &service{}
		stream, err := testpb.NewTestServiceClient(between(t, s, quick)).FullDuplexCall(grpcretry.WithKey(t.Context(), "k"))
		if err != nil {
			t.Fatal(err)
		}
		req := &testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 3}}}
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&testpb.StreamingOutputCallRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.Unavailable), Message: "gone"}})
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "gone" || len(s.received()) != 1 {
			t.Errorf("%v after %d calls", err, len(s.received()))
		}
	})
}

// TestDeadlineReachesTheServer: what is left of the caller's time, and no more.
func TestDeadlineReachesTheServer(t *testing.T) {
	left := make(chan time.Duration, 1)
	s := &service{fail: func(ctx context.Context, _ int) error {
		due, _ := ctx.Deadline()
		left <- time.Until(due)
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}}
	client := testpb.NewTestServiceClient(between(t, s, quick))
	const limit = 3 * time.Second // so that it is reached
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := client.EmptyCall(ctx, &testpb.Empty{})
	if got := <-left; status.Code(err) != codes.DeadlineExceeded || got > limit {
		t.Errorf("%v, %v were left", err, got)
	}
}

// TestCancelReachesTheServer: at once, and in the middle of a stream.
func TestCancelReachesTheServer(t *testing.T) {
	s := &service{ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := testpb.NewTestServiceClient(between(t, s, quick)).FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: 3}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-s.ended; err != context.Canceled {
		t.Errorf("the server's context ended with %v", err)
	}
}

// TestDeadUpstream: a server that is not there is UNAVAILABLE in the gateway's own words,
// without its address.
func TestDeadUpstream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	address := gatewayTo(t, "http://"+l.Addr().String(), quick, clear2(), nil)
	client := testpb.NewTestServiceClient(dial(t, address, insecure.NewCredentials()))
	var trailer metadata.MD
	_, err = client.EmptyCall(t.Context(), &testpb.Empty{}, grpc.Trailer(&trailer))
	const want = "Upstream failed: not safe to send again: send an idempotency-key of 1 to 64 characters, or declare the method idempotent (grpcretry.WithIdempotent; at a gateway, idempotent in the policy file); attempt 1 failed: connection_refused"
	if s := status.Convert(err); s.Code() != codes.Unavailable || s.Message() != want || len(trailer["x-correlation-id"]) != 1 {
		t.Errorf("%v, %v", err, trailer)
	}
}
