package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lost stands for the network: the first response does not arrive.
func lost() grpc.UnaryServerInterceptor {
	var calls atomic.Int64
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		reply, err := next(ctx, req)
		if calls.Add(1) == 1 {
			fmt.Println("  network: the first response is lost")
			return nil, status.Error(codes.Unavailable, "connection lost")
		}
		return reply, err
	}
}
