package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// grpcCall makes one unary call of gRPC; ca is empty without TLS.
type grpcCall func(target, ca string) error

var grpcClients = map[string]grpcCall{
	"grpc-go": grpcAlone, "grpc-go-retry": grpcGuide, "grpc-go-retry-example": grpcExample,
	"go-grpc-middleware": middlewareCall, "grpcretry": forbearCall,
}

// guide is the service config of gRPC's guide to retries.
const guide = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// example is that of grpc-go's example of retries.
const example = `{"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {
	"MaxAttempts": 4, "InitialBackoff": ".01s", "MaxBackoff": ".01s", "BackoffMultiplier": 1.0, "RetryableStatusCodes": ["UNAVAILABLE"]}}]}`

// trust returns the credentials for a file with an authority.
func trust(ca string) (credentials.TransportCredentials, error) {
	if ca == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(ca)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return credentials.NewTLS(&tls.Config{RootCAs: roots}), err
}

// invoke makes the call on a connection of its own.
func invoke(ctx context.Context, target string, options ...grpc.DialOption) error {
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Invoke(ctx, "/zoo.Zoo/Call", &emptypb.Empty{}, &emptypb.Empty{})
}

func grpcAlone(target, ca string) error {
	creds, err := trust(ca)
	if err != nil {
		return err
	}
	return invoke(context.Background(), target, grpc.WithTransportCredentials(creds))
}

func grpcGuide(target, ca string) error {
	creds, err := trust(ca)
	if err != nil {
		return err
	}
	return invoke(context.Background(), target, grpc.WithTransportCredentials(creds), grpc.WithDefaultServiceConfig(guide))
}

// grpcExample has the deadline of the example, too.
func grpcExample(target, ca string) error {
	creds, err := trust(ca)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return invoke(ctx, target, grpc.WithTransportCredentials(creds), grpc.WithDefaultServiceConfig(example))
}

// middlewareCall has the exponential backoff of its documentation; its own default is not to
// retry.
func middlewareCall(target, ca string) error {
	creds, err := trust(ca)
	if err != nil {
		return err
	}
	interceptor := retry.UnaryClientInterceptor(retry.WithMax(3), retry.WithBackoff(retry.BackoffExponential(100*time.Millisecond)))
	return invoke(context.Background(), target, grpc.WithTransportCredentials(creds), grpc.WithUnaryInterceptor(interceptor))
}

// forbearCall has forbear's defaults.
func forbearCall(target, ca string) error {
	creds, err := trust(ca)
	if err != nil {
		return err
	}
	r, err := forbear.New("zoo", forbear.Policy{Kind: forbear.GRPC})
	if err != nil {
		return err
	}
	return invoke(context.Background(), target, grpcretry.DialOptions(r, grpcretry.WithTransportCredentials(creds), grpcretry.WithIdempotent("*"))...)
}
