package serve

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/forbear-go/forbear/cmd/forbear/internal/cli/clitest"
)

// flakyHealth is a gRPC service that is unavailable for its first calls.
type flakyHealth struct {
	healthpb.UnimplementedHealthServer
	down, calls atomic.Int64
}

func (h *flakyHealth) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if h.calls.Add(1) <= h.down.Load() {
		return nil, grpcstatus.Error(codes.Unavailable, "starting")
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// TestServeGRPC: a dependency of kind grpc needs no word on HTTP/2. Its calls are
// retried by gRPC's codes, and what the gateway says itself is gRPC.
func TestServeGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &flakyHealth{}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, h)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	s := startServe(t, "--admin", "off", "--log-format", "json", "--config", clitest.File(t, "policy.yaml", `
dependencies:
  orders: {kind: grpc, url: 'http://`+l.Addr().String()+`', backoff: {base: 1ms}}
gateway:
  listen: 127.0.0.1:0
  access_log: on
  routes:
    - {prefix: /grpc.health.v1.Health, dependency: orders, methods: [POST]}
`))
	conn, err := grpc.NewClient(strings.TrimPrefix(s.base, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.down.Store(2)
	keyed := metadata.AppendToOutgoingContext(ctx, "idempotency-key", "k")
	if got, err := client.Check(keyed, &healthpb.HealthCheckRequest{}); err != nil || got.Status != healthpb.HealthCheckResponse_SERVING || h.calls.Load() != 3 {
		t.Errorf("got %v, %v after %d calls", got, err, h.calls.Load())
	}
	if _, err := client.List(ctx, &healthpb.HealthListRequest{}); grpcstatus.Code(err) != codes.Unimplemented {
		t.Errorf("a method that the server does not have: %v", err)
	}
	if err := conn.Invoke(ctx, "/other.Service/Call", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); grpcstatus.Code(err) != codes.Unimplemented {
		t.Errorf("a service without a route: %v", err)
	}
	resp, err := http.Get(s.base + "/grpc.health.v1.Health/Check")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a GET: %d", resp.StatusCode)
	}
	s.stop()
	lines := accessLines(t, s.log.String())
	if len(lines) != 4 || lines[0]["attempts"] != 3.0 || lines[0]["grpc_status"] == nil {
		t.Errorf("the access log: %v", lines)
	}
}
