package grpcretry_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/edge"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/reason"
)

func inbound() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(grpcretry.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(grpcretry.StreamServerInterceptor()),
	}
}

func dead(n *atomic.Int64) *service {
	return &service{check: func(context.Context, int) error {
		n.Add(1)
		return status.Error(codes.Unavailable, "dead")
	}}
}

// hop is a service that asks the next one.
func hop(t *testing.T, next *grpc.ClientConn, server []grpc.ServerOption, opts ...grpcretry.Option) *grpc.ClientConn {
	s := &service{check: func(ctx context.Context, _ int) error {
		_, err := healthpb.NewHealthClient(next).Check(ctx, &healthpb.HealthCheckRequest{})
		return status.Convert(err).Err() // as over the wire: nothing but a status
	}}
	opts = append(opts, grpcretry.WithIdempotent("*"))
	return start(t, s, tcp(t), server, append(grpcretry.DialOptions(retryer(t, quick()), opts...), plain())...)
}

// Each service calls the next with three retries, and the leaf is dead. One
// call from outside must not become 4^5 = 1,024.
func TestFiveServicesDeep(t *testing.T) {
	for _, tc := range []struct {
		name   string
		server []grpc.ServerOption
		opts   []grpcretry.Option
		least  int64
		most   int64
	}{
		{"with the server's interceptor", inbound(), nil, 4, 4},
		{"without it", nil, nil, 1024, 1024},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var n atomic.Int64
			conn := start(t, dead(&n), tcp(t), tc.server, append(grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent("*")), plain())...)
			for range 4 {
				conn = hop(t, conn, tc.server, tc.opts...)
			}
			err := check(t, t.Context(), conn)
			if got := n.Load(); got < tc.least || got > tc.most {
				t.Errorf("the leaf was asked %d times for one call, want %d to %d", got, tc.least, tc.most)
			}
			e, ok := errors.AsType[*forbear.Error](err)
			if !ok || status.Code(err) != codes.Unavailable || tc.most == 4 && e.Reason != reason.ExhaustedBelow {
				t.Errorf("the outermost ended with %v", err)
			}
		})
	}
}

func TestACallInsideARetryIsTriedOnce(t *testing.T) {
	var n atomic.Int64
	leaf := start(t, dead(&n), tcp(t), nil, append(grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent("*")), plain())...)
	s := &service{check: func(ctx context.Context, _ int) error {
		_, _ = healthpb.NewHealthClient(leaf).Check(ctx, &healthpb.HealthCheckRequest{})
		return nil
	}}
	conn := start(t, s, tcp(t), inbound(), plain())
	const envoy, own = "x-envoy-attempt-count", "x-retry-attempt"
	for _, tc := range []struct {
		name, attempts string
		want           int64
	}{
		{"", "", 4},
		{grpcretry.HeaderAttempts, "0", 4},
		{grpcretry.HeaderAttempts, "1", 1},
		{grpcretry.HeaderAttempts, "3", 1},
		{grpcretry.HeaderAttempts, "x", 4},
		{grpcretry.HeaderAttempts, "-1", 4},
		{grpcretry.HeaderAttempts, "99999999999999999999", 4},
		{envoy, "1", 4},
		{envoy, "2", 1},
		{envoy, "1001", 4},
		{own, "0", 4},
		{own, "1", 1},
	} {
		n.Store(0)
		ctx := t.Context()
		if tc.name != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, tc.name, tc.attempts)
		}
		if err := check(t, ctx, conn); err != nil {
			t.Fatal(err)
		}
		if n.Load() != tc.want {
			t.Errorf("inside %s %q: %d calls, want %d", tc.name, tc.attempts, n.Load(), tc.want)
		}
	}
}

// A handler whose own calls are well, or that succeeds in spite of them, marks
// nothing; a stream is marked like a call.
func TestExhaustionInTrailers(t *testing.T) {
	var n atomic.Int64
	leaf := start(t, dead(&n), tcp(t), nil, append(grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent("*")), plain())...)
	s := &service{
		check: func(ctx context.Context, n int) error {
			if n == 1 {
				return status.Error(codes.Unavailable, "of its own")
			}
			_, _ = healthpb.NewHealthClient(leaf).Check(ctx, &healthpb.HealthCheckRequest{})
			return nil
		},
		watch: func(stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse], _ int) error {
			_, err := healthpb.NewHealthClient(leaf).Check(stream.Context(), &healthpb.HealthCheckRequest{})
			return status.Convert(err).Err()
		},
	}
	conn := start(t, s, tcp(t), inbound(), plain())
	for range 2 {
		var trailer metadata.MD
		_, _ = healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Trailer(&trailer))
		if got := trailer.Get(grpcretry.TrailerExhausted); got != nil {
			t.Errorf("marked with %q", got)
		}
	}
	stream, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || len(stream.Trailer().Get(grpcretry.TrailerExhausted)) != 1 {
		t.Errorf("got %v with the trailer %v", err, stream.Trailer())
	}
	// A client of forbear's reads it, of a stream as well.
	n.Store(0)
	conn = start(t, s, tcp(t), inbound(), append(grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent("*")), plain())...)
	if stream, err = healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{}); err == nil {
		_, err = stream.Recv()
	}
	if e, ok := errors.AsType[*forbear.Error](err); !ok || e.Reason != reason.ExhaustedBelow || n.Load() != 4 {
		t.Errorf("got %v after %d calls of the leaf, want 4 and the end", err, n.Load())
	}
	if errors.Is(err, io.EOF) {
		t.Error("the stream ended well")
	}
}

// A layer in between that repeats calls by itself is noticed by the retry above
// it; one that makes different calls is not one.
func TestLayerThatRepeatsIsNoticed(t *testing.T) {
	for name, want := range map[string]bool{"the same": true, "others": false} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			conn := start(t, dead(&n), tcp(t), nil, append(grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent("*")), plain())...)
			outer := retryer(t, quick())
			_ = outer.Do(t.Context(), func(ctx context.Context) error {
				for k := range 2 {
					req := &healthpb.HealthCheckRequest{}
					if !want {
						req.Service = string(rune('a' + k))
					}
					_, _ = healthpb.NewHealthClient(conn).Check(ctx, req)
				}
				return forbear.Retryable(errors.New("again"), forbear.Hint{})
			})
			if got := edge.LayeredSends(outer) > 0; got != want {
				t.Errorf("noticed %d sends", edge.LayeredSends(outer))
			}
		})
	}
}
