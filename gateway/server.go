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
