package grpcretry

import (
	"log/slog"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/credential"
)

// Option changes how calls are made. What may be retried is the policy's.
type Option func(*client)

// client is what the interceptors of one connection share. It is immutable once
// it is built, but for its caches, and safe for concurrent use.
type client struct {
	retryer   *forbear.Retryer
	policy    forbear.Policy
	choose    func(method string) *forbear.Retryer
	declared  func(method string) bool
	named     []string // by WithIdempotent
	transport *Credentials
	tokens    *tokens
	logger    *slog.Logger

	noTimeout  bool
	noPushback bool
	levels     atomic.Pointer[map[string]bool] // idempotency by method, as declared in .proto files
	conns      conns                           // those that can be taken out of use
	warned     atomic.Bool                     // gRPC's own retries are off, or were warned of
	watched    atomic.Int64                    // calls looked at for them
}

// WithRetryer chooses the Retryer by full method ("/package.Service/Method"),
// for a connection whose methods have policies of their own. Nil falls
// back to the one that was passed in.
func WithRetryer(choose func(method string) *forbear.Retryer) Option {
	return func(c *client) { c.choose = choose }
}

// WithIdempotent lists full methods ("/package.Service/Method") that are safe
// to repeat, beside those whose .proto says so. "/package.Service/*" stands for
// all methods of a service and "*" for all of the connection. A name that is none of the
// program's methods is logged at WARN when the connection is made.
func WithIdempotent(methods ...string) Option {
	return func(c *client) {
		set := newMethodSet(methods)
		c.named = append(c.named, methods...)
		before := c.declared
		c.declared = func(method string) bool {
			return set.has(method) || set["*"] || before != nil && before(method)
		}
	}
}

// WithIdempotentFunc is [WithIdempotent] for those who know by other means.
func WithIdempotentFunc(f func(method string) bool) Option {
	return func(c *client) { c.declared = f }
}

// WithTransportCredentials connects with these credentials and keeps the typed
// errors of their handshakes, so that a refused certificate is known for what
// it is: see [Credentials]. For [DialOptions].
func WithTransportCredentials(tc credentials.TransportCredentials) Option {
	return func(c *client) { c.transport = NewCredentials(tc) }
}

// WithCredentials authorizes every call with a token of tokens, under the
// metadata key "authorization", on secure connections only. A token that the
// server refuses with UNAUTHENTICATED is replaced once, outside the count of
// retries. For [DialOptions].
func WithCredentials(t *credential.Cache) Option {
	return func(c *client) { c.tokens = &tokens{t, true} }
}

// WithInsecureCredentials is [WithCredentials] for connections without TLS,
// such as those to a sidecar on the same host.
func WithInsecureCredentials(t *credential.Cache) Option {
	return func(c *client) { c.tokens = &tokens{t, false} }
}

// WithoutAttemptTimeout leaves attempts without a timeout of their own. A call
// whose own deadline is within the policy's per-attempt timeout has none in any
// case.
func WithoutAttemptTimeout() Option {
	return func(c *client) { c.noTimeout = true }
}

// WithoutPushback does not read the trailers of unary calls, which saves the
// copy of each: one allocation. The servers' grpc-retry-pushback-ms and
// [TrailerExhausted] then go unheard. google.rpc.RetryInfo is still read.
func WithoutPushback() Option {
	return func(c *client) { c.noPushback = true }
}

// WithLogger sets where warnings go. Default slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(c *client) { c.logger = l }
}

// newClient reads the policy once: Policy copies it, and would for each call.
func newClient(r *forbear.Retryer, opts []Option) *client {
	c := &client{retryer: r, policy: r.Policy(), logger: slog.Default()}
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	if c.transport != nil {
		c.transport.conns = &c.conns
	}
	c.doubt()
	return c
}

// UnaryClientInterceptor returns the interceptor for unary calls. Use it alone
// only where [DialOptions] cannot be used: then switch gRPC's own retries off
// with grpc.WithDisableRetry.
func UnaryClientInterceptor(r *forbear.Retryer, opts ...Option) grpc.UnaryClientInterceptor {
	return newClient(r, opts).unary
}

// StreamClientInterceptor returns the interceptor for server-streaming calls.
// Other streams pass through it.
func StreamClientInterceptor(r *forbear.Retryer, opts ...Option) grpc.StreamClientInterceptor {
	return newClient(r, opts).stream
}

// DialOptions returns what a connection needs: both interceptors, which come
// after those of options before them; gRPC's own retries switched off; and,
// where given, the transport credentials and the tokens.
//
// A connection on which an attempt timed out, and nothing was heard meanwhile, is
// taken out of use: what else is under way on it goes on, and the next attempt gets
// another. For that the transport credentials are to be given to
// [WithTransportCredentials]. Otherwise there is a dialer among the options, which
// replaces a grpc.WithContextDialer before them, and does it for connections in clear
// alone; HTTPS_PROXY in the environment leaves it out, and a dialer after them takes
// its place. There are keepalive pings among them, too, every six minutes, which is
// what servers with gRPC's defaults allow; grpc.WithKeepaliveParams after them
// replaces them.
func DialOptions(r *forbear.Retryer, opts ...Option) []grpc.DialOption {
	c := newClient(r, opts)
	dial := []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
		grpc.WithKeepaliveParams(pings),
	}
	c.warned.Store(true) // nothing to warn of
	if c.transport != nil {
		dial = append(dial, grpc.WithTransportCredentials(c.transport))
	} else if dialer := c.conns.dialer(); dialer != nil {
		dial = append(dial, dialer)
	}
	if c.tokens != nil {
		dial = append(dial, grpc.WithPerRPCCredentials(c.tokens))
	}
	return dial
}
