// Package faults builds the network errors that the conformance vectors and
// `forbear explain` name, as a Go program meets them. It opens no socket.
package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/forbear-go/forbear/internal/mismatch"
)

// builders makes, for each kind, every error that the kind may appear as. Vectors
// test each of them, since a classifier that knows one wrapping and not the other is
// right by luck alone. The keys are part of the vectors' format: a name may be
// added, and none is renamed.
var builders = map[string]func() []error{
	"connection_refused":                   dialErrno(syscall.ECONNREFUSED),
	"connection_reset":                     readErrno(syscall.ECONNRESET),
	"broken_pipe":                          writeErrno(syscall.EPIPE),
	"network_unreachable":                  dialErrno(syscall.ENETUNREACH),
	"host_unreachable":                     dialErrno(syscall.EHOSTUNREACH),
	"eof_before_response":                  always(io.EOF),
	"unexpected_eof_in_body":               unexpectedEOF,
	"socket_timeout":                       socketTimeout,
	"dial_timeout":                         dialTimeout,
	"per_attempt_deadline":                 always(context.DeadlineExceeded),
	"caller_deadline":                      always(context.DeadlineExceeded),
	"caller_cancelled":                     always(context.Canceled),
	"dns_failure":                          dnsFailure,
	"dns_not_found":                        dnsNotFound,
	"tls_handshake_timeout":                handshakeTimeout,
	"tls_certificate":                      certificates,
	"tls_alert_bad_certificate":            func() []error { return alert(42) },
	"tls_alert_handshake_failure":          func() []error { return alert(40) },
	"tls_record_header":                    recordHeader,
	"http2_refused_stream":                 func() []error { return request(http2StreamError{1, 0x7, nil}) },
	"http2_goaway_stream_above_last":       http2GoAwayAbove,
	"http2_goaway_stream_at_or_below_last": func() []error { return request(http2GoAwayError{LastStreamID: 7}) },
	"http2_stream_reset":                   func() []error { return request(http2StreamError{1, 0x8, nil}) },
	"http2_enhance_your_calm":              func() []error { return request(http2StreamError{1, 0xb, nil}) },
	"http2_protocol":                       func() []error { return request(http2StreamError{1, 0x1, nil}) },
	"http2_not_resent":                     http2NotResent,
	"http2_connection_lost":                func() []error { return request(errors.New("http2: client connection lost")) },
	"connection_closed_while_idle":         func() []error { return request(errors.New("http: server closed idle connection")) },
	"malformed_response":                   func() []error { return request(errors.New(`malformed HTTP response "hello"`)) },
	"unix_socket_missing":                  socketMissing,
	"proxy_403":                            proxy("Forbidden"),
	"proxy_407":                            proxy("Proxy Authentication Required"),
	"proxy_502":                            proxy("Bad Gateway"),
	"proxy_503":                            proxy("Service Unavailable"),
	"proxy_504":                            proxy("Gateway Timeout"),
	"http1_wanted":                         always(mismatch.HTTP1),
	"http2_wanted":                         always(mismatch.HTTP2),
	"tls_wanted":                           always(mismatch.TLS),
	"not_http":                             always(mismatch.Other),
	"upgrade_over_http2":                   always(mismatch.Upgrade),
	"too_many_redirects":                   func() []error { return request(errors.New("stopped after 10 redirects")) },
	"other_error":                          other,
	"serialization_error":                  serialization,
	"invalid_configuration":                configuration,
	"token_permanently_revoked":            func() []error { return request(&tokenError{"invalid_grant"}) },
}

// Kinds returns the names that [Build] knows, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(builders)) }

// Build returns the errors of the named kind: at least one, and several where
// one kind has several types or wrappings. An unknown kind is an error.
func Build(kind string) ([]error, error) {
	build, ok := builders[kind]
	if !ok {
		return nil, fmt.Errorf("unknown fault %q", kind)
	}
	return build(), nil
}

// Context returns the caller's context as it stands when the error of the
// named kind arrives: ended for the two kinds in which the caller has ended the
// call, alive for the others.
func Context(kind string) context.Context {
	switch kind {
	case "caller_deadline":
		ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
		cancel()
		return ctx
	case "caller_cancelled":
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}
	return context.Background()
}

// request returns err as the HTTP client reports it, and bare. The two forms matter:
// a classifier that reads only *url.Error fails on the error that a RoundTripper
// sees.
func request(err error) []error {
	return []error{&url.Error{Op: "Get", URL: "http://dependency.test/", Err: err}, err}
}

// always is for errors that are one value in every program, such as io.EOF.
func always(err error) func() []error { return func() []error { return request(err) } }

// op builds what package net returns for a failed system call. Classifiers must find
// the errno through three layers of wrapping, never through the text.
func op(name, call string, errno syscall.Errno) func() []error {
	return func() []error {
		return request(&net.OpError{Op: name, Net: "tcp", Err: os.NewSyscallError(call, errno)})
	}
}

// The three phases of a connection. The phase counts as much as the errno: a failed
// dial has sent nothing, a failed read may follow a request that the server has
// carried out.
func dialErrno(e syscall.Errno) func() []error  { return op("dial", "connect", e) }
func readErrno(e syscall.Errno) func() []error  { return op("read", "read", e) }
func writeErrno(e syscall.Errno) func() []error { return op("write", "write", e) }

// unexpectedEOF is a body that ends early, as io reports it and as a caller wraps
// it. The response had begun, so the server has seen the request.
func unexpectedEOF() []error {
	return []error{io.ErrUnexpectedEOF, fmt.Errorf("read body: %w", io.ErrUnexpectedEOF)}
}

// timeoutError is a net.Error of net/http's making: a timeout by its method
// alone.
type timeoutError struct{ text string }

func (e timeoutError) Error() string { return e.text }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// socketTimeout is a connection that stays silent: by the deadline of the socket,
// and by net/http's limit for response headers.
func socketTimeout() []error {
	read := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	return append(request(read), request(timeoutError{"timeout awaiting response headers"})...)
}

// dialTimeout has two forms: the kernel gives up with an errno, the dialer with a
// timeout of its own.
func dialTimeout() []error {
	byErrno := dialErrno(syscall.ETIMEDOUT)()
	return append(byErrno, request(&net.OpError{Op: "dial", Net: "tcp", Err: timeoutError{"i/o timeout"}})...)
}

// handshakeTimeout speaks of TLS in its text alone. It is a timeout and no fault of
// a certificate.
func handshakeTimeout() []error { return request(timeoutError{"TLS handshake timeout"}) }

// dial wraps a resolver's error as the dialer does.
func dial(err *net.DNSError) []error {
	err.Name = "dependency.test"
	return request(&net.OpError{Op: "dial", Net: "tcp", Err: err})
}

// dnsFailure is a resolver that failed, which may pass.
func dnsFailure() []error {
	return append(dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}),
		dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true, IsTemporary: true})...)
}

// dnsNotFound is a name that the resolver says does not exist. R-4 gives it fewer
// attempts, since a misspelt name stays misspelt.
func dnsNotFound() []error { return dial(&net.DNSError{Err: "no such host", IsNotFound: true}) }

// other are errors that no classifier knows; words in their text must not matter.
func other() []error {
	return []error{
		errors.New("certificate store reloaded"),
		errors.New("connection reset by peer"),
		fmt.Errorf("attempt: %w", errors.New("i/o timeout")),
	}
}

// serialization are errors of encoding/json itself, made by real calls: its types
// change with Go's releases, and a copy of them would not.
func serialization() []error {
	var n int
	_, unsupported := json.Marshal(math.Inf(1)) // JSON has no infinity
	return []error{
		json.Unmarshal([]byte(`{"a"`), &n),
		json.Unmarshal([]byte(`{"a" 1}`), &n),
		fmt.Errorf("decode response: %w", json.Unmarshal([]byte(`"a"`), &n)),
		unsupported,
	}
}

// configuration are errors that no attempt can cure: the address or the scheme is
// wrong. The bad URL and address come from the real parsers, for their types' sake.
func configuration() []error {
	_, badURL := url.Parse(strings.Join([]string{"http://", "::1"}, "["))
	_, badAddress := net.ResolveTCPAddr("tcp", "dependency")
	return []error{
		badURL,
		&net.OpError{Op: "dial", Net: "tcp", Err: badAddress},
		&net.OpError{Op: "dial", Net: "tpc", Err: net.UnknownNetworkError("tpc")},
		&url.Error{Op: "Get", URL: "ftp://dependency.test/", Err: errors.New("unsupported protocol scheme")},
	}
}

// tokenError is an OAuth token endpoint's refusal (RFC 6749 section 5.2).
type tokenError struct{ Code string }

func (e *tokenError) Error() string { return "token refused: " + e.Code }

func socketMissing() []error {
	dial := &net.OpError{
		Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/service.sock", Net: "unix"},
		Err: os.NewSyscallError("connect", syscall.ENOENT),
	}
	return append(request(dial), dial)
}

// proxy is a proxy that makes no tunnel. net/http has nothing but the text of its
// status for it, right below the error of the client, for requests by https alone.
func proxy(text string) func() []error {
	return func() []error {
		return []error{&url.Error{Op: "Get", URL: "https://dependency.test/", Err: errors.New(text)}}
	}
}
