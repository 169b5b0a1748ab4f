package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
)

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
	// Logger gets what becomes of the files. Nil means slog.Default().
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
		return nil, fmt.Errorf("the least version of TLS is %s: want 1.2 or 1.3", tls.VersionName(c.MinVersion))
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
