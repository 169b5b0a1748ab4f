package grpcretry

import (
	"context"
	"log/slog"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/forbear-go/forbear/internal/nearest"
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
		"grpcretry: gRPC's own retries are on too: dial with grpcretry.DialOptions, or with grpc.WithDisableRetry and the option WithRetryDisabled",
		slog.String("target", cc.Target()), slog.String("method", method), slog.String("dependency", c.retryer.Dependency()))
}

// doubt warns of methods of [WithIdempotent] that cannot be meant: a slip there would
// silently leave the method without retries.
func (c *client) doubt() {
	for _, method := range c.named {
		if hint := misnamed(method); hint != "" {
			c.logger.LogAttrs(context.Background(), slog.LevelWarn, "grpcretry: WithIdempotent names no method: "+hint,
				slog.String("method", method), slog.String("dependency", c.retryer.Dependency()))
		}
	}
}

// misnamed says what is wrong with the name of a method, "" where nothing is. The methods
// of a service are known where its descriptor is linked into the program.
func misnamed(method string) string {
	const want = "want /package.Service/Method, /package.Service/* or *"
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	switch {
	case method == "*":
		return ""
	case !ok || method[0] != '/' || service == "" || name == "" || strings.Contains(name, "/"):
		return want
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return "" // a service without a descriptor may have any method
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	switch {
	case !ok:
		return service + " is not a service"
	case name == "*" || s.Methods().ByName(protoreflect.Name(name)) != nil:
		return ""
	}
	var names []string
	for i := range s.Methods().Len() {
		names = append(names, string(s.Methods().Get(i).Name()))
	}
	return "the service has no such method" + nearest.Hint(name, names, ": it has "+strings.Join(names, ", "))
}

// WithRetryDisabled is the word that the connection was dialed with
// grpc.WithDisableRetry, for those who use an interceptor without
// [DialOptions], which would otherwise warn once.
func WithRetryDisabled() Option {
	return func(c *client) { c.warned.Store(true) }
}
