package dispatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/forbear-go/forbear/httpretry"
	"github.com/forbear-go/forbear/internal/clientcert"
	"github.com/forbear-go/forbear/webhook"
)

const (
	tlsLook = time.Second // between two looks at what an endpoint's references name
	// tlsGrace is how long what was read last stays in use when a certificate and its
	// key do not fit: one of them may be about to be replaced as well.
	tlsGrace = 10 * time.Second
)

// tlsMaterial is what the references of an endpoint's TLS name at one time.
type tlsMaterial struct {
	sum        [sha256.Size]byte // equal where all is equal
	pool       *x509.CertPool    // nil: the system's
	cert       *tls.Certificate  // nil: none
	until      time.Time         // when cert expires; zero without one
	serverName string
}

// errPair says that a certificate and its key do not fit, or are none.
var errPair = errors.New("not a certificate with its key")

// loadTLS looks the references up. Its errors match [ErrSecret] and show references
// alone.
func loadTLS(ctx context.Context, secrets Secrets, conf *webhook.TLS) (*tlsMaterial, error) {
	texts := make([]string, 0, 3)
	for _, ref := range []string{conf.CA, conf.Cert, conf.Key} {
		text := ""
		if ref != "" {
			var err error
			if text, err = secrets.lookup(ctx, ref); err != nil {
				return nil, err
			}
		}
		texts = append(texts, text)
	}
	m := &tlsMaterial{serverName: conf.ServerName}
	h := sha256.New()
	for _, text := range append(texts, conf.ServerName) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	h.Sum(m.sum[:0])
	if conf.CA != "" {
		if m.pool = x509.NewCertPool(); !m.pool.AppendCertsFromPEM([]byte(texts[0])) {
			return nil, fmt.Errorf("%w: %s: it has no PEM certificate", ErrSecret, conf.CA)
		}
	}
	if conf.Cert == "" {
		return m, nil
	}
	pair, err := tls.X509KeyPair([]byte(texts[1]), []byte(texts[2]))
	if err != nil {
		return nil, fmt.Errorf("%w: %s and %s: %w: %w", ErrSecret, conf.Cert, conf.Key, errPair, err)
	}
	m.cert, m.until = &pair, pair.Leaf.NotAfter
	return m, nil
}

// valid refuses a certificate that has expired: nothing that shows it is taken.
func (m *tlsMaterial) valid(ref string, now time.Time) error {
	if m.cert != nil && now.After(m.until) {
		return fmt.Errorf("%w: %s: the certificate expired at %s", ErrSecret, ref, m.until.UTC().Format(time.RFC3339))
	}
	return nil
}

// endpointTLS has the transport of an endpoint with settings of its own. It is safe for
// concurrent use.
type endpointTLS struct {
	d     *Dispatcher
	conf  webhook.TLS
	inUse atomic.Pointer[tlsInUse] // nil: nothing yet
}

// tlsInUse is what the references named at a time of the monotonic clock.
type tlsInUse struct {
	*tlsMaterial
	rt     http.RoundTripper
	looked time.Time
}

// transport returns the transport for an attempt. Without what the references name there
// is none, and nothing is sent.
func (t *endpointTLS) transport(ctx context.Context) (http.RoundTripper, error) {
	in, now := t.inUse.Load(), time.Now()
	if in == nil || now.Sub(in.looked) >= tlsLook || in.valid("", t.d.now()) != nil {
		m, err := loadTLS(ctx, t.d.cfg.Secrets, &t.conf)
		switch {
		case err == nil:
			in = t.use(m, in, now)
		case in == nil || !errors.Is(err, errPair) || now.Sub(in.looked) > tlsGrace:
			return nil, err
		}
	}
	return in.rt, in.valid(t.conf.Cert, t.d.now())
}

// use takes what the references name at a time into use. While that is the same, so are
// the connections.
func (t *endpointTLS) use(m *tlsMaterial, old *tlsInUse, now time.Time) *tlsInUse {
	in := &tlsInUse{tlsMaterial: m, looked: now}
	if old != nil && old.sum == m.sum {
		in.rt = old.rt
	} else if in.rt = secureTransport(t.d.cfg.Guard, m); t.d.cfg.Wrap != nil {
		in.rt = t.d.cfg.Wrap(in.rt)
	}
	t.inUse.Store(in)
	return in
}

// secureTransport is the guard's transport with certificates. It waits for what a server
// says to ours, so that a refusal is known as one.
func secureTransport(guard webhook.Guard, m *tlsMaterial) *http.Transport {
	t := guard.Transport(httpretry.DefaultConnect)
	t.MaxIdleConns = t.MaxIdleConnsPerHost // one receiver, usually
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: m.pool, ServerName: m.serverName, NextProtos: []string{"h2", "http/1.1"}}
	t.TLSClientConfig = config
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := t.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, t.TLSHandshakeTimeout)
		defer cancel()
		host, _, _ := net.SplitHostPort(address)
		named := config.Clone()
		named.ServerName = cmp.Or(m.serverName, host)
		conn, err := clientcert.Handshake(ctx, raw, named, m.cert)
		if err != nil {
			return nil, err // no nil of a type
		}
		return conn, nil
	}
	return t
}
