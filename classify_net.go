package forbear

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"syscall"

	"github.com/forbear-go/forbear/internal/errtype"
	"github.com/forbear-go/forbear/internal/mismatch"
)

// classifyNet recognises the network failures of through any
// wrapping, by type and never by message, but for those of net/http that have no
// type of their own (see classify_text.go). It fits [WithClassifier] for
// operations that are safe to repeat; the HTTP and gRPC edges use it by
// themselves. A context error is taken for the attempt's own timeout: whether
// the caller has ended is for the edge to know.
func classifyNet(err error) (Failure, bool) {
	if f, ok := certificate(err); ok {
		return f, true
	}
	for _, look := range [...]func(error) (Class, string, bool){
		decoding, nameResolution, otherProtocol, tlsFailure, http2Stream, socket, timeout, endOfStream, plainText, proxyRefused,
	} {
		if class, label, ok := look(err); ok {
			disowned := disowned(label, err)
			return Failure{Class: class, Type: label, Unsent: disowned || unsent(label, err), Disowned: disowned, Err: err}, true
		}
	}
	return Failure{}, false
}

// certificate recognises a peer that could not prove who it is, and ours when
// the peer refused it: errors of this kind are never retried.
func certificate(err error) (Failure, bool) {
	if !anyInTree(err, isCertificate) {
		return Failure{}, false
	}
	return Failure{Class: ClassCertificate, Type: errtype.Certificate, Unsent: true, Err: err}, true
}

func isCertificate(err error) bool {
	switch e := err.(type) {
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, *x509.UnknownAuthorityError,
		x509.HostnameError, *x509.HostnameError, x509.CertificateInvalidError, *x509.CertificateInvalidError,
		x509.ConstraintViolationError, x509.SystemRootsError, *x509.SystemRootsError,
		x509.UnhandledCriticalExtension, x509.InsecureAlgorithmError:
		return true
	default:
		alert, ok := alertOf(e)
		return ok && certificateAlert(alert)
	}
}

// alertOf returns the TLS alert that err itself is. crypto/tls has two types
// for it: the exported one over QUIC, and over TCP an unexported one in a
// [net.OpError].
func alertOf(err error) (tls.AlertError, bool) {
	switch e := err.(type) {
	case tls.AlertError:
		return e, true
	case *net.OpError:
		if e.Op != "remote error" || e.Err == nil {
			return 0, false
		}
		v := reflect.ValueOf(e.Err)
		if v.Kind() != reflect.Uint8 || v.Type().PkgPath() != "crypto/tls" {
			return 0, false
		}
		return tls.AlertError(v.Uint()), true
	}
	return 0, false
}

func isAlert(err error) bool {
	_, ok := alertOf(err)
	return ok
}

// certificateAlert knows the alerts of RFC 8446 section 6.2 that speak of a
// certificate: bad, unsupported, revoked, expired, unknown, unknown authority,
// status response, required.
func certificateAlert(a tls.AlertError) bool {
	switch a {
	case 42, 43, 44, 45, 46, 48, 113, 116:
		return true
	}
	return false
}

func decoding(err error) (Class, string, bool) {
	var (
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
		value  *json.UnsupportedValueError
		kind   *json.UnsupportedTypeError
	)
	if errors.As(err, &syntax) || errors.As(err, &typ) || errors.As(err, &value) || errors.As(err, &kind) {
		return ClassTerminal, "serialization", true
	}
	return 0, "", false
}

func nameResolution(err error) (Class, string, bool) {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return ClassDNS, "dns_not_found", true
		}
		return ClassDNS, "dns_failure", true
	}
	return 0, "", false
}

// otherProtocol knows servers that speak another protocol: what a transport of ours
// has recognized, and what net/http has quoted.
func otherProtocol(err error) (Class, string, bool) {
	if m, ok := errors.AsType[mismatch.Error](err); ok {
		return ClassTerminal, m.Error(), true
	}
	var label string
	anyInTree(err, func(err error) bool {
		label = mismatchInText(err)
		return label != ""
	})
	return ClassTerminal, label, label != ""
}

// tlsFailure knows handshakes that would fail again: alerts, and peers that do not
// speak TLS. A handshake that times out is a timeout.
func tlsFailure(err error) (Class, string, bool) {
	if anyInTree(err, isAlert) {
		return ClassTerminal, "tls_alert", true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return ClassTerminal, "tls_record", true
	}
	return 0, "", false
}

// streamError has the shape that net/http lets its own, unexported stream error
// be converted into by errors.As.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "http2 stream error" }

// http2Stream reads RFC 9113 section 7: REFUSED_STREAM was not processed;
// INTERNAL_ERROR, CANCEL and ENHANCE_YOUR_CALM from the peer are like a reset.
func http2Stream(err error) (Class, string, bool) {
	if anyInTree(err, isGoAway) {
		return ClassTransient, goAway, true
	}
	if anyInTree(err, isConnectionError) {
		return ClassTransient, "http2_connection_error", true
	}
	var s streamError
	if !errors.As(err, &s) {
		return 0, "", false
	}
	switch s.Code {
	case 0x7:
		return ClassTransient, errtype.RefusedStream, true
	case 0x2, 0x8:
		return ClassTransient, "http2_stream_reset", true
	case 0xb:
		return ClassThrottled, "http2_enhance_your_calm", true
	}
	return ClassTerminal, "http2_protocol", true
}

// isConnectionError knows the end of a connection on which the server broke the
// protocol, by the shape of a type that net/http does not export either.
func isConnectionError(err error) bool {
	t := reflect.TypeOf(err)
	return t.Kind() == reflect.Uint32 && strings.HasSuffix(t.Name(), "ConnectionError") &&
		(t.PkgPath() == "net/http" || strings.HasSuffix(t.PkgPath(), "golang.org/x/net/http2"))
}

// isGoAway knows the end of a stream whose connection the server has closed
// after a GOAWAY that let the stream go on. net/http does not export its copy of the
// type, so its shape must do. Whether the stream was processed cannot be told.
func isGoAway(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() != reflect.Struct || !strings.HasSuffix(t.Name(), "GoAwayError") {
		return false
	}
	_, ok := t.FieldByName("LastStreamID")
	return ok
}

func socket(err error) (Class, string, bool) {
	for _, known := range [...]struct {
		errno error
		label string
	}{
		{syscall.ECONNREFUSED, "connection_refused"},
		{syscall.ECONNRESET, "connection_reset"},
		{syscall.ECONNABORTED, "connection_reset"},
		{syscall.EPIPE, "broken_pipe"},
		{syscall.ENETUNREACH, "network_unreachable"},
		{syscall.EHOSTUNREACH, "host_unreachable"},
		{net.ErrClosed, "connection_closed"},
	} {
		if errors.Is(err, known.errno) {
			return ClassTransient, known.label, true
		}
	}
	// A unix socket of which the file is missing: its server has not started yet, or
	// is being replaced. Other files that are missing say nothing.
	if errors.Is(err, syscall.ENOENT) && anyInTree(err, isUnixDial) {
		return ClassTransient, "socket_missing", true
	}
	return 0, "", false
}

// isDial reports whether err is that of making a connection.
func isDial(err error) bool {
	e, ok := err.(*net.OpError)
	return ok && e.Op == "dial"
}

func isUnixDial(err error) bool {
	e, ok := err.(*net.OpError)
	return ok && e.Op == "dial" && strings.HasPrefix(e.Net, "unix")
}

func timeout(err error) (Class, string, bool) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) {
		return ClassTimeout, errtype.Timeout, true
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return ClassTimeout, errtype.Timeout, true
	}
	return 0, "", false
}

func endOfStream(err error) (Class, string, bool) {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ClassTransient, "unexpected_eof", true
	case errors.Is(err, io.EOF):
		return ClassTransient, "eof", true
	}
	return 0, "", false
}

// unsent reports whether a failure proves that nothing was processed. A way that
// breaks proves it while the connection is being made: later it breaks on both sides
// of the work.
func unsent(label string, err error) bool {
	switch label {
	case "connection_refused", "dns_failure", "dns_not_found", "socket_missing",
		"proxy_502", "proxy_503", "proxy_504", "proxy_403", "proxy_407":
		return true
	case "network_unreachable", "host_unreachable":
		return anyInTree(err, isDial)
	}
	return false
}
