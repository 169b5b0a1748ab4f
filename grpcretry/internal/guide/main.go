// Command guide is the program of docs/guides/grpc.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
)

// ledger is unavailable twice.
type ledger struct {
	healthpb.UnimplementedHealthServer
	calls atomic.Int64
}

func (l *ledger) Check(_ context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if l.calls.Add(1) <= 2 {
		return nil, status.Error(codes.Unavailable, "starting")
	}
	if req.GetService() == "unknown" {
		return nil, status.Error(codes.NotFound, "no such service")
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, service := grpc.NewServer(), &ledger{}
	healthpb.RegisterHealthServer(server, service)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	policy := forbear.Policy{Kind: forbear.GRPC}
	policy.Backoff.Base = 10 * time.Millisecond // for this program; the default is 1 s
	retryer, err := forbear.New("ledger", policy, forbear.WithoutLog())
	if err != nil {
		log.Fatal(err)
	}
	dial := grpcretry.DialOptions(retryer,
		grpcretry.WithTransportCredentials(insecure.NewCredentials()), // in production: credentials.NewTLS
		grpcretry.WithIdempotent("/grpc.health.v1.Health/Check"),
	)
	conn, err := grpc.NewClient(listener.Addr().String(), dial...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := healthpb.NewHealthClient(conn)
	resp, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.GetStatus(), "after", service.calls.Load(), "attempts")

	_, err = client.Check(ctx, &healthpb.HealthCheckRequest{Service: "unknown"})
	if why, ok := errors.AsType[*forbear.Error](err); ok {
		fmt.Println(status.Code(err), why.Reason, why.Reason.Rule(), why.Attempts)
	}
}
