// Package httpcode holds what HTTP statuses and methods mean for a retry, for those who
// send requests and for those who only count with them.
package httpcode

import (
	"strconv"

	"github.com/forbear-go/forbear"
)

// Class is R-4's table. Statuses that it does not list are terminal: unknown
// means do not retry. A delivery is good with a 2xx only: to a webhook, a redirect is a
// failure.
func Class(status int, delivery bool) forbear.Class {
	switch status {
	case 408, 504: // Request Timeout, Gateway Timeout
		return forbear.ClassTimeout
	case 429: // Too Many Requests
		return forbear.ClassThrottled
	case 500, 502, 503: // Internal Server Error, Bad Gateway, Service Unavailable
		return forbear.ClassTransient
	case 401: // Unauthorized
		return forbear.ClassUnauthorized
	}
	if status/100 == 2 || status >= 100 && status < 400 && !delivery {
		return forbear.ClassSuccess
	}
	return forbear.ClassTerminal
}

// Label returns the error_type of a status: "http_503". Three digits are all there
// is, so the number of labels is bounded. The two most frequent are constants, which
// saves an allocation on the way to a retry.
func Label(status int) string {
	switch status {
	case 503:
		return "http_503"
	case 429:
		return "http_429"
	}
	if status < 100 || status > 999 {
		return "http_invalid"
	}
	return "http_" + strconv.Itoa(status)
}

// NeedsKey reports whether a request with this method is safe to repeat only
// with an idempotency key: every method but the idempotent ones of RFC
// 9110 section 9.2.2. "" is GET. An unknown method is not idempotent.
func NeedsKey(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return false
	}
	return true
}
