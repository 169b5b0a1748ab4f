// Package grpc has the signatures of google.golang.org/grpc.
package grpc

import "context"

type (
	ClientConn             struct{}
	DialOption             interface{ apply() }
	CallOption             interface{ before() }
	UnaryInvoker           func(ctx context.Context, method string, req, reply any, cc *ClientConn, opts ...CallOption) error
	UnaryClientInterceptor func(ctx context.Context, method string, req, reply any, cc *ClientConn, invoker UnaryInvoker, opts ...CallOption) error
)

func NewClient(target string, opts ...DialOption) (*ClientConn, error) { return nil, nil }
func WithUnaryInterceptor(f UnaryClientInterceptor) DialOption         { return nil }
func WithDefaultServiceConfig(s string) DialOption                     { return nil }
