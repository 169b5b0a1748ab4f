package status

import (
	"context"
	"time"

	grpc_retry "github.com/grpc-ecosystem/go-grpc-middleware/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

type echoClient interface {
	Echo(ctx context.Context, in string) (string, error)
}

// case switch on a code: FB1035

func Echo(ctx context.Context, c echoClient, in string) (out string, err error) {
	for i := 0; i < 5; i++ {
		out, err = c.Echo(ctx, in)
		switch grpcstatus.Code(err) {
		case codes.OK:
			return out, nil
		case codes.Unavailable, codes.InvalidArgument, codes.ResourceExhausted:
			time.Sleep(jittered(i))
		default:
			return "", err
		}
	}
	return "", err
}

// case predicate on a status: FB1035

func retriable(err error) bool {
	st, ok := grpcstatus.FromError(err)
	if !ok {
		return false
	}
	return st.Code() == codes.Unavailable || st.Code() == codes.PermissionDenied
}

func EchoAll(ctx context.Context, c echoClient, in []string) error {
	for _, s := range in {
		_, err := c.Echo(ctx, s)
		for i := 0; i < 3 && retriable(err); i++ {
			time.Sleep(jittered(i))
			_, err = c.Echo(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// case codes of an interceptor: FB1035

func Conn(addr string) (*grpc.ClientConn, error) {
	opts := []grpc_retry.CallOption{
		grpc_retry.WithMax(3),
		grpc_retry.WithCodes(codes.NotFound, codes.Unavailable),
	}
	return grpc.NewClient(addr, grpc.WithUnaryInterceptor(grpc_retry.UnaryClientInterceptor(opts...)))
}

// case service config: FB1035

const serviceConfig = `{
  "methodConfig": [{
    "name": [{"service": "echo.Echo"}],
    "retryPolicy": {
      "maxAttempts": 4,
      "initialBackoff": "0.1s",
      "maxBackoff": "5s",
      "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE", "INVALID_ARGUMENT"]
    }
  }]
}`

func Configured(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr, grpc.WithDefaultServiceConfig(serviceConfig))
}

// case set of codes: FB1035

var again = map[codes.Code]struct{}{
	codes.Unavailable:     {},
	codes.Unauthenticated: {},
	codes.AlreadyExists:   {},
}

func Repeat(ctx context.Context, c echoClient, in string) error {
	for i := 0; ; i++ {
		_, err := c.Echo(ctx, in)
		if err == nil {
			return nil
		}
		if _, ok := again[grpcstatus.Code(err)]; !ok || i == 4 {
			return err
		}
		time.Sleep(jittered(i))
	}
}

// case negated code: FB1035

func Stubborn(ctx context.Context, c echoClient, in string) error {
	for i := 0; i < 6; i++ {
		_, err := c.Echo(ctx, in)
		if err == nil {
			return nil
		}
		if s, ok := grpcstatus.FromError(err); ok && s.Code() != codes.NotFound {
			return err
		}
		time.Sleep(jittered(i))
	}
	return context.DeadlineExceeded
}
