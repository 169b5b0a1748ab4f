// Package grpcwire reads and writes what gRPC puts into the headers and trailers of
// HTTP/2, for those who cannot import gRPC and those who can: the gateway judges calls by
// the same words as the interceptors.
//
//   - grpcwire.go: what a gRPC call is, and its status
//   - message.go: grpc-message
//   - timeout.go: grpc-timeout
//   - pushback.go: grpc-retry-pushback-ms (gRFC A6)
//   - details.go: google.rpc.RetryInfo and ErrorInfo in grpc-status-details-bin
//   - judge.go: what failure a status is
package grpcwire

import (
	"net/http"
	"strconv"
	"strings"
)

// Names of metadata, as HTTP/2 has them.
const (
	// Pushback is a server's own wait, in milliseconds (gRFC A6).
	Pushback = "grpc-retry-pushback-ms"
	// Attempts is the number of attempts before this one (gRFC A6).
	Attempts = "grpc-previous-rpc-attempts"
	// Exhausted says that a layer below has used its retries.
	Exhausted = "forbear-retries-exhausted"
)

// The same names and others, as net/http has them.
const (
	HeaderStatus    = "Grpc-Status"
	HeaderMessage   = "Grpc-Message"
	HeaderDetails   = "Grpc-Status-Details-Bin"
	HeaderTimeout   = "Grpc-Timeout"
	HeaderPushback  = "Grpc-Retry-Pushback-Ms"
	HeaderAttempts  = "Grpc-Previous-Rpc-Attempts"
	HeaderExhausted = "Forbear-Retries-Exhausted"
)

// ContentType is that of gRPC without a word on its codec.
const ContentType = "application/grpc"

// Is reports whether a header's Content-Type is gRPC's: "application/grpc", with or
// without a codec such as "+proto". gRPC-Web is another protocol: its statuses are in
// the body.
func Is(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	value := values[0]
	if len(value) < len(ContentType) || !strings.EqualFold(value[:len(ContentType)], ContentType) {
		return false
	}
	if len(value) == len(ContentType) {
		return true
	}
	switch value[len(ContentType)] {
	case '+', ';', ' ':
		return true
	}
	return false
}

// Unknown is the code of a status that says nothing that can be read.
const Unknown = 2

// Status reads a grpc-status. ok is false where there is none. One that cannot be read
// is [Unknown].
func Status(h http.Header) (code uint32, ok bool) {
	values := h[HeaderStatus]
	if len(values) == 0 {
		return Unknown, false
	}
	n, err := strconv.ParseUint(values[0], 10, 31)
	if err != nil || len(values) > 1 {
		return Unknown, true
	}
	return uint32(n), true
}

// FromHTTP returns the code of a response that has no grpc-status, by its HTTP status, as
// gRPC's clients map it (grpc/doc/http-grpc-status-mapping.md).
func FromHTTP(status int) uint32 {
	switch status {
	case http.StatusBadRequest:
		return 13 // INTERNAL
	case http.StatusUnauthorized:
		return 16 // UNAUTHENTICATED
	case http.StatusForbidden:
		return 7 // PERMISSION_DENIED
	case http.StatusNotFound:
		return 12 // UNIMPLEMENTED
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 14 // UNAVAILABLE
	}
	return Unknown
}
