package grpcretry_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/reason"
)

type watchStream = grpc.ServerStreamingServer[healthpb.HealthCheckResponse]

// watch reads a stream to its end and returns how many messages it had.
func watch(t *testing.T, ctx context.Context, conn *grpc.ClientConn) (n int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, testDeadline)
	defer cancel()
	stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return 0, err
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n++
	}
}

func TestServerStreams(t *testing.T) {
	message := &healthpb.HealthCheckResponse{Status: serving}
	for _, tc := range []struct {
		name     string
		watch    func(s watchStream, n int) error
		attempts int
		messages int
		reason   forbear.Reason
		failed   bool
	}{
		{"fails before the first message", func(s watchStream, n int) error {
			if n <= 2 {
				return unavailable
			}
			return errors.Join(s.Send(message), s.Send(message))
		}, 3, 2, 0, false},
		{"fails after the first message", func(s watchStream, _ int) error {
			_ = s.Send(message)
			return unavailable
		}, 1, 1, 0, true},
		{"fails after the headers", func(s watchStream, _ int) error {
			_ = s.SendHeader(metadata.Pairs("x-began", "1"))
			return unavailable
		}, 1, 0, reason.NotReplayable, true},
		{"fails for good", func(watchStream, int) error { return status.Error(codes.NotFound, "") }, 1, 0, reason.Terminal, true},
		{"never recovers", func(watchStream, int) error { return unavailable }, 4, 0, reason.Exhausted, true},
		{"is empty", func(watchStream, int) error { return nil }, 1, 0, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &service{watch: tc.watch}
			n, err := watch(t, t.Context(), dialed(t, s, quick()))
			if s.attempts() != tc.attempts || n != tc.messages || (err != nil) != tc.failed || reasonOf(err) != tc.reason {
				t.Errorf("%d attempts, %d messages, %v; want %d, %d, %v", s.attempts(), n, err, tc.attempts, tc.messages, tc.reason)
			}
		})
	}
}

func TestStreamThatBringsNothingInTime(t *testing.T) {
	p := quick()
	p.PerAttempt = 2 * time.Second // for the second, too
	s := &service{watch: func(s watchStream, n int) error {
		if n == 1 {
			<-s.Context().Done()
			return s.Context().Err()
		}
		// Once it has begun, a stream may take longer than an attempt.
		_ = s.Send(&healthpb.HealthCheckResponse{Status: serving})
		time.Sleep(p.PerAttempt * 5 / 4)
		return s.Send(&healthpb.HealthCheckResponse{Status: serving})
	}}
	if n, err := watch(t, t.Context(), dialed(t, s, p)); err != nil || n != 2 || s.attempts() != 2 {
		t.Errorf("%d messages, %v, %d attempts; want 2, none, 2", n, err, s.attempts())
	}
}

func TestStreamThatIsGivenUpLeavesItsPlace(t *testing.T) {
	p := quick()
	p.MaxConcurrent = 1
	s := &service{watch: func(s watchStream, _ int) error { <-s.Context().Done(); return s.Context().Err() }}
	r := retryer(t, p)
	conn := start(t, s, tcp(t), nil, append(grpcretry.DialOptions(r, grpcretry.WithIdempotent(watchMethod)), plain())...)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := check(t, t.Context(), conn); !errors.Is(err, forbear.ErrBulkheadFull) || status.Code(err) != codes.ResourceExhausted {
		t.Errorf("with the place taken: %v, want a full bulkhead", err)
	}
	cancel()
	for range 3000 { // the context's end reaches the stream a moment later
		if err := check(t, t.Context(), conn); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the place was never given back")
}
