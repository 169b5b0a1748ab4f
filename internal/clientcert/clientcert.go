// Package clientcert makes the client's handshake of TLS so that a server's refusal of
// the client's certificate is known before a request is sent.
package clientcert

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Handshake makes a connection of TLS over raw, which it closes when that fails. cert is
// shown to a server that asks, whatever authorities the server names: it is configured for
// this server, and one that refuses it says why. nil shows none. config is not changed.
func Handshake(ctx context.Context, raw net.Conn, config *tls.Config, cert *tls.Certificate) (*tls.Conn, error) {
	if cert == nil {
		cert = &tls.Certificate{}
	}
	asked := false
	config = config.Clone()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return cert, nil
	}
	ahead := &aheadConn{Conn: raw}
	conn := tls.Client(ahead, config)
	began := time.Now()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	if asked && conn.ConnectionState().Version == tls.VersionTLS13 {
		if err := ahead.verdict(conn, time.Since(began)); err != nil {
			_ = raw.Close()
			return nil, err
		}
	}
	return conn, nil
}
