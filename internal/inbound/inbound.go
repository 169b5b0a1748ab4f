// Package inbound reads what the headers of a request from outside say of the
// call that it belongs to: the attempt, the deadline, the correlation id. The
// middleware of the HTTP and the gRPC edge and the gateway read them here, so
// that all believe the same.
//
// Each header counts only when it is there once and within its bounds; what
// cannot be read says nothing.
package inbound

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/forbear-go/forbear/internal/traceparent"
)

// maxID bounds a correlation id, in bytes.
const maxID = 128

// Deadline reads the time by which the caller wants its response, in
// milliseconds since 1970 (INTG-STD-035).
func Deadline(header []string) (due time.Time, ok bool) {
	value := only(header)
	if value == "" {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// Lateness says how much of a deadline is left, or by how much it has passed: from
// the response to a request that came too late a reader can tell a slow way from a
// clock that is wrong.
func Lateness(left time.Duration) string {
	if left > 0 {
		return fmt.Sprintf("the deadline of the request is in %v by this server's clock, which leaves no time for a response", left.Round(time.Millisecond))
	}
	return fmt.Sprintf("the deadline of the request passed %v ago by this server's clock", -left.Round(time.Millisecond))
}

// Correlation returns the id that a request came with, in its own header or
// that of the request's id, and else the id of its trace; "" when it has none
// that could go into logs and headers.
func Correlation(h http.Header) string {
	for _, name := range [...]string{"X-Correlation-Id", "X-Request-Id"} {
		if id := ID(h[name]); id != "" {
			return id
		}
	}
	return Trace(h)
}

// ID returns the id that a header holds, or "": at most 128 bytes of visible
// ASCII, so that it can neither break a line of a log nor begin a header.
func ID(header []string) string {
	id := only(header)
	if len(id) > maxID {
		return ""
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return ""
		}
	}
	return id
}

// Trace returns the id of the trace that a request belongs to, by W3C Trace
// Context, or "".
func Trace(h http.Header) string { return traceparent.ID(only(h["Traceparent"])) }

// only returns the value of a header that is there once, or "". Of several, none
// is the caller's: something in between has added its own.
func only(header []string) string {
	if len(header) != 1 {
		return ""
	}
	return header[0]
}
