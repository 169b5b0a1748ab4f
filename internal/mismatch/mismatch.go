// Package mismatch recognizes a server that speaks another protocol than its client,
// by the first bytes that come from it. Such a server is configured otherwise than
// its client believes, which no retry mends.
package mismatch

import "bytes"

// Error says which protocol a server wants. Its text is its label in logs and
// metrics.
type Error string

// What there is to want.
const (
	HTTP2 Error = "http2_wanted" // it sent a SETTINGS frame in response to HTTP/1
	HTTP1 Error = "http1_wanted" // it spoke HTTP/1 in response to HTTP/2, or did not agree on HTTP/2
	TLS   Error = "tls_wanted"   // it sent a record of TLS in response to HTTP in clear
	Other Error = "not_http"     // it spoke something else in response to HTTP/2
)

// Upgrade is for a request that the server does not hear of: it asks for another
// protocol, which HTTP/2 has no way to change to, and HTTP/2 is all that may be spoken.
const Upgrade Error = "upgrade_over_http2"

// Error returns the label.
func (e Error) Error() string { return string(e) }

// Preface is how a client begins that speaks HTTP/2 in clear.
const Preface = "PRI * HTTP/2.0\r\n\r\n"

// Of returns what a server wants that sent first in response to HTTP/1, or to
// HTTP/2, or "" when nothing speaks against its speaking the same. Anything that is not HTTP/1
// and none of the others is left to the client: its parser has an error for it.
func Of(first []byte, http2 bool) Error {
	switch {
	case record(first):
		return TLS
	case !http2 && settings(first):
		return HTTP2
	case http2 && bytes.HasPrefix(first, []byte("HTTP/1.")):
		return HTTP1
	case http2 && len(first) >= 9 && !settings(first):
		return Other // RFC 9113 section 3.4: the preface of a server is SETTINGS
	}
	return ""
}

// record reports whether b begins as an alert or a handshake message of TLS does
// (RFC 8446 section 5.1).
func record(b []byte) bool {
	return len(b) >= 3 && (b[0] == 21 || b[0] == 22) && b[1] == 3 && b[2] <= 4
}

// settings reports whether b begins as a SETTINGS frame does, of some hundred
// settings at most (RFC 9113 section 6.5).
func settings(b []byte) bool {
	return len(b) >= 4 && b[0] == 0 && b[1] <= 4 && b[3] == 4
}
