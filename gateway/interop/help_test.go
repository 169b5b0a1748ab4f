package interop_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcinterop "google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/breaker"
	"github.com/forbear-go/forbear/budget"
	"github.com/forbear-go/forbear/gateway"
)

// quick is a policy whose retries come at once, with a budget and a breaker that are in
// no test's way.
var quick = forbear.Policy{
	Kind:    forbear.GRPC,
	Backoff: forbear.Backoff{Base: time.Millisecond, Cap: 5 * time.Millisecond},
	Budget:  budget.Policy{MinRetries: 1000},
	Breaker: breaker.Policy{Disabled: true},
}

// service is an interop server that fails as it is told, and remembers what it received.
type service struct {
	mu    sync.Mutex
	calls []metadata.MD
	fail  func(ctx context.Context, call int) error // nil, or the error of call 1, 2, ...
	ended chan error                                // what ended the context of a stream that hangs
}

// received returns the metadata of the calls so far.
func (s *service) received() []metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func (s *service) arrive(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	s.calls = append(s.calls, md)
	n := len(s.calls)
	s.mu.Unlock()
	if s.fail == nil {
		return nil
	}
	return s.fail(ctx, n)
}

func (s *service) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := s.arrive(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (s *service) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := s.arrive(ss.Context()); err != nil {
		return err
	}
	err := handler(srv, ss)
	if s.ended != nil {
		s.ended <- ss.Context().Err()
	}
	return err
}

// serve runs s and returns its address.
func serve(t *testing.T, s *service, opts ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts = append(opts, grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream))
	server := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(server, grpcinterop.NewTestServer())
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// gatewayTo runs a gateway before target, over TLS if config is not nil, and returns its
// address.
func gatewayTo(t *testing.T, target string, p forbear.Policy, upstream *http.Transport, config *tls.Config) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	r, err := forbear.New("upstream", p, forbear.WithoutLog(),
		forbear.WithWaiver(forbear.Waiver{Rule: "R-7", Dependency: "upstream", Reason: "a budget in no test's way"}))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	g, err := gateway.New(gateway.Config{Logger: quiet, Routes: []gateway.Route{
		{Prefix: "/", Target: u, Retryer: r, Transport: upstream},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gateway.NewServer(g)
	go func() { _ = srv.Serve(gateway.Listener(l, config, quiet)) }()
	t.Cleanup(func() { _ = srv.Close(); upstream.CloseIdleConnections() })
	return l.Addr().String()
}

// dial connects to a gateway.
func dial(t *testing.T, address string, creds credentials.TransportCredentials, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// clear2 is a transport that speaks HTTP/2 in clear.
func clear2() *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}

// between puts a gateway before s, with HTTP/2 in clear on both sides, and returns a
// connection to it.
func between(t *testing.T, s *service, p forbear.Policy, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	address := gatewayTo(t, "http://"+serve(t, s), p, clear2(), nil)
	return dial(t, address, insecure.NewCredentials(), opts...)
}

// betweenTLS is between over TLS.
func betweenTLS(t *testing.T, s *service, p forbear.Policy) *grpc.ClientConn {
	t.Helper()
	own := httptest.NewTLSServer(nil) // for its certificate
	own.Close()
	roots := x509.NewCertPool()
	roots.AddCert(own.Certificate())
	server := &tls.Config{Certificates: own.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	client := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	target := "https://" + serve(t, s, grpc.Creds(credentials.NewTLS(server)))
	upstream := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true, DisableCompression: true}
	return dial(t, gatewayTo(t, target, p, upstream, server), credentials.NewTLS(client))
}
