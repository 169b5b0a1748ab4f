package grpcretry_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/idempotency"
	"github.com/forbear-go/forbear/storetest/memstore"
)

// orders answers Check with the number of the order that it took.
type orders struct {
	healthpb.UnimplementedHealthServer
	taken int32
}

func (o *orders) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	o.taken++
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_ServingStatus(o.taken)}, nil
}

// A call that comes twice with one key is done once.
func ExampleUnaryServerIdempotency() {
	once, err := grpcretry.UnaryServerIdempotency(&memstore.Idempotency{}, grpcretry.IdempotencyOptions{
		Methods:   []string{"/grpc.health.v1.Health/Check"},
		Principal: func(context.Context) (string, error) { return "ann", nil }, // whom your authentication found
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(grpcretry.UnaryServerInterceptor(), once))
	healthpb.RegisterHealthServer(server, &orders{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	ctx := grpcretry.WithKey(context.Background(), idempotency.NewKey())
	for range 2 {
		var header metadata.MD
		reply, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header))
		fmt.Println("order", reply.GetStatus().Number(), err, "replayed:", header.Get(grpcretry.HeaderReplayed) != nil)
	}
	// Output:
	// order 1 <nil> replayed: false
	// order 1 <nil> replayed: true
}
