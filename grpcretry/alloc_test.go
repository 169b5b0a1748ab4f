package grpcretry_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/forbear-go/forbear/grpcretry"
)

// flat is a service that keeps nothing, so that its own cost is the same for
// each call.
type flat struct {
	healthpb.UnimplementedHealthServer
	answer func() error
}

func (f *flat) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	return &healthpb.HealthCheckResponse{Status: serving}, f.answer()
}

func good() error { return nil }

// perCall measures the allocations of one call, client and server together, without a
// deadline or under one that all its calls meet on a busy machine.
func perCall(t *testing.T, bounded bool, conn *grpc.ClientConn, runs int) float64 {
	t.Helper()
	ctx := t.Context()
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, testDeadline)
		defer cancel()
	}
	client, req := healthpb.NewHealthClient(conn), &healthpb.HealthCheckRequest{}
	call := func() {
		if _, err := client.Check(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	for range 50 {
		call()
	}
	return testing.AllocsPerRun(runs, call)
}

func listeners(t *testing.T) map[string]func() net.Listener {
	return map[string]func() net.Listener{
		"bufconn": func() net.Listener { return bufconn.Listen(1 << 20) },
		"tcp":     func() net.Listener { return tcp(t) },
	}
}

func TestAllocations(t *testing.T) {
	const near, far = true, false // deadlines of the caller's
	for name, listen := range listeners(t) {
		t.Run(name, func(t *testing.T) {
			p := quick()
			p.PerAttempt = testDeadline + time.Second // no shorter than the deadline of near
			r := retryer(t, p)
			bare := start(t, &flat{answer: good}, listen(), nil, plain())
			base := map[bool]float64{near: perCall(t, near, bare, 300), far: perCall(t, far, bare, 300)}
			for _, tc := range []struct {
				name string
				near bool
				most float64
				opts []grpcretry.Option
			}{
				{"deadline of the caller's, no pushback", near, 0, []grpcretry.Option{grpcretry.WithoutPushback()}},
				{"deadline of the caller's", near, 1, nil},
				{"no timeout, no pushback", far, 0, []grpcretry.Option{grpcretry.WithoutPushback(), grpcretry.WithoutAttemptTimeout()}},
				{"all on, no deadline", far, 16, nil},
			} {
				conn := start(t, &flat{answer: good}, listen(), nil, append(grpcretry.DialOptions(r, tc.opts...), plain())...)
				got := perCall(t, tc.near, conn, 300) - base[tc.near]
				t.Logf("%s: %+.0f over %.0f", tc.name, got, base[tc.near])
				if got > tc.most+raceSlack {
					t.Errorf("%s: %+.0f allocations, want at most %+.0f", tc.name, got, tc.most)
				}
			}
		})
	}
}

// TestTwoRetriesAllocations measures a call that succeeds at its third attempt,
// beside gRPC's own retries and beside three plain calls, of which two fail.
// An interceptor makes each attempt a call of its own, which gRPC's own retries
// do not: three plain calls alone are 9 % above these, 12 % without a deadline. What
// forbear comes to is held against both, as they are measured in the same run.
func TestTwoRetriesAllocations(t *testing.T) {
	const native = `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.001s","maxBackoff":"0.002s",
		"backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`
	for name, listen := range listeners(t) {
		t.Run(name, func(t *testing.T) {
			flaky := func() *flat {
				n, unavailable := 0, status.Error(codes.Unavailable, "no")
				return &flat{answer: func() error {
					if n++; n%3 != 0 {
						return unavailable
					}
					return nil
				}}
			}
			r := retryer(t, quick())
			idempotent := grpcretry.WithIdempotent(checkMethod)
			measure := func(what string, dial ...grpc.DialOption) (bounded, free float64) {
				bounded = perCall(t, true, start(t, flaky(), listen(), nil, append(dial, plain())...), 60)
				free = perCall(t, false, start(t, flaky(), listen(), nil, append(dial, plain())...), 60)
				t.Logf("%s: %.0f with a deadline of the caller's, %.0f without", what, bounded, free)
				return bounded, free
			}
			hold := func(what string, got, beside, share float64) {
				if got > beside*share+3*raceSlack {
					t.Errorf("%s: %.0f allocations beside %.0f, %.3f times; want at most %.3f", what, got, beside, got/beside, share)
				}
			}
			ownBounded, ownFree := measure("gRPC's own", grpc.WithDefaultServiceConfig(native))
			plainBounded, plainFree := measure("three plain calls", grpc.WithUnaryInterceptor(thrice))
			bounded, free := measure("forbear with attempt timeouts", grpcretry.DialOptions(r, idempotent)...)
			hold("with attempt timeouts, beside gRPC's own", bounded, ownBounded, 1.20)
			hold("with attempt timeouts, beside gRPC's own without a deadline", free, ownFree, 1.32)
			bounded, free = measure("forbear", grpcretry.DialOptions(r, idempotent, grpcretry.WithoutAttemptTimeout())...)
			hold("beside gRPC's own", bounded, ownBounded, 1.15)
			hold("beside gRPC's own without a deadline", free, ownFree, 1.17)
			hold("beside three plain calls", bounded, plainBounded, 1.055)
			hold("beside three plain calls without a deadline", free, plainFree, 1.045)
		})
	}
}

// thrice is the least that an interceptor can do.
func thrice(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) (err error) {
	for range 3 {
		if err = invoker(ctx, method, req, reply, cc, opts...); err == nil {
			return nil
		}
	}
	return err
}
