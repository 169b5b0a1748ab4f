package grpcretry_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/grpcretry"
)

const (
	checkMethod  = "/grpc.health.v1.Health/Check"
	watchMethod  = "/grpc.health.v1.Health/Watch"
	serving      = healthpb.HealthCheckResponse_SERVING
	testDeadline = 20 * time.Second
)

// service answers Check and Watch by its functions, which get the number of
// the attempt, and notes what each attempt carried.
type service struct {
	healthpb.UnimplementedHealthServer
	check func(ctx context.Context, n int) error
	watch func(s grpc.ServerStreamingServer[healthpb.HealthCheckResponse], n int) error

	mu   sync.Mutex
	seen []metadata.MD
}

func (s *service) note(ctx context.Context) int {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, md)
	return len(s.seen)
}

func (s *service) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// values returns one metadata value of each attempt.
func (s *service) values(key string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, md := range s.seen {
		v := ""
		if got := md.Get(key); len(got) > 0 {
			v = got[0]
		}
		all = append(all, v)
	}
	return all
}

func (s *service) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if n := s.note(ctx); s.check != nil {
		if err := s.check(ctx, n); err != nil {
			return nil, err
		}
	}
	return &healthpb.HealthCheckResponse{Status: serving}, nil
}

func (s *service) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	return s.watch(stream, s.note(stream.Context()))
}

// start serves s on l and returns a connection to it.
func start(t testing.TB, s healthpb.HealthServer, l net.Listener, server []grpc.ServerOption, dial ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	srv := grpc.NewServer(server...)
	healthpb.RegisterHealthServer(srv, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-done })
	target := l.Addr().String()
	if b, ok := l.(*bufconn.Listener); ok {
		target = "passthrough:///bufconn"
		dial = append(dial, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return b.DialContext(ctx) }))
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func tcp(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// plain is the transport of tests that are not about TLS.
func plain() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }

// quick is a policy whose waits do not slow the tests down.
func quick() forbear.Policy {
	return forbear.Policy{
		Kind:    forbear.GRPC,
		Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 2 * time.Millisecond},
		Breaker: breaker.Policy{Disabled: true},
	}
}

func retryer(t testing.TB, p forbear.Policy, opts ...forbear.Option) *forbear.Retryer {
	t.Helper()
	opts = append([]forbear.Option{forbear.WithoutLog(), forbear.WithBudget(budget.NewTokenBucket(1<<30, 1))}, opts...)
	r, err := forbear.New("ledger", p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dialed is a connection to s through forbear, with both methods declared safe.
func dialed(t testing.TB, s *service, p forbear.Policy, opts ...grpcretry.Option) *grpc.ClientConn {
	t.Helper()
	opts = append([]grpcretry.Option{grpcretry.WithIdempotent(checkMethod, watchMethod)}, opts...)
	return start(t, s, tcp(t), nil, append(grpcretry.DialOptions(retryer(t, p), opts...), plain())...)
}

func check(t testing.TB, ctx context.Context, conn *grpc.ClientConn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, testDeadline)
	defer cancel()
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err == nil && resp.GetStatus() != serving {
		t.Errorf("status %v, want %v", resp.GetStatus(), serving)
	}
	return err
}
