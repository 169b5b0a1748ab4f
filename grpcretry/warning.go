package grpcretry

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
)

// watchedCalls is how many calls of a connection are looked at for gRPC's own
// retries. Its service config may arrive a little after the first.
const watchedCalls = 64

// watch warns once when gRPC itself retries the method below the interceptor:
// when its service config has a retryPolicy. Whether the connection was dialed
// with grpc.WithDisableRetry gRPC does not say.
func (c *client) watch(cc *grpc.ClientConn, method string) {
	if cc == nil || c.watched.Add(1) > watchedCalls {
		c.warned.Store(true)
		return
	}
	if cc.GetMethodConfig(method).RetryPolicy == nil || c.warned.Swap(true) {
		return
	}
	c.logger.LogAttrs(context.Background(), slog.LevelWarn,
		"grpcretry: gRPC's own retries are on below, with a jitter that R-1 forbids: dial with grpcretry.DialOptions, or with grpc.WithDisableRetry and the option WithRetryDisabled",
		slog.String("target", cc.Target()), slog.String("method", method), slog.String("dependency", c.retryer.Dependency()))
}

// WithRetryDisabled is the word that the connection was dialed with
// grpc.WithDisableRetry, for those who use an interceptor without
// [DialOptions], which would otherwise warn once.
func WithRetryDisabled() Option {
	return func(c *client) { c.warned.Store(true) }
}
