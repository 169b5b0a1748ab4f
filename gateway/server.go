package gateway

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/forbear-go/forbear/gateway/internal/framing"
)

// NewServer returns a server for h with the timeouts of INTG-STD-035: 5 s for
// the headers of a request and 120 s for an idle connection. Bodies may take
// their time, in both directions: the policies bound the calls.
func NewServer(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    256 << 10,
		Protocols:         protocols,
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
