package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/certfile"
	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/clientcert"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// TLS says how a dependency proves who it is, and the gateway to it. The zero value
// trusts the system's authorities, shows no certificate, and speaks TLS 1.2 or later.
// The files are PEM, and are read again when they change: connections that there are
// keep what they have and are closed when their requests are over. There is no
// setting that accepts a certificate unverified.
type TLS struct {
	// CA has the authorities to trust, in place of the system's.
	CA string
	// Cert and Key are the certificate that is shown to a dependency that asks for
	// one.
	Cert, Key string
	// ServerName is what the dependency's certificate is for, and what is asked
	// for in the handshake. Empty means the host of the target.
	ServerName string
	// MinVersion is tls.VersionTLS12, which zero means too, or tls.VersionTLS13.
	MinVersion uint16
}

func (t *TLS) check() error {
	switch t.MinVersion {
	case 0, tls.VersionTLS12, tls.VersionTLS13:
		return nil
	}
	return fmt.Errorf("min_version of TLS is %s: want 1.2 or 1.3", tls.VersionName(t.MinVersion))
}

func (t *TLS) files() certfile.Files {
	return certfile.Files{CA: t.CA, Cert: t.Cert, Key: t.Key}
}

// HTTP2 says when a dependency is spoken to in HTTP/2.
type HTTP2 uint8

const (
	// HTTP2Auto speaks HTTP/2 where the handshake of TLS agrees on it, and HTTP/1.1
	// otherwise and in clear.
	HTTP2Auto HTTP2 = iota
	// HTTP2Off speaks HTTP/1.1 only.
	HTTP2Off
	// HTTP2Only speaks HTTP/2 only, in clear too: the dependency is known to.
	HTTP2Only
)

func (h HTTP2) protocols() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(h != HTTP2Only)
	p.SetHTTP2(h != HTTP2Off)
	p.SetUnencryptedHTTP2(h == HTTP2Only)
	return p
}

// next returns what is offered in the handshake.
func (h HTTP2) next() []string {
	switch h {
	case HTTP2Off:
		return []string{"http/1.1"}
	case HTTP2Only:
		return []string{"h2"}
	default:
		return []string{"h2", "http/1.1"}
	}
}

// openFiles checks the settings of TLS and reads their files, if there are any.
func (c *Config) openFiles() (err error) {
	if err := c.TLS.check(); err != nil {
		return err
	}
	if files := c.TLS.files(); files != (certfile.Files{}) {
		c.files, err = certfile.Open(files, c.Logger)
	}
	return err
}

// aging returns connections that are made as c says, over transports like those that
// fresh returns.
func (c *Config) aging(fresh func() *http.Transport) *aging {
	own := *c
	a := newAging(func() *pool {
		t := fresh()
		m := &certfile.Material{}
		if own.files != nil {
			m = own.files.Current()
		}
		own.secure(t, m)
		p := newPool(t)
		p.material = m
		p.listen()
		return p
	}, c.MaxAge)
	a.files = c.files
	return a
}

// secure gives a transport its certificates, and a way to connect that finds out
// whether ours is accepted.
func (c *Config) secure(t *http.Transport, m *certfile.Material) {
	config := &tls.Config{
		MinVersion: cmp.Or(c.TLS.MinVersion, tls.VersionTLS12),
		ServerName: c.TLS.ServerName,
		RootCAs:    m.Pool,
		NextProtos: c.HTTP2.next(),
	}
	t.TLSClientConfig = config
	d := &secureDialer{t.DialContext, config, m.Cert, c.HTTP2 == HTTP2Only, cmp.Or(c.Connect, httpretry.DefaultConnect)}
	// For what is reached through a proxy: net/http makes that handshake itself.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.shown(), nil }
	config.VerifyConnection = d.agreed
	t.DialTLSContext = d.dial
}

// secureDialer makes connections of TLS.
type secureDialer struct {
	tcp     func(ctx context.Context, network, address string) (net.Conn, error)
	config  *tls.Config
	cert    *tls.Certificate // ours, or nil
	http2   bool             // and nothing else
	timeout time.Duration
}

// shown returns the certificate for a server that asks for one. It is shown whatever
// authorities the server names: the file says that it is for this dependency, and a
// server that refuses it says why.
func (d *secureDialer) shown() *tls.Certificate {
	if d.cert == nil {
		return &tls.Certificate{}
	}
	return d.cert
}

// agreed refuses a server that has not agreed on HTTP/2 when nothing else will do.
// net/http would speak HTTP/1 to it.
func (d *secureDialer) agreed(s tls.ConnectionState) error {
	if d.http2 && s.NegotiatedProtocol != "h2" {
		return mismatch.HTTP1
	}
	return nil
}

// dial implements the DialTLSContext of [http.Transport].
func (d *secureDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := d.tcp(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	config := d.config.Clone()
	if ctx.Value(onlyHTTP1{}) != nil {
		config.NextProtos = HTTP2Off.next()
	}
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	conn, err := clientcert.Handshake(ctx, raw, config, d.cert)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// onlyHTTP1 is the key under which a context says that its request needs HTTP/1.
type onlyHTTP1 struct{}

// withVersion lets the dialer know a request that changes to the protocol WebSocket,
// which HTTP/2 has no upgrade for. net/http keeps the connections of such requests
// apart from the others, and leaves the handshake to the dialer.
func withVersion(r *http.Request) *http.Request {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || r.URL.Scheme != "https" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), onlyHTTP1{}, true))
}
