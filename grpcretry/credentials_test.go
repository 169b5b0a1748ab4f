package grpcretry_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/forbear-go/forbear"
	"github.com/forbear-go/forbear/grpcretry"
	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/reason"
)

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T, notAfter time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dependency.test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// counting are server credentials that count handshakes whose first bytes came.
type counting struct {
	credentials.TransportCredentials
	handshakes *atomic.Int64
}

func (c counting) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.TransportCredentials.ServerHandshake(&firstByte{Conn: conn, n: c.handshakes})
}

// firstByte counts a connection once it brings a byte: a client that hangs up
// without one has not begun a handshake.
type firstByte struct {
	net.Conn
	n    *atomic.Int64
	seen bool
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if n > 0 && !f.seen {
		f.seen = true
		f.n.Add(1)
	}
	return n, err
}

// TestExpiredCertificate is R-9 over gRPC: one attempt, the cause in the error,
// and, while the connection lives on, no handshake after handshake.
func TestExpiredCertificate(t *testing.T) {
	cert, pool := certificate(t, time.Now().Add(-time.Hour))
	var handshakes atomic.Int64
	server := counting{credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}}), &handshakes}
	var stops stopCounter
	r := retryer(t, quick(), forbear.WithObserver(stops.observer()))
	conn := start(t, &service{}, tcp(t), []grpc.ServerOption{grpc.Creds(server)},
		grpcretry.DialOptions(r, grpcretry.WithIdempotent(checkMethod),
			grpcretry.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))...)
	end := time.Now().Add(5 * time.Second)
	err := check(t, t.Context(), conn)
	e, ok := errors.AsType[*forbear.Error](err)
	if !ok || e.Reason != reason.Certificate || e.Attempts != 1 || e.Type != errtype.Certificate {
		t.Fatalf("%v; want one attempt and tls_certificate", err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || status.Code(err) != codes.Unavailable {
		t.Errorf("%v (%v): the typed cause or the code is gone", err, status.Code(err))
	}
	for time.Now().Before(end) {
		if err := check(t, t.Context(), conn); !errors.Is(err, forbear.ErrCertificate) {
			t.Fatalf("a later call: %v, want tls_certificate", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := handshakes.Load(); n < 1 || n > 2 {
		t.Errorf("%d handshakes in 5 s, want 1 or 2", n)
	}
	if n := stops.certificate.Load(); n < 1 {
		t.Error("the certificate was not surfaced to the observer")
	}
}

type stopCounter struct{ certificate atomic.Int64 }

func (s *stopCounter) Stopped(_ context.Context, e forbear.Stopped) {
	if e.Reason == reason.Certificate {
		s.certificate.Add(1)
	}
}

// TestServerRefusesOurCertificate: under TLS 1.3 the refusal comes after the
// handshake, with the first read.
func TestServerRefusesOurCertificate(t *testing.T) {
	cert, pool := certificate(t, time.Now().Add(time.Hour))
	ours, _ := certificate(t, time.Now().Add(time.Hour))
	server := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	conn := start(t, &service{}, tcp(t), []grpc.ServerOption{grpc.Creds(server)},
		grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent(checkMethod),
			grpcretry.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{ours}})))...)
	if err := check(t, t.Context(), conn); !errors.Is(err, forbear.ErrCertificate) {
		t.Errorf("%v, want tls_certificate", err)
	}
}

// TestGoodCertificate sees that the wrapping takes nothing away.
func TestGoodCertificate(t *testing.T) {
	cert, pool := certificate(t, time.Now().Add(time.Hour))
	s := &service{check: failing(2, unavailable)}
	conn := start(t, s, tcp(t), []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}}))},
		grpcretry.DialOptions(retryer(t, quick()), grpcretry.WithIdempotent(checkMethod),
			grpcretry.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})))...)
	if err := check(t, t.Context(), conn); err != nil || s.attempts() != 3 {
		t.Errorf("%d attempts, %v; want 3", s.attempts(), err)
	}
}

func (o *stopCounter) observer() *forbear.Observer {
	return &forbear.Observer{Stopped: o.Stopped}
}
