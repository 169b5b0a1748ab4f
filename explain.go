package forbear

import (
	"crypto/x509"
	"time"

	"github.com/forbear-go/forbear/internal/mismatch"
)

// Explain says in a few words what was wrong with a connection, where the label in
// Type covers several causes that are fixed in different places: "the server's
// certificate has expired (2026-11-01)". It is "" for everything else. The words are
// fixed but for dates: no name, address or text of the peer is in them, so that they
// may go to a caller and into a log.
func (f Failure) Explain() string {
	if words := ofProtocol[f.Type]; words != "" {
		return words
	}
	if f.Class != ClassCertificate && f.Type != "tls_alert" {
		return ""
	}
	words := ""
	anyInTree(f.Err, func(err error) bool {
		words = ofCertificate(err)
		return words != ""
	})
	return words
}

// ofProtocol are the words for a peer that speaks something else.
var ofProtocol = map[string]string{
	mismatch.HTTP2.Error():   "the server wants HTTP/2",
	mismatch.HTTP1.Error():   "the server wants HTTP/1.1",
	mismatch.TLS.Error():     "the server wants TLS",
	mismatch.Other.Error():   "the server does not speak HTTP",
	mismatch.Upgrade.Error(): "an upgrade needs HTTP/1.1, but http2 is set to only",
	malformedResponse:        "the server's response is not HTTP",
	"tls_record":             "the server does not speak TLS",
}

// ofCertificate says what err alone says of a certificate or a handshake, or "".
func ofCertificate(err error) string {
	switch e := err.(type) {
	case x509.UnknownAuthorityError, *x509.UnknownAuthorityError:
		return "the server's certificate is signed by an unknown authority"
	case x509.HostnameError, *x509.HostnameError:
		return "the server's certificate is for another name"
	case *x509.CertificateInvalidError:
		return ofInvalid(e)
	case x509.CertificateInvalidError:
		return ofInvalid(&e)
	case x509.SystemRootsError, *x509.SystemRootsError:
		return "the system's certificate authorities cannot be read"
	}
	if alert, ok := alertOf(err); ok {
		return ofAlert[uint8(alert)]
	}
	return ""
}

// ofInvalid says why x509 does not accept a certificate.
func ofInvalid(e *x509.CertificateInvalidError) string {
	switch {
	case e.Reason != x509.Expired:
		return "the server's certificate is not valid for this use"
	case e.Cert == nil:
		return "the server's certificate is expired or not yet valid"
	case time.Now().Before(e.Cert.NotBefore):
		return "the server's certificate is not yet valid (" + day(e.Cert.NotBefore) + ")"
	default:
		return "the server's certificate has expired (" + day(e.Cert.NotAfter) + ")"
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// ofAlert are the words for the alerts of RFC 8446 section 6.2: the server speaks of
// our certificate, or of the handshake.
var ofAlert = map[uint8]string{
	40:  "the server refused the handshake: it may want a client certificate or other ciphers",
	42:  "the server wants a client certificate, or refused ours",
	43:  "the server does not support our client certificate",
	44:  "our client certificate is revoked",
	45:  "our client certificate has expired",
	46:  "the server refused our client certificate",
	48:  "the server does not trust the authority that signed our client certificate",
	49:  "the server denied access to our client certificate",
	70:  "the server refused this version of TLS",
	71:  "the server refused the ciphers as too weak",
	112: "the server does not know this server name",
	116: "the server wants a client certificate",
	120: "the server does not speak this version of HTTP",
}
