package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/gateway/internal/framing"
)

// NewServer returns a server for h with the timeouts of INTG-STD-035: 5 s for
// the headers of a request and 120 s for an idle connection. Bodies may take
// their time, in both directions: the policies bound the calls.
//
// It speaks HTTP/1.1 and HTTP/2; over TLS as the handshake agrees, and in clear
// HTTP/2 with those who begin with it (RFC 9113 section 3.3).
func NewServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    256 << 10,
		Protocols:         &http.Protocols{},
		HTTP2:             http2Limits(),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// http2Limits bounds what one connection of HTTP/2 can ask for. The rest net/http
// bounds by itself, as TestHTTP2Floods checks:
//
//   - Streams that are opened and reset (CVE-2023-44487): no more handlers run than
//     streams are allowed, those of streams that were reset included; four times as
//     many may wait, and one more ends the connection.
//   - CONTINUATION without end (CVE-2023-45288): a header list that is larger than
//     MaxHeaderBytes ends the connection, and nothing of it is kept.
//   - PING and SETTINGS whose acknowledgements are not read (CVE-2019-9512, -9515):
//     ten thousand frames may wait.
//   - Request bodies that are not read: a stream may send 256 KiB ahead and a connection
//     16 MiB. By default each may send 1 MiB, so that one upload whose target reads
//     nothing would stop all others on the connection.
func http2Limits() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: 250,
		// A buffer of this size may stay with each connection; the default is 1 MiB.
		MaxReadFrameSize:              64 << 10,
		MaxReceiveBufferPerStream:     256 << 10,
		MaxReceiveBufferPerConnection: 16 << 20,
	}
}

// Listener readies l for the server of a gateway: over TLS, if config is not nil. A
// request over HTTP/1 that says the length of its body in two ways is then refused with
// 400 (RFC 9112 section 6.3); net/http by itself would believe one of them. log gets the
// handshakes that failed.
func Listener(l net.Listener, config *tls.Config, log *slog.Logger) net.Listener {
	if config == nil {
		return framing.Listener(l)
	}
	return framing.TLSListener(l, config, func(peer net.Addr, err error) {
		log.Info("TLS handshake failed", slog.String("peer", peer.String()), slog.String("error", err.Error()))
	})
}

// TLS is how the gateway proves to its callers who it is, and which of them it lets
// in. The files are PEM, and are read again when they change: connections that there
// are keep what they have.
type TLS struct {
	// Cert and Key are the gateway's certificate. They may be one file.
	Cert, Key string
	// ClientCA, where set, has the authorities of the callers: one without a
	// certificate of theirs is refused.
	ClientCA string
	// MinVersion is tls.VersionTLS12, which zero means too, or tls.VersionTLS13.
	MinVersion uint16
	// Logger gets the changes of the files, and their faults. Nil means slog.Default().
	Logger *slog.Logger
}

// Config returns the configuration for [Listener], which speaks HTTP/2 and HTTP/1.1 as
// the handshake agrees. Several listeners may share it. It looks at the files in
// handshakes, at most once a second.
func (c TLS) Config() (*tls.Config, error) {
	if c.Cert == "" {
		return nil, errors.New("no certificate")
	}
	switch c.MinVersion {
	case 0, tls.VersionTLS12, tls.VersionTLS13:
	default:
		return nil, fmt.Errorf("min_version of TLS is %s: want 1.2 or 1.3", tls.VersionName(c.MinVersion))
	}
	files, err := certfile.Open(certfile.Files{CA: c.ClientCA, Cert: c.Cert, Key: c.Key}, c.Logger)
	if err != nil {
		return nil, err
	}
	outer := c.of(files.Current()) // it has the keys of all session tickets
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.of(files.Current()), nil }
	return outer, nil
}

// of returns the configuration with certificates.
func (c TLS) of(m *certfile.Material) *tls.Config {
	config := &tls.Config{
		Certificates: []tls.Certificate{*m.Cert},
		MinVersion:   cmp.Or(c.MinVersion, tls.VersionTLS12),
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if m.Pool != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, m.Pool
	}
	return config
}
