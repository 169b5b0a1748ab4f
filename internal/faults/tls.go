package faults

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// certificates returns every error type that speaks of a peer's certificate,
// each as the HTTP client reports it, bare, in the type that crypto/tls has
// for it, wrapped five deep, and joined with a reset connection. No wrapping may
// hide such an error, and a reset beside it must not make it look transient:
// retrying would repeat the request to an attacker.
func certificates() []error {
	var all []error
	for _, err := range certificateTypes() {
		reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
		deep := err
		for i := range 5 {
			deep = fmt.Errorf("layer %d: %w", i, deep)
		}
		all = append(all, request(err)...)
		all = append(all, request(&tls.CertificateVerificationError{Err: err})...)
		all = append(all, deep, errors.Join(reset, err), errors.Join(err, reset),
			fmt.Errorf("%w, then %w", reset, deep))
	}
	return all
}

// certificateTypes lists crypto/x509's errors as values and as pointers, because
// programs wrap both. The loop covers every reason that x509 declares.
func certificateTypes() []error {
	cert := &x509.Certificate{}
	types := []error{
		x509.UnknownAuthorityError{Cert: cert},
		&x509.UnknownAuthorityError{Cert: cert},
		x509.HostnameError{Certificate: cert, Host: "dependency.test"},
		&x509.HostnameError{Certificate: cert, Host: "dependency.test"},
		x509.ConstraintViolationError{},
		x509.SystemRootsError{Err: os.ErrNotExist},
		x509.UnhandledCriticalExtension{},
		x509.InsecureAlgorithmError(x509.MD5WithRSA),
	}
	for reason := x509.NotAuthorizedToSign; reason <= x509.NoValidChains; reason++ {
		types = append(types, x509.CertificateInvalidError{Cert: cert, Reason: reason})
	}
	return append(types, &x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired})
}

// alert returns the ways in which a peer's TLS alert reaches a program: with
// the exported type (QUIC), and as a handshake over a connection reports it.
func alert(code uint8) []error {
	quic := &net.OpError{Op: "remote error", Err: tls.AlertError(code)}
	return append(request(quic), request(handshake([]byte{21, 3, 1, 0, 2, 2, code}))...)
}

// recordHeader is a peer that speaks plain HTTP on a TLS port: a wrong
// configuration, which no retry mends.
func recordHeader() []error {
	return append(request(handshake([]byte("HTTP/1.0 400 Bad Request\r\n\r\n"))),
		tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})
}

// handshake returns the error of a TLS handshake whose peer responds with the
// given bytes, over a pipe in memory.
func handshake(response []byte) error {
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		hello := make([]byte, 4096)
		if _, err := server.Read(hello); err != nil {
			return
		}
		// The client may hang up before it has read all of a wrong response.
		_, _ = server.Write(response)
	}()
	err := tls.Client(client, &tls.Config{ServerName: "dependency.test"}).Handshake()
	client.Close()
	<-done
	return err
}
